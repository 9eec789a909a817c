"""Authentication of connections: which names a token may use."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Protocol

from agent_adapter.core.errors import AuthError

_SHORTEST = 16


class Authenticator(Protocol):
    """Maps the credential of a connection to the names that it may use."""

    async def names_for(self, credential: str | None) -> Sequence[str]:
        """The Passport names, or globs over them, that `credential` may use.

        `credential` is the bearer token of the connection, `None` without one. `AuthError` refuses
        the connection; its text is not sent to the client.
        """
        ...


class TokenAuth:
    """Authenticates by bearer token: `TokenAuth({token: ["billing", "support-*"]})`.

    Tokens have at least 16 characters. Only their hashes are kept, and the comparison takes
    constant time.
    """

    def __init__(self, tokens: Mapping[str, str | Sequence[str]]) -> None:
        self._names: list[tuple[bytes, tuple[str, ...]]] = []
        for token, names in tokens.items():
            if len(token) < _SHORTEST:
                raise ValueError(
                    f"a token has at least {_SHORTEST} characters; make one with "
                    "secrets.token_urlsafe(32)"
                )
            listed = (names,) if isinstance(names, str) else tuple(names)
            self._names.append((_digest(token), listed))

    async def names_for(self, credential: str | None) -> Sequence[str]:
        """The names of the token; `AuthError` for an unknown or missing one."""
        if credential is None:
            raise AuthError("the connection shows no token")
        shown, found = _digest(credential), None
        for known, names in self._names:
            if hmac.compare_digest(known, shown):
                found = names
        if found is None:
            raise AuthError("the connection shows an unknown token")
        return found

    def __repr__(self) -> str:
        return f"TokenAuth({len(self._names)} tokens)"


class Anybody:
    """Allows every name without a token: for a hub that only this machine can reach."""

    async def names_for(self, credential: str | None) -> Sequence[str]:
        """All names."""
        return ("*",)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
