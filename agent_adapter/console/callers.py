"""Attempts to sign in: limited for each caller, and kept in the ledger."""

from __future__ import annotations

import ipaddress
import logging

from starlette.requests import Request

from agent_adapter.console.problems import Problem
from agent_adapter.console.settings import Settings
from agent_adapter.core.rate import TokenBucket
from agent_adapter.store import ledger
from agent_adapter.store.base import Transaction
from agent_adapter.store.witness import UPKEEP

_LOG = logging.getLogger(__name__)


def peer_of(request: Request) -> str:
    """The address that is connected: a proxy's, if there is one."""
    return request.client.host if request.client is not None else ""


def take(bucket: TokenBucket, key: str) -> None:
    """Take a token; `Problem` 429 names the seconds until there is one."""
    seconds = bucket.wait(key)
    if seconds:
        raise Problem(429, "too-many", f"too many requests: try again in {max(1, seconds):.0f} s")


class Callers:
    """Counts and keeps the attempts of each address.

    There is no limit for all callers together: one that guesses must not keep the others out, and a
    token has 256 random bits.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._attempts = TokenBucket(burst=10, per_minute=10)
        self._kept_of_each = TokenBucket(burst=2, per_minute=1)
        self._kept_of_all = TokenBucket(burst=60, per_minute=60)

    def address_of(self, request: Request) -> str:
        """The caller's address: what a trusted proxy forwarded, else that of the connection."""
        peer, proxy = peer_of(request), self._settings.proxy
        if proxy is None or peer not in proxy.peers:
            return peer
        forwarded = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
        # Each proxy adds the address that it saw at the end; what is before could be invented.
        for each in reversed([text.strip() for text in forwarded]):
            if each not in proxy.peers:
                return _address(each) or peer
        return peer

    def count_attempt(self, request: Request) -> None:
        """Count one; `Problem` 429 where this caller has made too many."""
        try:
            take(self._attempts, _network(self.address_of(request)))
        except Problem:
            self._refused(request, "too many attempts")
            raise

    def note_wrong_token(self, request: Request) -> None:
        """Keep that a caller came with a token that opens nothing."""
        self._refused(request, "unknown or revoked token")

    def note_signed_in(self, request: Request, name: str, via: str) -> None:
        """Keep who signed in, and give the caller all attempts again."""
        address = self.address_of(request)
        self._attempts.forget(_network(address))
        _LOG.info("%s:%s signed in from %s", via, name, address)
        self._keep("signed-in", {"name": name, "via": via, "address": address})

    def _refused(self, request: Request, why: str) -> None:
        address = self.address_of(request)
        _LOG.warning("sign-in refused from %s: %s", address, why)
        # The log has every attempt. The store must not grow by what strangers send, so it has some.
        if not self._kept_of_each.wait(_network(address)) and not self._kept_of_all.wait(""):
            self._keep("sign-in-refused", {"address": address, "reason": why})

    def _keep(self, kind: str, facts: dict[str, str]) -> None:
        def op(tx: Transaction) -> None:
            ledger.append(tx, UPKEEP, kind, None, facts)

        self._settings.store.post(op)


def _address(text: str) -> str | None:
    host = text[1:].partition("]")[0] if text.startswith("[") else text
    if host.count(":") == 1:  # an IPv4 address with its port
        host = host.partition(":")[0]
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return None


def _network(address: str) -> str:
    """One caller of IPv6 has a network of 64 bits, and could use another address each time."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if known.version == 4:
        return str(known)
    return str(ipaddress.ip_network((int(known) >> 64 << 64, 64)))
