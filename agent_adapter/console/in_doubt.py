"""The page of writes with unknown outcome, and the form that resolves one."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console import actions
from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, Form, action, page, see_other
from agent_adapter.console.paging import page_links
from agent_adapter.console.parameters import Parameters, Text, read_query
from agent_adapter.console.problems import Problem
from agent_adapter.core.json_values import json_or_text
from agent_adapter.store import doubt, ledger
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.conditions import has_text

_LISTED = 50
_SEARCHED = ("tool", "run_id", "principal", "call_key")


class _DoubtQuery(Parameters):
    q: Text = None
    start: Annotated[int, Field(ge=0, le=1_000_000)] = 0


async def list_in_doubt(
    console: Console, *, text: str | None = None, start: int = 0
) -> tuple[list[dict[str, Any]], int]:
    """The oldest writes with unknown outcome, with their arguments as text, and the total.

    `text` is a part of a tool's, a run's or a person's name, or of the call's key.
    """
    tenant = console.settings.tenant

    def op(tx: Transaction) -> tuple[list[dict[str, Any]], int]:
        rows = doubt.in_doubt(tx, tenant)
        if text is not None:
            rows = [row for row in rows if any(has_text(row[name], text) for name in _SEARCHED)]
        return [_with_arguments(tx, row) for row in rows[start : start + _LISTED]], len(rows)

    return await console.store.read(op)


async def _list(console: Console, request: Request, person: Person) -> Response:
    query = read_query(request, _DoubtQuery)
    calls, total = await list_in_doubt(console, text=query.q, start=query.start)
    following = query.start + _LISTED if total > query.start + _LISTED else None
    filters = {"q": query.q}
    links = page_links(request, filters, start=query.start, following=following)
    return console.render(
        request, "in_doubt.html", calls=calls, total=total, filters=filters, links=links
    )


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
