"""Authentication: who sends a request, and what they may do."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from agent_adapter.console.problems import Problem
from agent_adapter.console.settings import Settings, is_name
from agent_adapter.core.rate import TokenBucket
from agent_adapter.store import access
from agent_adapter.store.access import Session
from agent_adapter.store.base import Transaction
from agent_adapter.store.people import ROLES

SESSION_COOKIE = "agent_adapter_session"
SIGN_IN_COOKIE = "agent_adapter_sign_in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A signed-in person; `via` is the source of the identity (`token`, `proxy`)."""

    name: str
    role: str
    via: str
    session: Session | None = None

    @property
    def reviewer(self) -> str:
        """How decisions are attributed: `token:kim`."""
        return f"{self.via}:{self.name}"

    def may(self, role: str) -> bool:
        """Whether the person has that role or a higher one."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def check(self, role: str) -> None:
        """Raise `Problem` 403 unless the person has that role or a higher one."""
        if not self.may(role):
            raise Problem(
                403,
                "role",
                f"{self.name} has the role {self.role}; this needs the role {role}: ask for a token"
                " with that role",
            )


class ConsoleAuthenticator:
    """Signs people in and out, and identifies the sender of each request."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store = settings.store
        self._sign_in_key = secrets.token_bytes(32)
        per_minute = settings.per_minute
        self._reads = TokenBucket(burst=max(1, per_minute // 2), per_minute=per_minute)
        self._writes = TokenBucket(burst=max(1, per_minute // 10), per_minute=per_minute / 5)
        self._attempts = TokenBucket(burst=10, per_minute=10)
        self._all_attempts = TokenBucket(burst=100, per_minute=100)

    async def authenticate(self, request: Request) -> Person | None:
        """The person of the session cookie; `None` without a valid session."""
        secret = request.cookies.get(SESSION_COOKIE)
        if not secret:
            return None
        session = await self._store.read(lambda tx: access.session_of(tx, secret))
        if session is None or not self._proxy_confirms(request, session):
            return None
        _take(self._reads, session.id)
        used: Session = session
        self._store.post(lambda tx: access.touch_session(tx, used))
        return Person(name=used.name, role=used.role, via=used.via, session=used)

    async def authenticate_bearer(self, request: Request) -> Person:
        """The holder of the token in `Authorization: Bearer`; `Problem` 401 without a valid one."""
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secret:
            raise Problem(401, "auth-error", "send a token: Authorization: Bearer aat_…")
        token = await self._store.read(lambda tx: access.token_of(tx, secret.strip()))
        if token is None:
            self._count_attempt(request)
            raise Problem(401, "auth-error", "the token is unknown or revoked")
        self._store.post(lambda tx: access.touch_token(tx, token["id"]))
        _take(self._reads if request.method == "GET" else self._writes, token["id"])
        return Person(name=token["name"], role=token["role"], via="token")

    async def sign_in_by_proxy(self, request: Request) -> tuple[Person, str] | None:
        """A new session and its secret for the person whom the trusted proxy names, if any."""
        name = self._proxy_name(request)
        proxy = self._settings.proxy
        role = proxy.role_of(name) if proxy is not None and name is not None else None
        if name is None or role is None:
            return None
        return await self._new_session(name, role, "proxy", None)

    async def sign_in(self, request: Request, secret: str) -> tuple[Person, str]:
        """A new session and its secret for the holder of a token."""
        self._count_attempt(request)
        token = await self._store.read(lambda tx: access.token_of(tx, secret.strip()))
        if token is None:
            raise Problem(401, "auth-error", "the token is unknown or revoked")
        self._attempts.forget(_peer(request))
        return await self._new_session(token["name"], token["role"], "token", token["id"])

    async def sign_out(self, person: Person) -> None:
        """End the person's session."""
        if person.session is not None:
            session_id = person.session.id
            await self._store.write(lambda tx: access.end_session(tx, session_id))

    def check_csrf(self, request: Request, person: Person, token: str) -> None:
        """Raise `Problem` 403 unless the form is from this console and carries the CSRF token."""
        self.check_origin(request)
        session = person.session
        if session is None or not hmac.compare_digest(token.encode(), session.csrf.encode()):
            raise Problem(403, "csrf", "This page is from an older session. Reload it.")
        _take(self._writes, session.id)

    def check_origin(self, request: Request) -> None:
        """Raise `Problem` 403 for a form that another site sent."""
        origin = request.headers.get("origin")
        if origin is None:
            same = request.headers.get("sec-fetch-site") == "same-origin"
        else:
            same = urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()
        if not same:
            raise Problem(403, "origin", "This form was sent by another site; nothing was changed.")

    def new_sign_in_csrf(self, response: Response, request: Request) -> str:
        """The CSRF token of the sign-in form, tied to a cookie that `response` sets.

        There is no session yet, so a cookie with a nonce takes its place: without it another site
        could sign a person in under another name.
        """
        nonce = request.cookies.get(SIGN_IN_COOKIE) or secrets.token_urlsafe(16)
        self._set_cookie(response, request, SIGN_IN_COOKIE, nonce, 3600)
        return self._sign_in_csrf(nonce)

    def check_sign_in_csrf(self, request: Request, token: str) -> None:
        """Raise `Problem` 403 unless this browser got the sign-in form."""
        self.check_origin(request)
        nonce = request.cookies.get(SIGN_IN_COOKIE, "")
        if not nonce or not hmac.compare_digest(token.encode(), self._sign_in_csrf(nonce).encode()):
            raise Problem(403, "csrf", "This page is too old, or cookies are disabled. Reload it.")

    def set_session_cookie(self, response: Response, request: Request, secret: str) -> None:
        """Give the browser its session."""
        self._set_cookie(response, request, SESSION_COOKIE, secret, int(access.ABSOLUTE_SECONDS))

    def delete_session_cookie(self, response: Response) -> None:
        """Take the session from the browser."""
        response.delete_cookie(SESSION_COOKIE, path="/")

    async def _new_session(
        self, name: str, role: str, via: str, token_id: str | None
    ) -> tuple[Person, str]:
        secret, csrf = access.new_secret("ses"), secrets.token_urlsafe(24)

        def op(tx: Transaction) -> Session:
            return access.new_session(
                tx, secret, csrf, name=name, role=role, via=via, token_id=token_id
            )

        session = await self._store.write(op)
        return Person(name=name, role=role, via=via, session=session), secret

    def _proxy_confirms(self, request: Request, session: Session) -> bool:
        """Whether the proxy that signed the person in still names them, with the same role."""
        if session.via != "proxy":
            return True
        proxy = self._settings.proxy
        named = self._proxy_name(request)
        if proxy is None or named != session.name:
            return False
        return proxy.role_of(session.name) == session.role

    def _proxy_name(self, request: Request) -> str | None:
        proxy = self._settings.proxy
        if proxy is None or _peer(request) not in proxy.peers:
            return None
        names = request.headers.getlist(proxy.header)
        # A second header of that name could come from the client: then neither is believed.
        return names[0] if len(names) == 1 and is_name(names[0]) else None

    def _count_attempt(self, request: Request) -> None:
        # For all callers together as well: guesses could come from many addresses.
        _take(self._all_attempts, "")
        _take(self._attempts, _peer(request))

    def _sign_in_csrf(self, nonce: str) -> str:
        return hmac.new(self._sign_in_key, nonce.encode(), hashlib.sha256).hexdigest()

    def _set_cookie(
        self, response: Response, request: Request, name: str, value: str, seconds: int
    ) -> None:
        https = self._settings.https
        secure = https if https is not None else request.url.scheme == "https"
        response.set_cookie(
            name, value, max_age=seconds, httponly=True, samesite="strict", secure=secure, path="/"
        )


def _take(bucket: TokenBucket, key: str) -> None:
    seconds = bucket.wait(key)
    if seconds:
        raise Problem(429, "too-many", f"too many requests: try again in {seconds:.0f} s")


def _peer(request: Request) -> str:
    return request.client.host if request.client is not None else ""
