"""The forms that decide records, one by one; each carries what the person saw."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console import actions, approvals
from agent_adapter.console.argument_form import read_form
from agent_adapter.console.argument_view import view_of
from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, Form, action, see_other
from agent_adapter.console.problems import Problem
from agent_adapter.exec.approval.inbox import ApprovalRecord, Verdict
from agent_adapter.store.approvals import Seen

_WITHDRAWN = "withdrawn in the console"


async def _decide(console: Console, request: Request, person: Person, form: Form) -> Response:
    verdict, seen = verdict_of(form), seen_of(form)
    record = await approvals.record_of_path(console, request)
    in_place = bool(request.headers.get("hx-request"))
    if verdict == "approved" and record.state == "pending":
        _check_opened(record, form)
        if record.irreversible and not form.get("confirmed"):
            # Nothing is decided yet: the person confirms what they see now.
            if in_place:
                said = {"confirming": True, "sent_reason": form.get("reason", "")}
                return await approvals.render_item(console, request, record, **said)
            return await approvals.render_record(
                console, request, record, sent=form, confirming=True
            )
    decided = await actions.decide(
        console.settings,
        person,
        record.id,
        verdict,
        seen=seen,
        reason=None if verdict == "answered" else form.get("reason"),
        answer=_answer(form) if verdict == "answered" else None,
        undo_within=console.settings.undo_window,
    )
    if in_place:
        return await approvals.render_item(console, request, decided)
    return see_other(_own_page(request, record.id))


async def _edit(console: Console, request: Request, person: Person, form: Form) -> Response:
    record = await approvals.record_of_path(console, request)
    try:
        arguments = _form_arguments(console, record, form)
        await actions.decide(
            console.settings,
            person,
            record.id,
            "approved",
            seen=seen_of(form),
            reason=form.get("reason"),
            arguments=None if _is_same(arguments, record.will_run) else arguments,
            undo_within=console.settings.undo_window,
        )
    except Problem as problem:
        if problem.status != 422:
            raise
        return await approvals.render_record(console, request, record, problem=problem, sent=form)
    return see_other(_own_page(request, record.id))


async def _undo(console: Console, request: Request, person: Person, form: Form) -> Response:
    record = await actions.undo(console.settings, person, request.path_params["id"])
    if request.headers.get("hx-request"):
        return await approvals.render_item(console, request, record)
    return see_other(_own_page(request, record.id))


async def _withdraw(console: Console, request: Request, person: Person, form: Form) -> Response:
    reason = form.get("reason", "").strip() or _WITHDRAWN
    id = request.path_params["id"]
    await actions.withdraw(console.settings, person, id, reason)
    return see_other(_own_page(request, id))


def verdict_of(form: Form) -> Verdict:
    """What the form says; `Problem` 422 without a button pressed."""
    match form.get("verdict"):
        case "approved":
            return "approved"
        case "denied":
            return "denied"
        case "answered":
            return "answered"
    raise Problem(422, "verdict", "verdict: approved, denied or answered is required")


def seen_of(form: Form) -> Seen:
    """What the person saw; `Problem` 422 for a form that does not say it."""
    if not form.get("digest") or not form.get("version"):
        raise Problem(422, "seen", "the form lacks digest or version: reload the page")
    return Seen(digest=form["digest"], version=form["version"])


def _check_opened(record: ApprovalRecord, form: Form) -> None:
    """A page that shows the start of a value says when the rest was opened."""
    if "whole" in form and not form["whole"] and view_of(record).has_rest:
        raise Problem(422, "unopened", "open the rest of what will run first; nothing was decided")


def _answer(form: Form) -> str:
    answer = form.get("reason", "").replace("\r\n", "\n")
    if not answer.strip():
        raise Problem(
            422, "answer", "write the answer that the agent gets first; nothing was decided"
        )
    return answer


def _own_page(request: Request, id: str) -> str:
    query = request.url.query
    return f"/approvals/{id}" + (f"?{query}" if query else "")


def _form_arguments(console: Console, record: ApprovalRecord, form: Form) -> dict[str, Any]:
    if "raw" not in form:
        return read_form(record.will_run, approvals.form_fields(console, record), form)
    try:
        arguments = json.loads(form["raw"])
    except (ValueError, RecursionError) as exc:
        raise Problem(422, "tool-args-invalid", f"the arguments are not JSON: {exc}") from exc
    if not isinstance(arguments, dict):
        raise Problem(422, "tool-args-invalid", "the arguments must be a JSON object")
    return arguments


def _is_same(arguments: Any, others: Any) -> bool:
    """Whether the same would run: 1, 1.0 and true differ."""
    return json.dumps(arguments, sort_keys=True) == json.dumps(others, sort_keys=True)


ROUTES: list[Route] = [
    action("/approvals/{id}/decide", _decide),
    action("/approvals/{id}/edit", _edit),
    action("/approvals/{id}/undo", _undo),
    action("/approvals/{id}/withdraw", _withdraw),
]
