"""Runs: a list with filters, one run as a timeline, one call whole."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console.approvals import number_of
from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, page, see_other
from agent_adapter.console.problems import Problem
from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.exec import ledger
from agent_adapter.store import ledger as chain
from agent_adapter.store import queries
from agent_adapter.store.base import Row, Transaction

__all__ = ["CHECKED_AT_ONCE", "ENDINGS", "ROUTES", "Step", "call_of", "line_of", "steps_of"]

PAGE = 50
CALLS = 100
CHECKED_AT_ONCE = 1_000
"""A chain of up to so many entries is checked with its page; a longer one when asked for."""

ENDINGS = ("ok", "no-effect", "failed", "unknown", "aborted")
_TOLD = ("approval-requested", "approval-decided", "resolved", "late-outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call in a timeline, with what was said about it; texts are whole."""

    row: Row
    arguments: str
    result: str
    tries: int
    notes: tuple[dict[str, Any], ...]
    live: bool


async def _list(console: Console, request: Request, person: Person) -> Response:
    asked = {name: request.query_params.get(name, "").strip() for name in ("tool", "ending", "who")}
    run = request.query_params.get("run", "").strip()
    if run:
        return see_other(f"/runs/{_quoted(run)}")
    if asked["ending"] not in ("", *ENDINGS):
        raise Problem(422, "ending", f"no ending {asked['ending']!r}")
    start = number_of(request, "start")
    tenant = console.settings.tenant
    lines, more = await console.store.read(
        lambda tx: queries.runs(
            tx,
            tenant,
            limit=PAGE,
            start=start,
            tool=asked["tool"] or None,
            principal=asked["who"] or None,
            ending=asked["ending"] or None,
        )
    )
    return console.render(
        request, "runs.html", lines=lines, more=more, asked=asked, endings=ENDINGS
    )


async def _show(console: Console, request: Request, person: Person) -> Response:
    run_id = request.path_params["id"]
    start = number_of(request, "start")
    line = await line_of(console, run_id)
    steps, more = await steps_of(console, run_id, start, CALLS)
    refusals = await console.store.read(lambda tx: _refusals(tx, run_id)) if start is None else []
    report = await _report(console, run_id) if line.entries <= CHECKED_AT_ONCE else None
    labels = await console.store.read(
        lambda tx: tx.select("taints", {"scope": f"run:{run_id}"}, order_by="at", limit=50)
    )
    return console.render(
        request,
        "run.html",
        line=line,
        steps=steps,
        more=more,
        first_page=start is None,
        refusals=refusals,
        report=report,
        labels=labels,
    )


async def _chain(console: Console, request: Request, person: Person) -> Response:
    """Whether the chain is whole: a page of its own, or a part of the run's."""
    run_id = request.path_params["id"]
    line = await line_of(console, run_id)
    report = await _report(console, run_id)
    part = request.headers.get("hx-request")
    template = "_chain.html" if part else "chain.html"
    return console.render(request, template, line=line, report=report)


async def _call(console: Console, request: Request, person: Person) -> Response:
    report = await call_of(console, request.path_params["key"])
    entries = [_entry(row) for row in report.entries]
    return console.render(
        request,
        "call.html",
        report=report,
        row=report.row,
        arguments=_arguments_text(report.row, report.arguments),
        result=_result_text(report.row, report.result),
        entries=entries,
    )


async def line_of(console: Console, run_id: str) -> queries.RunLine:
    """The run's line; `Problem` 404 for none."""
    tenant = console.settings.tenant
    line = await console.store.read(lambda tx: queries.run_line(tx, run_id, tenant))
    if line is None:
        raise Problem(404, "not-found", f"no run {run_id}")
    return line


async def steps_of(
    console: Console, run_id: str, start: float | None, limit: int
) -> tuple[list[Step], float | None]:
    """A page of a run's timeline, and where the next one begins."""
    tenant = console.settings.tenant

    def op(tx: Transaction) -> tuple[list[Step], float | None]:
        found = queries.call_rows(tx, run_id, tenant, limit=limit, start=start)
        notes = _notes(tx, found.rows)
        return [_step(tx, row, notes.get(row["call_key"], ())) for row in found.rows], found.next

    return await console.store.read(op)


async def call_of(console: Console, call_key: str) -> queries.CallReport:
    """The call whole; `Problem` 404 for none."""
    tenant = console.settings.tenant
    report = await console.store.read(lambda tx: queries.call_report(tx, call_key, tenant))
    if report is None:
        raise Problem(404, "not-found", f"no call {call_key}")
    return report


async def _report(console: Console, run_id: str) -> ledger.Report:
    try:
        return await ledger.verify(console.store, run_id)
    except AgentAdapterError as exc:
        raise Problem(404, "not-found", str(exc)) from exc


def _step(tx: Transaction, row: Row, notes: tuple[dict[str, Any], ...]) -> Step:
    tries = max((int(note["facts"].get("tries", 1)) for note in notes), default=1)
    return Step(
        row=row,
        arguments=_arguments_text(row, chain.payload(tx, row["arguments"])),
        result=_result_text(row, chain.payload(tx, row["result"])),
        tries=tries,
        notes=tuple(note for note in notes if note["kind"] in _TOLD),
        live=row["state"] == "open" and tx.is_live(row["owner_id"]),
    )


def _notes(tx: Transaction, rows: list[Row]) -> dict[str, tuple[dict[str, Any], ...]]:
    keys = [row["call_key"] for row in rows]
    notes: dict[str, tuple[dict[str, Any], ...]] = {}
    for entry in tx.select("ledger", {"call_key in": keys}, order_by="at") if keys else []:
        key = entry["call_key"]
        notes[key] = (*notes.get(key, ()), _entry(entry))
    return notes


def _refusals(tx: Transaction, run_id: str) -> list[dict[str, Any]]:
    """Calls of the run that were stopped before they began."""
    where = {"run_id": run_id, "kind": "refused"}
    return [_entry(row) for row in tx.select("ledger", where, order_by="seq", limit=CALLS)]


def _entry(row: Row) -> dict[str, Any]:
    try:
        facts = json.loads(row["body"])
    except (ValueError, TypeError):
        facts = {}
    facts = facts if isinstance(facts, dict) else {}
    known = {"v", "run", "seq", "at", "kind", "call"}
    return {
        "seq": row["seq"],
        "at": row["at"],
        "kind": row["kind"],
        "facts": {name: value for name, value in facts.items() if name not in known},
    }


def _arguments_text(row: Row, data: bytes | None) -> str:
    return "(erased)" if data is None else _laid_out(data)


def _result_text(row: Row, data: bytes | None) -> str:
    if data is None:
        return "(erased)" if row["result"] is not None else ""
    return _laid_out(data.partition(b"\n")[2])


def _laid_out(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace")
    if len(text) > 200_000:
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


ROUTES: list[Route] = [
    page("/runs", _list),
    page("/runs/{id}", _show),
    page("/runs/{id}/chain", _chain),
    page("/calls/{key}", _call),
]
