"""Runs that fit a filter: by name, tool, person, status and time, found as people remember them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from typing import Any, Literal

from agent_adapter.store import doubt, queries
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.conditions import has_text
from agent_adapter.store.queries import RunLine
from agent_adapter.store.witness import UPKEEP

RunStatus = Literal[
    "waiting", "running", "in-doubt", "cancelled", "ok", "no-effect", "failed", "unknown", "aborted"
]
"""What a run, or a call of it, is or ended as."""

_CHUNK = 200
_LOOKED_AT = 5_000
_MOST_TOOLS = 50
_OWN = ("waiting", "running", "in-doubt", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """What is looked for; texts are parts of a name, whatever the case; times are of the start."""

    run: str | None = None
    tool: str | None = None
    who: str | None = None
    status: RunStatus | None = None
    since: float | None = None
    until: float | None = None


def find_runs(
    tx: Transaction, tenant: str, wanted: RunFilter, *, limit: int = 50, start: float | None = None
) -> tuple[list[RunLine], float | None]:
    """Runs that fit, the newest first, and where the next page begins.

    A page looks at 5,000 candidates at most: one of a rare match may be short and have a next page.
    """
    found: dict[str, Row] = {}
    last = start
    for looked, (at, run_id) in enumerate(_candidates(tx, tenant, wanted, start)):
        if looked >= _LOOKED_AT:
            return _lines(tx, found, tenant), last
        if run_id not in found:
            row = tx.get("runs", run_id)
            if row is not None and _fits(tx, row, tenant, wanted):
                if len(found) == limit:
                    # The page ends between two times; of equal ones the next page shows all again.
                    return _lines(tx, found, tenant), last if last != at else at + 1e-6
                found[run_id] = row
        last = at
    return _lines(tx, found, tenant), None


def _lines(tx: Transaction, found: dict[str, Row], tenant: str) -> list[RunLine]:
    lines = (queries.run_line(tx, run_id, tenant) for run_id in found)
    return [line for line in lines if line is not None]


def _fits(tx: Transaction, row: Row, tenant: str, wanted: RunFilter) -> bool:
    if (row["tenant"] or "") != tenant or row["run_id"] == UPKEEP:
        return False
    if wanted.run is not None and not has_text(row["name"] or row["run_id"], wanted.run):
        return False
    if wanted.who is not None and not _is_of(tx, row, wanted.who):
        return False
    if wanted.since is not None and row["started_at"] < wanted.since:
        return False
    if wanted.until is not None and row["started_at"] >= wanted.until:
        return False
    return _has_tool(tx, row["run_id"], tenant, wanted)


def _is_of(tx: Transaction, row: Row, who: str) -> bool:
    """Whether the run, or a call of it, was made for that person: often only its calls know."""
    if row["principal"] is not None:
        return has_text(row["principal"], who)
    return bool(tx.count("calls", {"run_id": row["run_id"], "principal has": who}))


def _has_tool(tx: Transaction, run_id: str, tenant: str, wanted: RunFilter) -> bool:
    """Whether the run called the tool, where the candidates were found by something else."""
    if wanted.tool is None or wanted.status not in _OWN:
        return True
    where = {"run_id": run_id, "tool has": wanted.tool, "tenant": tenant}
    return any(tx.count(table, where) for table in ("calls", "approvals"))


def _candidates(
    tx: Transaction, tenant: str, wanted: RunFilter, start: float | None
) -> Iterator[tuple[float, str]]:
    """Times and runs, the newest first: all that could fit."""
    if wanted.status == "in-doubt":
        rows = doubt.in_doubt(tx, tenant)
        times = [(row["started_at"], row["run_id"]) for row in rows]
        yield from (
            each for each in sorted(times, reverse=True) if start is None or each[0] < start
        )
    elif wanted.status == "waiting":
        yield from _walk(
            tx, "approvals", {"tenant": tenant, "state": "pending"}, "created_at", start
        )
    elif wanted.status == "running":
        yield from _walk(tx, "calls", {"tenant": tenant, "state": "open"}, "started_at", start)
    elif wanted.status == "cancelled":
        yield from _walk(tx, "runs", {"tenant": tenant, "cancelled": 1}, "started_at", start)
    elif wanted.tool is not None:
        yield from _by_tool(tx, tenant, wanted, start)
    elif wanted.status is not None:
        where = {"tenant": tenant, "ending": wanted.status}
        yield from _walk(tx, "calls", where, "finished_at", start)
    else:
        plain: dict[str, Any] = {"tenant": tenant, "run_id !=": UPKEEP}
        # Without a tenant the key is the name, which rows of 0.1 do not have.
        name = "name has" if tenant else "run_id has"
        plain |= {} if wanted.run is None else {name: wanted.run}
        plain |= {} if wanted.since is None else {"started_at >=": wanted.since}
        if wanted.until is not None:
            start = wanted.until if start is None else min(start, wanted.until)
        yield from _walk(tx, "runs", plain, "started_at", start)


def _by_tool(
    tx: Transaction, tenant: str, wanted: RunFilter, start: float | None
) -> Iterator[tuple[float, str]]:
    """The calls of every tool that fits, and the questions about them, merged by time."""
    names = [each for each in queries.tool_names(tx, tenant) if has_text(each, wanted.tool or "")]
    ended: dict[str, Any] = {} if wanted.status is None else {"ending": wanted.status}
    wheres = [{"tenant": tenant, "tool": each} | ended for each in names[:_MOST_TOOLS]]
    walks = [_walk(tx, "calls", where, "started_at", start) for where in wheres]
    if wanted.status is None:
        # A call that waits for a person, or was refused, has no row of its own.
        asked = {"tenant": tenant, "tool has": wanted.tool}
        walks.append(_walk(tx, "approvals", asked, "created_at", start))
    yield from merge(*walks, reverse=True)


def _walk(
    tx: Transaction, table: str, where: dict[str, Any], by: str, start: float | None
) -> Iterator[tuple[float, str]]:
    """Times and runs of matching rows, the newest first, read in parts."""
    at = start
    while True:
        page = queries.paged(tx, table, where, by=by, limit=_CHUNK, start=at)
        yield from ((row[by], row["run_id"]) for row in page.rows if row[by] is not None)
        if page.next is None:
            return
        at = page.next
