"""The approvals pages: requests that wait for a person, and the forms that decide them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console import actions
from agent_adapter.console.argument_form import Field, fields_of, read_form
from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, Form, action, page, see_other
from agent_adapter.console.parameters import Parameters, Start, read_query
from agent_adapter.console.problems import Problem
from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.exec.approval.inbox import ApprovalRecord, Inbox
from agent_adapter.store import queries
from agent_adapter.store.approvals import Seen

PAGE_SIZE = 25

# The list must not offer to approve what it does not show: longer arguments have their own page.
_MAX_LISTED = 8_000

ApprovalState = Literal[
    "pending", "approved", "denied", "answered", "taken", "expired", "withdrawn"
]


class _ApprovalListQuery(Parameters):
    state: Literal[ApprovalState, "all"] = "pending"
    after: Start = None


async def list_pending(console: Console) -> tuple[list[str], int]:
    """The ids on the first page of pending requests, and the number of all pending requests."""
    tenant = console.settings.tenant
    return await console.store.read(lambda tx: queries.pending_approvals(tx, tenant, PAGE_SIZE))


async def approval_page(
    console: Console,
    state: ApprovalState | Literal["all"],
    *,
    limit: int,
    after: float | None,
    newest_first: bool = False,
) -> tuple[list[ApprovalRecord], float | None]:
    """One page of the tenant's records, and the `after` of the next page."""
    found = await Inbox(console.store, tenant=console.settings.tenant).list(
        None if state == "all" else state,
        limit=limit + 1,
        after=after,
        newest_first=newest_first,
    )
    return found[:limit], found[limit - 1].created_at if len(found) > limit else None


async def _list(console: Console, request: Request, person: Person) -> Response:
    query = read_query(request, _ApprovalListQuery)
    state = query.state
    records, more = await approval_page(
        console, state, limit=PAGE_SIZE, after=query.after, newest_first=state != "pending"
    )
    _, total = await list_pending(console)
    return console.render(
        request,
        "approvals.html",
        records=records,
        identical=_identical(records) if state == "pending" else [],
        state=state,
        states=(*get_args(ApprovalState), "all"),
        more=more,
        first_page=query.after is None,
        total=total,
        now=await _now(console),
        max_listed=_MAX_LISTED,
    )


async def _item(console: Console, request: Request, person: Person) -> Response:
    """One record as an item of the list; an open page adds it without a reload."""
    record = await _record(console, request)
    if record.state != "pending":
        raise Problem(404, "not-found", "the request is not pending any more")
    return console.render(
        request, "_approval.html", record=record, now=await _now(console), max_listed=_MAX_LISTED
    )


async def _outcome(console: Console, request: Request, person: Person) -> Response:
    """One record as an item of the list, however it stands: a decided one keeps its place."""
    record = await _record(console, request)
    return console.render(
        request, "_approval.html", record=record, now=await _now(console), max_listed=_MAX_LISTED
    )


async def _show(console: Console, request: Request, person: Person) -> Response:
    record = await _record(console, request)
    return await _render_record(console, request, record)


async def _render_record(
    console: Console,
    request: Request,
    record: ApprovalRecord,
    *,
    problem: Problem | None = None,
    sent: Form | None = None,
) -> Response:
    return console.render(
        request,
        "approval.html",
        status=problem.status if problem is not None else 200,
        record=record,
        fields=_fields(console, record),
        raw=json.dumps(record.will_run, indent=2),
        has_schema=actions.spec_of(console.settings, record) is not None,
        problem=problem,
        sent=sent or {},
        now=await _now(console),
        key=await _has_key(console, request),
    )


async def _decide(console: Console, request: Request, person: Person, form: Form) -> Response:
    record = await actions.decide(
        console.settings,
        person,
        request.path_params["id"],
        _verdict(form),
        seen=_seen(form),
        reason=form.get("reason"),
        undo_within=console.settings.undo_window,
    )
    if not request.headers.get("hx-request"):
        return see_other("/approvals")
    return console.render(
        request, "_approval.html", record=record, now=await _now(console), max_listed=_MAX_LISTED
    )


