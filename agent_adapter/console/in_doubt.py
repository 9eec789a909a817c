"""The page of writes with unknown outcome, and the form that resolves one."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console import actions
from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, Form, action, page, see_other
from agent_adapter.console.problems import Problem
from agent_adapter.core.json_values import json_or_text
from agent_adapter.store import doubt, ledger
from agent_adapter.store.base import Row, Transaction

_LISTED = 100


async def list_in_doubt(console: Console) -> tuple[list[dict[str, Any]], int]:
    """The oldest writes with unknown outcome, with their arguments as text, and the total."""
    tenant = console.settings.tenant

    def op(tx: Transaction) -> tuple[list[dict[str, Any]], int]:
        rows = doubt.in_doubt(tx, tenant)
        return [_with_arguments(tx, row) for row in rows[:_LISTED]], len(rows)

    return await console.store.read(op)


async def _list(console: Console, request: Request, person: Person) -> Response:
    calls, total = await list_in_doubt(console)
    return console.render(request, "in_doubt.html", calls=calls, total=total)


async def _resolve(console: Console, request: Request, person: Person, form: Form) -> Response:
    answer = form.get("answer")
    if answer not in ("done", "not-done"):
        raise Problem(422, "answer", "answer: choose whether the call happened")
    if not form.get("reason", "").strip():
        raise Problem(422, "reason", "reason: say how you know")
    text = form.get("result", "").strip()
    if text and answer == "not-done":
        raise Problem(422, "result", "result: a call that did not happen has none")
    await actions.resolve(
        console.settings,
        person,
        request.path_params["key"],
        happened=answer == "done",
        result=json_or_text(text) if text else None,
        reason=form["reason"].strip(),
    )
    return see_other("/in-doubt")


def _with_arguments(tx: Transaction, row: Row) -> dict[str, Any]:
    data = ledger.payload(tx, row["arguments"])
    known = "started by a process that died" if row["state"] == "open" else f"ended {row['ending']}"
    text = "(erased)" if data is None else data.decode("utf-8", "backslashreplace")
    return {**row, "text": text, "known": known}


ROUTES: list[Route] = [
    page("/in-doubt", _list),
    action("/in-doubt/{key}", _resolve),
]
