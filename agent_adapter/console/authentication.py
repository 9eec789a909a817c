"""Who sends a request, and what they may do."""

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
from agent_adapter.store.access import ROLES, Session
from agent_adapter.store.base import Transaction

__all__ = ["Authenticator", "Person"]

COOKIE = "agent_adapter_session"
BEFORE = "agent_adapter_sign_in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who may see the console; `via` says how they are known (`token`, `proxy`)."""

    name: str
    role: str
    via: str
    session: Session | None = None

    @property
    def reviewer(self) -> str:
        """How decisions are attributed: `token:kim`."""
        return f"{self.via}:{self.name}"

    def may(self, role: str) -> bool:
        """Whether the person has that role, or one above it."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def check(self, role: str) -> None:
        """`Problem` 403 unless the person may do what that role may."""
        if not self.may(role):
            raise Problem(
                403,
                "role",
                f"{self.name} is {self.role}; this is for people who are {role}: ask for a token"
                " with that role",
            )


class Authenticator:
    """Lets people in, and tells who they are at every request."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store = settings.store
        self._before = secrets.token_bytes(32)
        often = settings.per_minute
        self._asked = TokenBucket(burst=max(1, often // 2), per_minute=often)
        self._acted = TokenBucket(burst=max(1, often // 10), per_minute=often / 5)
        self._tried = TokenBucket(burst=10, per_minute=10)
        self._tried_all = TokenBucket(burst=100, per_minute=100)

    async def who(self, request: Request) -> Person | None:
        """The person behind the session cookie; `None` for nobody."""
        secret = request.cookies.get(COOKIE)
        if not secret:
            return None
        session = await self._store.read(lambda tx: access.session_of(tx, secret))
        if session is None or not self._still_vouched(request, session):
            return None
        _within(self._asked, session.id)
        used: Session = session
        self._store.post(lambda tx: access.touch_session(tx, used))
        return Person(name=used.name, role=used.role, via=used.via, session=used)

    async def bearer(self, request: Request) -> Person:
        """The person behind an `Authorization: Bearer` header; cookies do not count here."""
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secret:
            raise Problem(401, "auth-error", "send a token: Authorization: Bearer aat_…")
        token = await self._store.read(lambda tx: access.token_of(tx, secret.strip()))
        if token is None:
            self._count_try(request)
            raise Problem(401, "auth-error", "no such token, or it was revoked")
        self._store.post(lambda tx: access.touch_token(tx, token["id"]))
        _within(self._asked if request.method == "GET" else self._acted, token["id"])
        return Person(name=token["name"], role=token["role"], via="token")

    async def vouched(self, request: Request) -> tuple[Person, str] | None:
        """A new session for whoever the trusted proxy names; `None` where it names nobody."""
        name = self._named_by_proxy(request)
        proxy = self._settings.proxy
        role = proxy.role_of(name) if proxy is not None and name is not None else None
        if name is None or role is None:
            return None
        return await self._signed_in(name, role, "proxy", None)

    async def sign_in(self, request: Request, secret: str) -> tuple[Person, str]:
        """A new session for the holder of a token, and the cookie's value."""
        self._count_try(request)
        token = await self._store.read(lambda tx: access.token_of(tx, secret.strip()))
        if token is None:
            raise Problem(401, "auth-error", "no such token, or it was revoked")
        self._tried.forget(_peer(request))
        return await self._signed_in(token["name"], token["role"], "token", token["id"])

    async def sign_out(self, person: Person) -> None:
        """End the person's session."""
        if person.session is not None:
            session_id = person.session.id
            await self._store.write(lambda tx: access.end_session(tx, session_id))

    def check_post(self, request: Request, person: Person, token: str) -> None:
        """A form counts only from this console's own pages, with this session's mark."""
        self.check_origin(request)
        session = person.session
        if session is None or not hmac.compare_digest(token.encode(), session.csrf.encode()):
            raise Problem(403, "csrf", "the form is not of this session: load the page again")
        _within(self._acted, session.id)

    def check_origin(self, request: Request) -> None:
        """`Problem` 403 for a form that another site sent."""
        origin = request.headers.get("origin")
        if origin is None:
            same = request.headers.get("sec-fetch-site") == "same-origin"
        else:
            same = urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()
        if not same:
            raise Problem(403, "origin", "forms are taken from this console's own pages alone")

    def before(self, response: Response, request: Request) -> str:
        """The mark of the sign-in form, tied to a cookie that the same answer sets."""
        nonce = request.cookies.get(BEFORE) or secrets.token_urlsafe(16)
        self._set(response, request, BEFORE, nonce, 3600)
        return self._mark(nonce)

    def check_before(self, request: Request, mark: str) -> None:
        """`Problem` 403 unless the sign-in form was served to this very browser."""
        self.check_origin(request)
        nonce = request.cookies.get(BEFORE, "")
        if not nonce or not hmac.compare_digest(mark.encode(), self._mark(nonce).encode()):
            raise Problem(403, "csrf", "the form is too old, or cookies are off: load it again")

    def remember(self, response: Response, request: Request, secret: str) -> None:
        """Give the browser its session."""
        self._set(response, request, COOKIE, secret, int(access.ABSOLUTE_SECONDS))

    def forget(self, response: Response) -> None:
        """Take the session's cookie away."""
        response.delete_cookie(COOKIE, path="/")

    async def _signed_in(
        self, name: str, role: str, via: str, token_id: str | None
    ) -> tuple[Person, str]:
        secret, csrf = access.new_secret("ses"), secrets.token_urlsafe(24)

        def op(tx: Transaction) -> Session:
            return access.new_session(
                tx, secret, csrf, name=name, role=role, via=via, token_id=token_id
            )

        session = await self._store.write(op)
        return Person(name=name, role=role, via=via, session=session), secret

    def _still_vouched(self, request: Request, session: Session) -> bool:
        """A session that a proxy vouched for lasts while the proxy names the same person."""
        if session.via != "proxy":
            return True
        proxy = self._settings.proxy
        named = self._named_by_proxy(request)
        if proxy is None or named != session.name:
            return False
        return proxy.role_of(session.name) == session.role

    def _named_by_proxy(self, request: Request) -> str | None:
        proxy = self._settings.proxy
        if proxy is None or _peer(request) not in proxy.peers:
            return None
        names = request.headers.getlist(proxy.header)
        return names[0] if len(names) == 1 and is_name(names[0]) else None

    def _count_try(self, request: Request) -> None:
        _within(self._tried_all, "")
        _within(self._tried, _peer(request))

    def _mark(self, nonce: str) -> str:
        return hmac.new(self._before, nonce.encode(), hashlib.sha256).hexdigest()

    def _set(
        self, response: Response, request: Request, name: str, value: str, seconds: int
    ) -> None:
        https = self._settings.https
        secure = https if https is not None else request.url.scheme == "https"
        response.set_cookie(
            name, value, max_age=seconds, httponly=True, samesite="strict", secure=secure, path="/"
        )


def _within(rates: TokenBucket, key: str) -> None:
    seconds = rates.wait(key)
    if seconds:
        raise Problem(429, "too-many", f"too many requests: try again in {seconds:.0f} s")


def _peer(request: Request) -> str:
    return request.client.host if request.client is not None else ""