async def _edit(console: Console, request: Request, person: Person, form: Form) -> Response:
    record = await _record(console, request)
    try:
        arguments = _form_arguments(console, record, form)
        await actions.decide(
            console.settings,
            person,
            record.id,
            "approved",
            seen=_seen(form),
            reason=form.get("reason"),
            arguments=None if _is_same(arguments, record.will_run) else arguments,
            undo_within=console.settings.undo_window,
        )
    except Problem as problem:
        if problem.status != 422:
            raise
        return await _render_record(console, request, record, problem=problem, sent=form)
    return see_other(f"/approvals/{record.id}")


async def _decide_several(
    console: Console, request: Request, person: Person, form: Form
) -> Response:
    decided, failed = await actions.decide_several(
        console.settings,
        person,
        [_seen_record(text) for text in request.state.records],
        _verdict(form),
        reason=form.get("reason"),
    )
    if failed:
        text = f"{len(decided)} decided, {len(failed)} not decided: " + "; ".join(failed)
        raise Problem(409, "stale", text)
    return see_other("/approvals")


def _verdict(form: Form) -> actions.Verdict:
    match form.get("verdict"):
        case "approved":
            return "approved"
        case "denied":
            return "denied"
    raise Problem(422, "verdict", "verdict: approved or denied is required")


def _form_arguments(console: Console, record: ApprovalRecord, form: Form) -> dict[str, Any]:
    if "raw" not in form:
        return read_form(record.will_run, _fields(console, record), form)
    try:
        arguments = json.loads(form["raw"])
    except (ValueError, RecursionError) as exc:
        raise Problem(422, "tool-args-invalid", f"the arguments are not JSON: {exc}") from exc
    if not isinstance(arguments, dict):
        raise Problem(422, "tool-args-invalid", "the arguments must be a JSON object")
    return arguments


def _fields(console: Console, record: ApprovalRecord) -> list[Field]:
    spec = actions.spec_of(console.settings, record)
    return fields_of(record.will_run, None if spec is None else spec.json_schema())


def _identical(records: Sequence[ApprovalRecord]) -> list[list[ApprovalRecord]]:
    """The groups of identical requests: each can be decided at once."""
    groups: dict[str, list[ApprovalRecord]] = {}
    for record in records:
        groups.setdefault(record.alike, []).append(record)
    return [group for group in groups.values() if len(group) > 1]


async def _record(console: Console, request: Request) -> ApprovalRecord:
    return await actions.approval_record(console.settings, request.path_params["id"])


def _is_same(arguments: Any, others: Any) -> bool:
    """Whether the same would run: 1, 1.0 and true differ."""
    return json.dumps(arguments, sort_keys=True) == json.dumps(others, sort_keys=True)


async def _has_key(console: Console, request: Request) -> bool:
    person: Person = request.state.person
    try:
        return console.settings.key_of(person.name) is not None
    except AgentAdapterError:
        return False


def _seen(form: Form) -> Seen:
    if not form.get("digest") or not form.get("version"):
        raise Problem(422, "seen", "the form lacks digest or version: reload the page")
    return Seen(digest=form["digest"], version=form["version"])


def _seen_record(text: str) -> tuple[str, Seen]:
    id, digest, version = [*text.split("|"), "", ""][:3]
    return id, _seen({"digest": digest, "version": version})


async def _now(console: Console) -> float:
    return await console.store.read(lambda tx: tx.now)


ROUTES: list[Route] = [
    page("/approvals", _list),
    action("/approvals/alike", _decide_several),
    page("/approvals/{id}", _show),
    page("/approvals/{id}/item", _item),
    page("/approvals/{id}/outcome", _outcome),
    action("/approvals/{id}/decide", _decide),
    action("/approvals/{id}/edit", _edit),
]
