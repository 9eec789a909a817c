"""The approvals inbox: what waits for a person, and their word on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console import actions
from agent_adapter.console.argument_form import Field, edited, fields_of
from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, Form, action, page, see_other
from agent_adapter.console.problems import Problem
from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.exec.approval.inbox import ApprovalRecord, Inbox
from agent_adapter.store.approvals import Seen
from agent_adapter.store.base import Transaction

__all__ = ["LONG", "PAGE", "ROUTES", "waiting"]

PAGE = 25
LONG = 8_000
"""Characters of arguments that the list shows whole; more are decided on the record's own page."""

STATES = ("pending", "approved", "denied", "taken", "expired", "all")


async def waiting(console: Console) -> tuple[list[str], int]:
    """The ids on the inbox's first page, and how many wait in all."""
    tenant = console.settings.tenant

    def op(tx: Transaction) -> tuple[list[str], int]:
        where = {"tenant": tenant, "state": "pending", "decide_by >=": tx.now}
        rows = tx.select("approvals", where, order_by="created_at", limit=PAGE)
        return [row["id"] for row in rows], tx.count("approvals", where)

    return await console.store.read(op)


async def _list(console: Console, request: Request, person: Person) -> Response:
    state = request.query_params.get("state", "pending")
    if state not in STATES:
        raise Problem(422, "state", f"no state {state!r}; there are {', '.join(STATES)}")
    after = number_of(request, "after")
    inbox = Inbox(console.store, tenant=console.settings.tenant)
    records = await inbox.list(
        None if state == "all" else state,
        limit=PAGE + 1,
        after=after,
        newest_first=state != "pending",
    )
    more = records[PAGE - 1].created_at if len(records) > PAGE else None
    records = records[:PAGE]
    _, total = await waiting(console)
    return console.render(
        request,
        "approvals.html",
        records=records,
        alike=_alike(records) if state == "pending" else [],
        state=state,
        states=STATES,
        more=more,
        first_page=after is None,
        total=total,
        now=await _now(console),
        long=LONG,
    )


async def _item(console: Console, request: Request, person: Person) -> Response:
    """One record as an entry of the list, for pages that are open already."""
    record = await _record(console, request)
    if record.state != "pending":
        raise Problem(404, "not-found", "it does not wait any more")
    return console.render(
        request, "_approval.html", record=record, now=await _now(console), long=LONG
    )


async def _show(console: Console, request: Request, person: Person) -> Response:
    record = await _record(console, request)
    return await _shown(console, request, record)


async def _shown(
    console: Console,
    request: Request,
    record: ApprovalRecord,
    *,
    problem: Problem | None = None,
    sent: Form | None = None,
) -> Response:
    sources = await console.store.read(lambda tx: _taint_sources(tx, record))
    return console.render(
        request,
        "approval.html",
        status=problem.status if problem is not None else 200,
        record=record,
        fields=_fields(console, record),
        raw=json.dumps(record.arguments, indent=2),
        has_schema=actions.spec_of(console.settings, record) is not None,
        sources=sources,
        problem=problem,
        sent=sent or {},
        now=await _now(console),
        key=await _has_key(console, request),
    )


async def _decide(console: Console, request: Request, person: Person, form: Form) -> Response:
    id = request.path_params["id"]
    verdict = form.get("verdict")
    if verdict not in ("approved", "denied"):
        raise Problem(422, "verdict", "say approved or denied")
    record = await actions.decide(
        console.settings,
        person,
        id,
        "approved" if verdict == "approved" else "denied",
        seen=_seen(form),
        reason=form.get("reason"),
    )
    if not request.headers.get("hx-request"):
        return see_other("/approvals")
    if record.state != "pending":
        return Response("")  # the page takes the entry away
    return console.render(
        request, "_approval.html", record=record, now=await _now(console), long=LONG
    )


async def _edit(console: Console, request: Request, person: Person, form: Form) -> Response:
    record = await _record(console, request)
    try:
        arguments = _edited(console, record, form)
        await actions.decide(
            console.settings,
            person,
            record.id,
            "approved",
            seen=_seen(form),
            reason=form.get("reason"),
            arguments=arguments if arguments != record.arguments else None,
        )
    except Problem as problem:
        if problem.status != 422:
            raise
        return await _shown(console, request, record, problem=problem, sent=form)
    return see_other(f"/approvals/{record.id}")


