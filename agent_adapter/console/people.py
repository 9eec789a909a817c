"""Who may do what: people with their log-ins and roles, and tokens, managed by admins."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, Form, action, page, see_other
from agent_adapter.console.problems import Problem
from agent_adapter.console.repairs import check_whole_store
from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.exec.approval.signing import checked_public_key
from agent_adapter.store import access, people
from agent_adapter.store.base import Operation, Row, Transaction
from agent_adapter.store.people import ROLES
from agent_adapter.store.refusal import Refusal


async def _show(console: Console, request: Request, person: Person) -> Response:
    return await _render(console, request, person)


async def _render(
    console: Console, request: Request, person: Person, *, made: str = "", secret: str = ""
) -> Response:
    """The page; with the `secret` of the token that was `made`, which is never shown again."""
    tenant = console.settings.tenant

    def op(tx: Transaction) -> tuple[list[Row], list[Row]]:
        known = [row for row in people.people(tx) if not tenant or tenant in row["roles"]]
        tokens = [row | {"of": _tenants(row)} for row in access.tokens(tx)]
        return known, [row for row in tokens if not tenant or tenant in row["of"]]

    known, tokens = await console.store.read(op)
    return console.render(
        request,
        "people.html",
        people=[_shown(row, tenant) for row in known],
        tokens=tokens,
        roles=ROLES,
        whole=not tenant,
        made=made,
        secret=secret,
    )


async def _add(console: Console, request: Request, person: Person, form: Form) -> Response:
    check_whole_store(person)
    name, by = form.get("name", ""), person.reviewer
    await _done(console, lambda tx: people.add(tx, name, by=by))
    return see_other("/people")


async def _link(console: Console, request: Request, person: Person, form: Form) -> Response:
    """Link log-ins or a key, or give a role: in one's own tenant every admin may do that."""
    logins, role = form.get("logins", "").split(), form.get("role", "")
    key = _public_key(form.get("key", "").strip() or None)
    valid_for = _seconds(form.get("days", ""))
    tenant = form.get("tenant", "").strip() if not person.tenant else person.tenant
    if logins or key or form.get("rotate"):
        check_whole_store(person)
    if not (logins or key or role):
        raise Problem(422, "people", "nothing to link: give a log-in, a key or a role")
    if form.get("rotate") and key is None:
        raise Problem(422, "people", "key: ending the other keys needs the new one")
    who, by = form.get("who", ""), person.reviewer

    def op(tx: Transaction) -> Row | Refusal:
        return people.link(
            tx,
            who,
            logins=logins,
            key=key,
            valid_for=valid_for,
            rotate=bool(form.get("rotate")),
            roles={tenant: role} if role else {},
            by=by,
        )

    await _done(console, op)
    return see_other("/people")


async def _revoke(console: Console, request: Request, person: Person, form: Form) -> Response:
    check_whole_store(person)
    which, by = form.get("which", ""), person.reviewer
    await _done(console, lambda tx: people.revoke(tx, which, by=by))
    return see_other("/people")


async def _create_token(console: Console, request: Request, person: Person, form: Form) -> Response:
    tenants = [each.strip() for each in form.get("tenants", "").split(",")]
    if person.tenant:
        tenants = [person.tenant]
    secret, by = access.new_secret(), person.reviewer
    name, role = form.get("name", "").strip(), form.get("role", "")
    row = await _done(
        console,
        lambda tx: access.create_token(tx, name, role, secret, tenants=tenants, by=by),
    )
    made = f"{row['name']} ({row['role']}), {row['id']}"
    return await _render(console, request, person, made=made, secret=secret)


async def _revoke_token(console: Console, request: Request, person: Person, form: Form) -> Response:
    id, by, tenant = form.get("id", ""), person.reviewer, person.tenant

    def op(tx: Transaction) -> Row | Refusal:
        row = tx.get("tokens", id)
        if row is None or (tenant and tenant not in _tenants(row)):
            return Refusal(reason=f"no token {id}")
        if tenant and _tenants(row) != [tenant]:
            return Refusal(reason=f"token {id} belongs to other tenants, too: ask their admins")
        return access.revoke_token(tx, id, by=by)

    await _done(console, op)
    return see_other("/people")


async def _done(console: Console, op: Operation[Row | Refusal]) -> Row:
    row = await console.store.write(op)
    if isinstance(row, Refusal):
        raise Problem(422, "people", f"{row.reason}; nothing was changed")
    return row


def _tenants(token: Row) -> list[str]:
    """The tenants of a token; one of 0.1 has those of whatever console it is used in."""
    tenants: list[str] = json.loads(token["tenants"] or '[""]')
    return tenants


def _shown(row: Row, tenant: str) -> dict[str, Any]:
    logins = [each for each in row["logins"] if not each["login"].startswith("name:")]
    roles = {of: role for of, role in row["roles"].items() if not tenant or of == tenant}
    return row | {"logins": logins, "roles": roles}


def _public_key(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return checked_public_key(text)
    except AgentAdapterError as exc:
        raise Problem(
            422, "people", "key: paste the public key, ed25519:…, of the person's .pub file"
        ) from exc


def _seconds(days: str) -> float | None:
    if not days.strip():
        return None
    if not days.strip().isdecimal() or not 0 < int(days) <= 36_500:
        raise Problem(422, "people", "days: for how many days the key counts, such as 90")
    return int(days) * 86_400.0


ROUTES: list[Route] = [
    page("/people", _show, role="admin"),
    action("/people/add", _add, role="admin"),
    action("/people/link", _link, role="admin"),
    action("/people/revoke", _revoke, role="admin"),
    action("/tokens/create", _create_token, role="admin"),
    action("/tokens/revoke", _revoke_token, role="admin"),
]
