"""Authentication: which names a token may use, and what a `Passport` must prove to register."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from agent_adapter.core.errors import AuthError
from agent_adapter.network.identity import AuthBlock, Passport

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


class AuthAdapter(Protocol):
    """Checks the claim of a `Passport` whose `auth.scheme` is `scheme`."""

    @property
    def scheme(self) -> str:
        """The scheme that it checks."""
        ...

    async def validate(self, passport: Passport, claim: dict[str, Any]) -> Any:
        """Raises `AuthError` unless `claim` proves that the participant may have its name."""
        ...


class NoAuth:
    """Accepts every participant whose passport asks for no check: the scheme `none`."""

    scheme = "none"

    async def validate(self, passport: Passport, claim: dict[str, Any]) -> None:
        """Raises `AuthError` for a passport with facts that nothing would check."""
        asked = passport.auth
        if (asked.issuer, asked.audience, asked.key_fingerprint) != (None, None, None):
            raise AuthError(
                f"{passport.name}: the scheme 'none' checks nothing; leave out issuer, audience "
                "and key_fingerprint, or open the hub with auth=AuthRegistry([...]) for a scheme"
            )


class ApiKeyAuth:
    """Checks `claim["token"]` against the key of the participant's name: the scheme `api_key`.

    `keys` maps names to keys; a name that it does not have is looked up with `resolver`, which
    gives `None` for an unknown one. Keys are compared in constant time.
    """

    scheme = "api_key"

    def __init__(
        self,
        keys: Mapping[str, str] | None = None,
        *,
        resolver: Callable[[str], Awaitable[str | None]] | None = None,
    ) -> None:
        self._keys = dict(keys or {})
        self._resolver = resolver

    async def validate(self, passport: Passport, claim: dict[str, Any]) -> None:
        """Raises `AuthError` for a missing, unknown or wrong key."""
        token = claim.get("token")
        if not isinstance(token, str) or not token:
            raise AuthError("api_key claim missing required string field 'token'")
        expected = self._keys.get(passport.name)
        if expected is None and self._resolver is not None:
            expected = await self._resolver(passport.name)
        if not isinstance(expected, str) or not expected:
            raise AuthError(f"no api_key registered for {passport.name!r}")
        if not hmac.compare_digest(_digest(expected), _digest(token)):
            raise AuthError(f"api_key mismatch for {passport.name!r}")

    def __repr__(self) -> str:
        return f"ApiKeyAuth({len(self._keys)} keys)"


class AuthRegistry:
    """The schemes of `Passport.auth` that a hub checks, each with its adapter."""

    def __init__(self, adapters: Iterable[AuthAdapter]) -> None:
        self._adapters = {adapter.scheme: adapter for adapter in adapters}

    @classmethod
    def default(cls) -> AuthRegistry:
        """The registry of a hub that was given none: `NoAuth` alone."""
        return cls([NoAuth()])

    def get(self, scheme: str) -> AuthAdapter:
        """The adapter of a scheme; `AuthError` lists the known ones."""
        try:
            return self._adapters[scheme]
        except KeyError:
            known = ", ".join(self._adapters) or "none"
            raise AuthError(f"unknown auth scheme: {scheme!r}; this hub knows {known}") from None

    def schemes(self) -> list[str]:
        """The schemes, in the order of their adapters."""
        return list(self._adapters)

    async def check(self, passport: Passport, auth: AuthBlock) -> None:
        """Raises `AuthError` unless `auth` proves that it may take part as `passport`.

        The adapter sees no claim but its argument.
        """
        adapter = self.get(auth.scheme)
        try:
            verdict = await adapter.validate(passport, dict(auth.claim))
        except AuthError:
            raise
        except Exception as exc:
            raise AuthError(
                f"{passport.name} was not let in: the check of {auth.scheme!r} failed "
                f"({type(exc).__name__})"
            ) from exc
        if verdict is False:
            raise AuthError(f"{passport.name} was not let in by the check of {auth.scheme!r}")