async def _decide_alike(console: Console, request: Request, person: Person, form: Form) -> Response:
    verdict = form.get("verdict")
    if verdict not in ("approved", "denied"):
        raise Problem(422, "verdict", "say approved or denied")
    records = [_mark(text) for text in request.state.several]
    decided, failed = await actions.decide_alike(
        console.settings,
        person,
        records,
        "approved" if verdict == "approved" else "denied",
        reason=form.get("reason"),
    )
    if failed:
        lines = f"{len(decided)} decided, {len(failed)} not: " + "; ".join(failed)
        raise Problem(409, "stale", lines)
    return see_other("/approvals")


def _edited(console: Console, record: ApprovalRecord, form: Form) -> dict[str, Any]:
    if "raw" not in form:
        return edited(record.arguments, _fields(console, record), form)
    try:
        arguments = json.loads(form["raw"])
    except (ValueError, RecursionError) as exc:
        raise Problem(422, "tool-args-invalid", f"the arguments are not JSON: {exc}") from exc
    if not isinstance(arguments, dict):
        raise Problem(422, "tool-args-invalid", "the arguments are one JSON object")
    return arguments


def _fields(console: Console, record: ApprovalRecord) -> list[Field]:
    spec = actions.spec_of(console.settings, record)
    return fields_of(record.arguments, None if spec is None else spec.json_schema())


def _alike(records: Sequence[ApprovalRecord]) -> list[list[ApprovalRecord]]:
    """Records that ask for the same: what one word may decide."""
    groups: dict[tuple[str, str, str], list[ApprovalRecord]] = {}
    for record in records:
        groups.setdefault((record.fingerprint, record.digest, record.shown), []).append(record)
    return [group for group in groups.values() if len(group) > 1]


async def _record(console: Console, request: Request) -> ApprovalRecord:
    try:
        inbox = Inbox(console.store, tenant=console.settings.tenant)
        return await inbox.get(request.path_params["id"])
    except AgentAdapterError as exc:
        raise Problem(404, "not-found", str(exc)) from exc


def _taint_sources(tx: Transaction, record: ApprovalRecord) -> list[dict[str, Any]]:
    """When each label came on the run or thread, and the call that brought it, where that shows."""
    scopes = [f"run:{record.run_id}"]
    row = tx.get("approvals", record.id)
    if record.thread_id is not None and row is not None:
        scopes.append(f"thread:{row['tenant']}:{record.thread_id}")
    found = tx.select("taints", {"scope in": scopes}, order_by="at", limit=50)
    return [{"label": each["label"], "scope": each["scope"], "at": each["at"]} for each in found]


async def _has_key(console: Console, request: Request) -> bool:
    person: Person = request.state.person
    try:
        return console.settings.key_of(person.name) is not None
    except AgentAdapterError:
        return False


def _seen(form: Form) -> Seen:
    if not form.get("digest") or not form.get("version"):
        raise Problem(422, "seen", "the form does not say what was seen: load the page again")
    return Seen(digest=form["digest"], version=form["version"])


def _mark(text: str) -> tuple[str, Seen]:
    id, digest, version = [*text.split("|"), "", ""][:3]
    return id, _seen({"digest": digest, "version": version})


async def _now(console: Console) -> float:
    return await console.store.read(lambda tx: tx.now)


def number_of(request: Request, name: str) -> float | None:
    """A number in the query, if there is one."""
    text = request.query_params.get(name, "")
    try:
        value = float(text) if text else None
    except ValueError:
        value = float("nan")
    if value is not None and not abs(value) < 1e15:
        raise Problem(422, "query", f"{name} is a number, not {text!r:.40}")
    return value


ROUTES: list[Route] = [
    page("/approvals", _list),
    action("/approvals/alike", _decide_alike),
    page("/approvals/{id}", _show),
    page("/approvals/{id}/item", _item),
    action("/approvals/{id}/decide", _decide),
    action("/approvals/{id}/edit", _edit),
]
