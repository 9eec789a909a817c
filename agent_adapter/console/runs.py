"""The runs pages: a list with filters, one run as a timeline, and one call."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, page, see_other
from agent_adapter.console.paging import page_links
from agent_adapter.console.parameters import (
    Moment,
    Parameters,
    Start,
    Text,
    read_query,
    seconds_of,
)
from agent_adapter.console.problems import Problem
from agent_adapter.console.routing import in_path
from agent_adapter.console.row_types import CallRow
from agent_adapter.console.timeline import (
    TimelineFilter,
    TimelineItem,
    TimelineStatus,
    timeline,
)
from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.exec import ledger
from agent_adapter.store import ledger as chain
from agent_adapter.store import queries, switch
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.run_search import RunFilter, RunStatus, find_runs

_RUNS_LISTED = 25
_CALLS_LISTED = 50

# Longer chains are verified by a second request, so that the page itself is fast.
_VERIFIED_WITH_PAGE = 1_000

Ending = Literal["ok", "no-effect", "failed", "unknown", "aborted"]
_NOTED_KINDS = ("approval-requested", "approval-decided", "resolved", "late-outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call in a timeline with the ledger's notes about it; texts are not shortened."""

    row: CallRow
    arguments: str
    result: str
    tries: int
    notes: tuple[dict[str, Any], ...]
    live: bool


class _RunListQuery(Parameters):
    run: Text = None
    tool: Text = None
    who: Text = None
    status: RunStatus | None = None
    ending: Ending | None = None
    since: Moment = None
    until: Moment = None
    start: Start = None

    def wanted(self) -> RunFilter:
        return RunFilter(
            run=self.run,
            tool=self.tool,
            who=self.who,
            status=self.status or self.ending,
            since=seconds_of(self.since),
            until=seconds_of(self.until),
        )


class _RunQuery(Parameters):
    status: TimelineStatus | None = None
    tool: Text = None
    who: Text = None
    q: Text = None
    since: Moment = None
    until: Moment = None
    start: Start = None

    def wanted(self) -> TimelineFilter:
        return TimelineFilter(
            status=self.status,
            tool=self.tool,
            who=self.who,
            text=self.q,
            since=seconds_of(self.since),
            until=seconds_of(self.until),
        )


async def _list(console: Console, request: Request, person: Person) -> Response:
    query = read_query(request, _RunListQuery)
    tenant = console.settings.tenant
    if query.run and (stored := await console.store.read(partial(_stored, query.run, tenant))):
        return see_other(f"/runs/{in_path(stored)}")
    lines, more = await console.store.read(
        lambda tx: find_runs(tx, tenant, query.wanted(), limit=_RUNS_LISTED, start=query.start)
    )
    filters = query.model_dump(exclude={"start", "ending"}) | {"status": query.wanted().status}
    links = page_links(request, filters, start=query.start, following=more)
    return console.render(
        request,
        "runs.html",
        lines=lines,
        links=links,
        filters=filters,
        statuses=get_args(RunStatus),
    )


async def _show(console: Console, request: Request, person: Person) -> Response:
    run_id = request.path_params["id"]
    query = read_query(request, _RunQuery)
    line = await run_line(console, run_id)
    shown, more, facts = await console.store.read(
        partial(_run_facts, run_id, console.settings.tenant, query.wanted(), query.start)
    )
    report = await _report(console, run_id) if line.entries <= _VERIFIED_WITH_PAGE else None
    filters = query.model_dump(exclude={"start"})
    return console.render(
        request,
        "run.html",
        line=line,
        items=shown,
        links=page_links(request, filters, start=query.start, following=more),
        filters=filters,
        statuses=get_args(TimelineStatus),
        report=report,
        **facts,
    )


