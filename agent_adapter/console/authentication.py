"""Authentication: who sends a request, and what they may do."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from agent_adapter.console import cookies
from agent_adapter.console.callers import Callers, peer_of, take
from agent_adapter.console.problems import Problem
from agent_adapter.console.settings import Settings, is_name
from agent_adapter.core.rate import TokenBucket
from agent_adapter.store import access, people
from agent_adapter.store.access import Session
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.people import ROLES

TENANT_HEADER = "agent-adapter-tenant"
"""The header in which a program names one of its token's tenants; default: the first by name."""

LIVE_HEADER = "agent-adapter-live"
"""The header of what an open page fetches by itself: it does not keep the session alive."""

_NO_TOKEN = "the token is unknown or revoked"  # noqa: S105  # a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A signed-in person; `via` is the source of the identity (`token`, `proxy`).

    `tenant` is the one whose records they see, with `role`; `tenants` are all that they may choose.
    """

    name: str
    role: str
    via: str
    tenant: str
    tenants: tuple[str, ...]
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
        self._callers = Callers(settings)

    async def authenticate(self, request: Request, *, idle: bool = False) -> Person | None:
        """The person of the session cookie; `None` without a valid session.

        An `idle` request is one that an open page makes by itself: the session's time goes on.
        """
        person = await self._store.read(lambda tx: self._identified(tx, request))
        if person is None or person.session is None:
            return None
        session = person.session
        take(self._reads, session.id)
        if not idle and LIVE_HEADER not in request.headers:
            self._store.post(lambda tx: access.touch_session(tx, session))
        return person

    def is_signed_in(self, tx: Transaction, request: Request, person: Person) -> bool:
        """Whether the request's session is still that person's, in the same tenant."""
        still = self._identified(tx, request)
        return still is not None and still.tenant == person.tenant

    async def authenticate_bearer(self, request: Request) -> Person:
        """The holder of the token in `Authorization: Bearer`; `Problem` 401 without a valid one."""
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secret:
            raise Problem(401, "auth-error", "send a token: Authorization: Bearer aat_…")
        found = await self._store.read(lambda tx: self._token(tx, secret.strip()))
        if found is None:
            self._callers.count_attempt(request)
            self._callers.note_wrong_token(request)
            raise Problem(401, "auth-error", _NO_TOKEN)
        token, roles = found
        self._store.post(lambda tx: access.touch_token(tx, token["id"]))
        take(self._reads if request.method == "GET" else self._writes, token["id"])
        wanted = request.headers.get(TENANT_HEADER, next(iter(roles)))
        if wanted not in roles:
            raise Problem(403, "tenant", f"this token does not belong to the tenant {wanted!r}")
        return _person(token["name"], "token", roles, wanted)

    async def sign_in_by_proxy(self, request: Request) -> tuple[Person, str] | None:
        """A new session and its secret for the person whom the trusted proxy names, if any."""
        name = self._proxy_name(request)
        if name is None:
            return None
        known: str = name
        roles = await self._store.read(lambda tx: self._proxy_roles(tx, known))
        if not roles:
            return None
        self._callers.note_signed_in(request, known, "proxy")
        return await self._new_session(known, roles, "proxy", None)

    async def sign_in(self, request: Request, secret: str) -> tuple[Person, str]:
        """A new session and its secret for the holder of a token."""
        self._callers.count_attempt(request)
        found = await self._store.read(lambda tx: self._token(tx, secret.strip()))
        if found is None:
            self._callers.note_wrong_token(request)
            raise Problem(401, "auth-error", _NO_TOKEN)
        token, roles = found
        self._callers.note_signed_in(request, token["name"], "token")
        return await self._new_session(token["name"], roles, "token", token["id"])

    async def choose_tenant(self, person: Person, tenant: str | None) -> None:
        """Let the person's session look at another of their tenants; `Problem` 403 for no such."""
        session = person.session
        if session is None or tenant is None or tenant not in person.tenants:
            raise Problem(403, "tenant", f"{person.name} does not belong to the tenant {tenant!r}")

        def op(tx: Transaction) -> None:
            role = self._roles_of_session(tx, session).get(tenant)
            if role is not None:
                access.move_session(tx, session.id, tenant, role)

        await self._store.write(op)

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
        take(self._writes, session.id)

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
        nonce = cookies.read_cookie(request, cookies.SIGN_IN) or secrets.token_urlsafe(16)
        https = self._settings.https
        cookies.set_cookie(response, request, cookies.SIGN_IN, nonce, seconds=3600, https=https)
        return self._sign_in_csrf(nonce)

    def check_sign_in_csrf(self, request: Request, token: str) -> None:
        """Raise `Problem` 403 unless this browser got the sign-in form."""
        self.check_origin(request)
        nonce = cookies.read_cookie(request, cookies.SIGN_IN) or ""
        if not nonce or not hmac.compare_digest(token.encode(), self._sign_in_csrf(nonce).encode()):
            raise Problem(403, "csrf", "This page is too old, or cookies are disabled. Reload it.")

    def set_session_cookie(self, response: Response, request: Request, secret: str) -> None:
        """Give the browser its session."""
        seconds, https = int(access.ABSOLUTE_SECONDS), self._settings.https
        cookies.set_cookie(response, request, cookies.SESSION, secret, seconds=seconds, https=https)

    def delete_session_cookie(self, response: Response, request: Request) -> None:
        """Take the session from the browser."""
        cookies.delete_cookie(response, request, cookies.SESSION)

    async def _new_session(
        self, name: str, roles: Mapping[str, str], via: str, token_id: str | None
    ) -> tuple[Person, str]:
        secret, csrf = access.new_secret("ses"), secrets.token_urlsafe(24)
        tenant, role = next(iter(roles.items()))
        given = {"name": name, "role": role, "via": via, "tenant": tenant}
        session = await self._store.write(
            lambda tx: access.new_session(tx, secret, csrf, token_id=token_id, **given)
        )
        return _person(name, via, roles, tenant, session), secret

    def _token(self, tx: Transaction, secret: str) -> tuple[Row, dict[str, str]] | None:
        """The token and its role in each tenant that is shown here; `None` if it has none."""
        row = access.token_of(tx, secret)
        roles = {} if row is None else self._token_roles(tx, row)
        return None if row is None or not roles else (row, roles)

    def _token_roles(self, tx: Transaction, token: Row) -> dict[str, str]:
        return self._shown(access.roles_of(tx, token, default=self._settings.only or ""))

    def _identified(self, tx: Transaction, request: Request) -> Person | None:
        """Whose session it is, with the roles that they have now."""
        secret = cookies.read_cookie(request, cookies.SESSION)
        session = access.session_of(tx, secret) if secret else None
        if session is None or session.tenant is None or not self._proxy_confirms(request, session):
            return None
        roles = self._roles_of_session(tx, session)
        if roles.get(session.tenant) != session.role:
            return None
        return _person(session.name, session.via, roles, session.tenant, session)

    def _roles_of_session(self, tx: Transaction, session: Session) -> dict[str, str]:
        if session.token_id is None:
            return self._proxy_roles(tx, session.name)
        token = tx.get("tokens", session.token_id)
        return {} if token is None else self._token_roles(tx, token)

    def _proxy_roles(self, tx: Transaction, name: str) -> dict[str, str]:
        """A linked person's own roles; else the role that the settings give, in one tenant."""
        proxy = self._settings.proxy
        role = None if proxy is None else proxy.role_of(name)
        own = {} if role is None else {self._settings.only or "": role}
        return self._shown(people.allowed(tx, f"proxy:{name}", own, at_most=False))

    def _shown(self, roles: Mapping[str, str]) -> dict[str, str]:
        only = self._settings.only
        return {each: roles[each] for each in sorted(roles) if only is None or each == only}

    def _proxy_confirms(self, request: Request, session: Session) -> bool:
        """Whether the proxy that signed the person in still names them."""
        return session.via != "proxy" or self._proxy_name(request) == session.name

    def _proxy_name(self, request: Request) -> str | None:
        proxy = self._settings.proxy
        if proxy is None or peer_of(request) not in proxy.peers:
            return None
        names = request.headers.getlist(proxy.header)
        # A second header of that name could come from the client: then neither is believed.
        return names[0] if len(names) == 1 and is_name(names[0]) else None

    def _sign_in_csrf(self, nonce: str) -> str:
        return hmac.new(self._sign_in_key, nonce.encode(), hashlib.sha256).hexdigest()


def _person(
    name: str, via: str, roles: Mapping[str, str], tenant: str, session: Session | None = None
) -> Person:
    return Person(
        name=name,
        role=roles[tenant],
        via=via,
        tenant=tenant,
        tenants=tuple(roles),
        session=session,
    )
