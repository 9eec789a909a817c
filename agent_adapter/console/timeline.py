"""One run as a timeline: its calls, the questions about them, and what was refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from typing import Any, Literal

from agent_adapter.store import ledger, queries
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.conditions import has_text

TimelineStatus = Literal[
    "waiting",
    "denied",
    "expired",
    "withdrawn",
    "approved",
    "refused",
    "running",
    "in-doubt",
    "ok",
    "no-effect",
    "failed",
    "aborted",
    "suspended",
]
"""What became of a call or of a question."""

_CHUNK = 200
_LOOKED_AT = 5_000
_ASKED = "approval-pending"
_QUESTION = {"pending": "waiting", "taken": "approved"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineFilter:
    """What is looked for; texts are parts, whatever the case; times are seconds."""

    status: TimelineStatus | None = None
    tool: str | None = None
    who: str | None = None
    text: str | None = None
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineItem:
    """One thing that happened: the row of a call, of a question or of a ledger entry.

    `depth` is how many calls a nested call is inside of; `facts` are those of a refused call.
    """

    kind: Literal["call", "question", "refused"]
    at: float
    status: str
    tool: str
    row: Row
    facts: dict[str, Any]
    depth: int = 0


def timeline(
    tx: Transaction,
    run_id: str,
    tenant: str,
    wanted: TimelineFilter,
    *,
    limit: int = 100,
    start: float | None = None,
) -> tuple[list[TimelineItem], float | None]:
    """What happened in a run, in order, and where the next page begins."""
    found: list[TimelineItem] = []
    last = start
    walks = (
        _calls(tx, run_id, tenant, start),
        _questions(tx, run_id, tenant, start),
        _refusals(tx, run_id, start),
    )
    for looked, item in enumerate(merge(*walks, key=lambda each: each.at)):
        if looked >= _LOOKED_AT:
            return found, last
        if _fits(tx, item, wanted):
            if len(found) == limit:
                return found, last if last != item.at else item.at - 1e-6
            found.append(item)
        last = item.at
    return found, None


def _fits(tx: Transaction, item: TimelineItem, wanted: TimelineFilter) -> bool:
    if wanted.status is not None and item.status != wanted.status:
        return False
    if wanted.tool is not None and not has_text(item.tool, wanted.tool):
        return False
    if wanted.since is not None and item.at < wanted.since:
        return False
    if wanted.until is not None and item.at >= wanted.until:
        return False
    if wanted.who is not None and not any(has_text(each, wanted.who) for each in _people(item)):
        return False
    return wanted.text is None or any(has_text(each, wanted.text) for each in _texts(tx, item))


def _people(item: TimelineItem) -> list[Any]:
    row = item.row
    return [row.get(name) for name in ("principal", "requester", "reviewer")]


def _texts(tx: Transaction, item: TimelineItem) -> Iterator[Any]:
    if item.kind == "refused":
        yield json.dumps(item.facts, ensure_ascii=False)
        return
    row = item.row
    yield from (row.get(name) for name in ("error_text", "reason", "call_id", "edited"))
    if item.kind == "question":
        yield from (row["payload"], item.facts.get("reason"))
        return
    for name in ("arguments", "result"):
        if row.get(name) is not None:
            yield ledger.payload(tx, row[name])


def _calls(
    tx: Transaction, run_id: str, tenant: str, start: float | None
) -> Iterator[TimelineItem]:
    depths: dict[str, int] = {}
    at = start
    while True:
        page = queries.call_rows(tx, run_id, tenant, limit=_CHUNK, start=at)
        for row in page.rows:
            depth = depths.get(row["parent_call_key"] or "", -1) + 1
            depths[row["call_key"]] = depth
            yield _call_item(tx, row, depth)
        if page.next is None:
            return
        at = page.next


def _call_item(tx: Transaction, row: Row, depth: int) -> TimelineItem:
    if row["state"] == "open":
        live = row["owner_id"] == tx.owner_id or tx.is_live(row["owner_id"])
        status = "running" if live or row["effects"] != "write" else "in-doubt"
    else:
        status = "in-doubt" if row["ending"] == "unknown" else row["ending"]
    return TimelineItem(
        kind="call",
        at=row["started_at"],
        status=status,
        tool=row["tool"],
        row=row,
        facts={},
        depth=depth,
    )


def _questions(
    tx: Transaction, run_id: str, tenant: str, start: float | None
) -> Iterator[TimelineItem]:
    """Questions of the run and of the runs that its tools started, unless a call shows them."""
    since = {} if start is None else {"created_at >": start}
    rows = tx.select("approvals", {"run_id": run_id, **since}, limit=_LOOKED_AT)
    inner = tx.select("approvals", {"root_run_id": run_id, **since}, limit=_LOOKED_AT)
    several = {row["id"]: row for row in [*rows, *inner] if (row["tenant"] or "") == tenant}
    for row in sorted(several.values(), key=lambda each: float(each["created_at"])):
        call = tx.get("calls", row["call_key"]) if row["call_key"] is not None else None
        if call is not None and call["record_id"] == row["id"] and call["run_id"] == run_id:
            continue
        state = row["state"]
        if state == "pending" and row["decide_by"] < tx.now:
            state = "expired"
        yield TimelineItem(
            kind="question",
            at=row["created_at"],
            status=_QUESTION.get(state, state),
            tool=row["tool"],
            row=row,
            facts=_facts(row["request"]),
        )


def _refusals(tx: Transaction, run_id: str, start: float | None) -> Iterator[TimelineItem]:
    """Calls that were stopped before they began."""
    where: dict[str, Any] = {"run_id": run_id, "kind": "refused"}
    where |= {} if start is None else {"at >": start}
    for row in tx.select("ledger", where, order_by="at", limit=_LOOKED_AT):
        facts = _facts(row["body"])
        if facts.get("error") == _ASKED:
            continue  # the question itself is on the timeline
        yield TimelineItem(
            kind="refused",
            at=row["at"],
            status="refused",
            tool=str(facts.get("tool") or ""),
            row=row,
            facts=facts,
        )


def _facts(stored: Any) -> dict[str, Any]:
    try:
        facts = json.loads(stored)
    except (ValueError, TypeError):
        return {}
    return facts if isinstance(facts, dict) else {}