def _run_facts(
    run_id: str, tenant: str, wanted: TimelineFilter, start: float | None, tx: Transaction
) -> tuple[list[tuple[TimelineItem, Step | None]], float | None, dict[str, Any]]:
    """A page of the timeline, where the next one begins, and what else the page shows."""
    items, more = timeline(tx, run_id, tenant, wanted, limit=_CALLS_LISTED, start=start)
    notes = _notes(tx, [item.row for item in items if item.kind == "call"])
    shown = [
        (
            item,
            _step(tx, item.row, notes.get(item.row["call_key"], ()))
            if item.kind == "call"
            else None,
        )
        for item in items
    ]
    # The calls that an agent makes in its turn of a channel are the run of that turn.
    turn = tx.get("turns", run_id)
    mine = turn is not None and queries.channel_row(tx, turn["channel_id"], tenant) is not None
    run = tx.get("runs", run_id) or {}
    facts = {
        "labels": queries.taints(tx, [f"run:{run_id}"]),
        "turn": turn if mine else None,
        "cancelled": bool(run.get("cancelled")),
        "stopped": switch.stopped(tx),
    }
    return shown, more, facts


async def _chain(console: Console, request: Request, person: Person) -> Response:
    """The verification of a run's chain: a page, or with htmx a part of the run's page."""
    run_id = request.path_params["id"]
    line = await run_line(console, run_id)
    report = await _report(console, run_id)
    part = request.headers.get("hx-request")
    template = "_chain.html" if part else "chain.html"
    return console.render(request, template, line=line, report=report)


async def _call(console: Console, request: Request, person: Person) -> Response:
    report = await call_report(console, request.path_params["key"])
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


def _stored(run: str, tenant: str, tx: Transaction) -> str | None:
    return queries.stored_run(tx, run, tenant)


async def run_page(
    console: Console,
    *,
    limit: int,
    start: float | None,
    tool: str | None,
    principal: str | None,
    ending: Ending | None,
) -> tuple[list[queries.RunLine], float | None]:
    """One page of the tenant's runs, newest first, and the `start` of the next page."""
    return await console.store.read(
        lambda tx: queries.runs(
            tx,
            console.settings.tenant,
            limit=limit,
            start=start,
            tool=tool,
            principal=principal,
            ending=ending,
        )
    )


async def run_line(console: Console, run_id: str) -> queries.RunLine:
    """One run; `Problem` 404 if it does not exist."""
    return await console.find(
        lambda tx, tenant: queries.run_line(tx, run_id, tenant), f"run {run_id}"
    )


async def steps(
    console: Console, run_id: str, start: float | None, limit: int
) -> tuple[list[Step], float | None]:
    """One page of a run's timeline, and the `start` of the next page."""
    tenant = console.settings.tenant

    def op(tx: Transaction) -> tuple[list[Step], float | None]:
        found = queries.call_rows(tx, run_id, tenant, limit=limit, start=start)
        notes = _notes(tx, found.rows)
        return [_step(tx, row, notes.get(row["call_key"], ())) for row in found.rows], found.next

    return await console.store.read(op)


async def call_report(console: Console, call_key: str) -> queries.CallReport:
    """One call with its ledger entries; `Problem` 404 if it does not exist."""
    return await console.find(
        lambda tx, tenant: queries.call_report(tx, call_key, tenant), f"call {call_key}"
    )


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
        notes=tuple(note for note in notes if note["kind"] in _NOTED_KINDS),
        live=row["state"] == "open" and tx.is_live(row["owner_id"]),
    )


def _notes(tx: Transaction, rows: list[Row]) -> dict[str, tuple[dict[str, Any], ...]]:
    keys = [row["call_key"] for row in rows]
    notes: dict[str, tuple[dict[str, Any], ...]] = {}
    for entry in queries.entries_of_calls(tx, keys):
        key = entry["call_key"]
        notes[key] = (*notes.get(key, ()), _entry(entry))
    return notes


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
    return "(erased)" if data is None else _indented(data)


def _result_text(row: Row, data: bytes | None) -> str:
    if data is None:
        return "(erased)" if row["result"] is not None else ""
    return _indented(data.partition(b"\n")[2])


def _indented(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace")
    if len(text) > 200_000:
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


ROUTES: list[Route] = [
    page("/runs", _list),
    page("/runs/{id}", _show),
    page("/runs/{id}/chain", _chain),
    page("/calls/{key}", _call),
]
