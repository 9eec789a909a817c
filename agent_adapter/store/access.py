"""Operations on tokens, of which only hashes are kept, and sessions.

A token (`aat_…`) and a session's secret are 256 random bits each, so a plain SHA-256 cannot be
reversed by guessing.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from agent_adapter.store import ledger, people
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.people import ROLES
from agent_adapter.store.refusal import Refusal
from agent_adapter.store.witness import UPKEEP

IDLE_SECONDS = 30 * 60.0
"""An unused session ends after this time."""

ABSOLUTE_SECONDS = 12 * 3600.0
"""The longest time of a session."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_NOTED_EVERY = 60.0
_SWEPT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A signed-in person; `via` is the source of the identity, such as `token` or `proxy`."""

    id: str
    name: str
    role: str
    via: str
    csrf: str
    created_at: float
    expires_at: float
    token_id: str | None = None
    tenant: str | None = None


def new_secret(prefix: str = "aat") -> str:
    """A secret that is shown once; the store keeps its hash."""
    return f"{prefix}_{secrets.token_urlsafe(32)}"


def create_token(
    tx: Transaction,
    name: str,
    role: str,
    secret: str,
    *,
    tenants: Sequence[str] | None = None,
    by: str = "",
) -> Row | Refusal:
    """Let the holder of `secret` sign in as `name` with `role`; the row, without the secret.

    It belongs to these `tenants` (`""`: records without one); `None` is that of whatever console it
    is used in, as with tokens of 0.1. A name belongs to one token at a time: it is what decisions
    are attributed to.
    """
    if not _NAME.fullmatch(name):
        return Refusal(
            reason=f"{name!r} is no name for a token: use 1 to 64 letters, digits and . _ @ -"
        )
    if role not in ROLES:
        return Refusal(reason=f"no role {role!r}; there are {', '.join(ROLES)}")
    if tenants is not None and not tenants:
        return Refusal(reason=f"the token of {name} would belong to no tenant: name one")
    if any(row["revoked_at"] is None for row in tx.select("tokens", {"name": name})):
        return Refusal(reason=f"{name} has a token; revoke it first, or choose another name")
    row: Row = {"id": f"tok_{secrets.token_hex(6)}", "name": name, "role": role}
    row |= {"hash": _hash(secret), "created_at": tx.now, "last_used_at": None, "revoked_at": None}
    row["tenants"] = None if tenants is None else json.dumps(sorted(set(tenants)))
    tx.insert("tokens", row)
    facts = {"token": row["id"], "name": name, "role": role, "reviewer": by}
    facts |= {} if tenants is None else {"tenants": sorted(set(tenants))}
    ledger.append(tx, UPKEEP, "token-created", None, facts)
    return row


def tokens(tx: Transaction) -> list[Row]:
    """Every token, oldest first; of the tokens themselves there are only hashes."""
    return tx.select("tokens", order_by="created_at")


def revoke_token(tx: Transaction, id_or_name: str, *, by: str = "") -> Row | Refusal:
    """Revoke the token and end its sessions."""
    row = tx.get("tokens", id_or_name) or _by_name(tx, id_or_name)
    if row is None:
        return Refusal(reason=f"no token {id_or_name}; `agent-adapter tokens list` shows all")
    if row["revoked_at"] is not None:
        return Refusal(reason=f"token {row['id']} of {row['name']} is revoked already")
    tx.update("tokens", {"id": row["id"]}, {"revoked_at": tx.now})
    tx.delete("sessions", {"token_id": row["id"]})
    facts = {"token": row["id"], "name": row["name"], "reviewer": by}
    ledger.append(tx, UPKEEP, "token-revoked", None, facts)
    return row | {"revoked_at": tx.now}


def roles_of(tx: Transaction, token: Row, *, default: str = "") -> dict[str, str]:
    """The role of a token in each of its tenants; `default` is the tenant of one without any.

    The role of a linked person limits it.
    """
    tenants = json.loads(token["tenants"]) if token["tenants"] is not None else [default]
    own = {str(tenant): str(token["role"]) for tenant in tenants}
    return people.allowed(tx, f"token:{token['name']}", own, at_most=True)


def token_of(tx: Transaction, secret: str) -> Row | None:
    """The token with this secret, unless it was revoked."""
    for row in tx.select("tokens", {"hash": _hash(secret)}):
        if row["revoked_at"] is None:
            return row
    return None


def touch_token(tx: Transaction, id: str) -> None:
    """Record the use of a token, once a minute."""
    row = tx.get("tokens", id)
    if row is not None and tx.now - (row["last_used_at"] or 0.0) >= _NOTED_EVERY:
        tx.update("tokens", {"id": id}, {"last_used_at": tx.now})


def new_session(
    tx: Transaction,
    secret: str,
    csrf: str,
    *,
    name: str,
    role: str,
    via: str,
    tenant: str = "",
    token_id: str | None = None,
) -> Session:
    """Create a session: `secret` is in the browser's cookie, `csrf` in its forms."""
    for old in tx.select("sessions", {"expires_at <": tx.now}, limit=_SWEPT):
        tx.delete("sessions", {"id": old["id"]})
    row: Row = {"id": _hash(secret), "token_id": token_id, "name": name, "role": role, "via": via}
    row |= {"tenant": tenant}
    row |= {"csrf": csrf, "created_at": tx.now, "expires_at": tx.now + IDLE_SECONDS}
    tx.insert("sessions", row)
    if token_id is not None:
        tx.update("tokens", {"id": token_id}, {"last_used_at": tx.now})
    return Session(**row)


def session_of(tx: Transaction, secret: str) -> Session | None:
    """The session with this secret, if neither it nor its token has ended."""
    row = tx.get("sessions", _hash(secret))
    if row is None or tx.now > row["expires_at"]:
        return None
    if row["token_id"] is not None:
        token = tx.get("tokens", row["token_id"])
        if token is None or token["revoked_at"] is not None:
            return None
    return Session(**row)


def touch_session(tx: Transaction, session: Session) -> None:
    """Restart the idle time of a session; its total time goes on."""
    until = min(tx.now + IDLE_SECONDS, session.created_at + ABSOLUTE_SECONDS)
    if until - session.expires_at >= _NOTED_EVERY:
        tx.update("sessions", {"id": session.id, "expires_at <": until}, {"expires_at": until})


def move_session(tx: Transaction, session_id: str, tenant: str, role: str) -> None:
    """Let a session look at another tenant, with the role that its person has there."""
    tx.update("sessions", {"id": session_id}, {"tenant": tenant, "role": role})


def end_session(tx: Transaction, session_id: str) -> None:
    """Sign out."""
    tx.delete("sessions", {"id": session_id})


def _by_name(tx: Transaction, name: str) -> Row | None:
    rows = tx.select("tokens", {"name": name}, order_by="created_at", descending=True)
    standing = [row for row in rows if row["revoked_at"] is None]
    return next(iter(standing or rows), None)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
