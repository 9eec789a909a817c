"""What the console and the command line read: runs, calls, tools, channels, the store's health.

Every query of theirs is here. Lists are paged by an index: the cost of a page depends on what it
shows, not on how much there is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_adapter.store import ledger, notifications
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.keys import run_key
from agent_adapter.store.timekeeping import now
from agent_adapter.store.witness import UPKEEP

_SAMPLE = 200
_LOOKED_AT = 2_000
_MOST_TOOLS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Rows of a list; `next` is where the page after it begins, `None` at the end."""

    rows: list[Row]
    next: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """One run in a list; times are seconds since the epoch."""

    run_id: str
    tenant: str
    principal: str | None
    started_at: float
    last_at: float
    entries: int
    calls: int
    unclear: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReport:
    """One call whole: its row, arguments and result, its approval, and its entries of the chain.

    `arguments` and `result` are bytes as they were kept, `None` where there are none or they were
    erased.
    """

    row: Row
    arguments: bytes | None
    result: bytes | None
    approval: Row | None
    entries: list[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """How a tool was used; shares and seconds are over the newest `sample` calls that ended.

    `errors` is the share of them that did not end `ok`.
    """

    tool: str
    calls: int
    sample: int
    errors: float | None
    p50: float | None
    p95: float | None
    last_at: float | None


def paged(
    tx: Transaction,
    table: str,
    where: Mapping[str, Any],
    *,
    by: str,
    limit: int,
    start: float | None = None,
    descending: bool = True,
) -> Page:
    """Rows in the order of a time, from `start` on; rows with equal times stay on one page."""
    wanted = dict(where)
    if start is not None:
        wanted[f"{by} <" if descending else f"{by} >"] = start
    rows = tx.select(table, wanted, order_by=by, descending=descending, limit=limit + 1)
    if len(rows) <= limit:
        return Page(rows=rows, next=None)
    edge = rows[limit - 1][by]
    if rows[limit][by] == edge:
        before = [row for row in rows if row[by] != edge]
        rows = before + tx.select(table, {**where, by: edge})
    else:
        rows = rows[:limit]
    return Page(rows=rows, next=edge)


def runs(
    tx: Transaction,
    tenant: str,
    *,
    limit: int = 50,
    start: float | None = None,
    tool: str | None = None,
    principal: str | None = None,
    ending: str | None = None,
) -> tuple[list[RunLine], float | None]:
    """Runs, the newest first, and where the next page begins.

    With `tool` or `ending`: runs that have such a call, the one with the newest first.
    """
    if tool is not None or ending is not None:
        return _runs_with(tx, tenant, limit, start, tool, ending, principal)
    where: dict[str, Any] = {"tenant": tenant, "run_id !=": UPKEEP}
    if principal is not None:
        where["principal"] = principal
    page = paged(tx, "runs", where, by="started_at", limit=limit, start=start)
    return [_line(tx, row) for row in page.rows], page.next


def run_line(tx: Transaction, run_id: str, tenant: str) -> RunLine | None:
    """One run, unless it does not exist or belongs to another tenant, or to the whole store."""
    row = _of_tenant(tx.get("runs", run_id), tenant) if run_id != UPKEEP else None
    return None if row is None else _line(tx, row)


def call_rows(
    tx: Transaction, run_id: str, tenant: str, *, limit: int = 100, start: float | None = None
) -> Page:
    """The calls of a run in the order in which they began."""
    where = {"run_id": run_id, "tenant": tenant}
    return paged(tx, "calls", where, by="started_at", limit=limit, start=start, descending=False)


def call_report(tx: Transaction, call_key: str, tenant: str) -> CallReport | None:
    """One call in full, unless it does not exist or belongs to another tenant."""
    row = call_row(tx, call_key, tenant)
    if row is None:
        return None
    approval = tx.get("approvals", row["record_id"]) if row["record_id"] is not None else None
    return CallReport(
        row=row,
        arguments=ledger.payload(tx, row["arguments"]),
        result=ledger.payload(tx, row["result"]),
        approval=approval,
        entries=tx.select("ledger", {"call_key": call_key}, order_by="at"),
    )


def tool_names(
    tx: Transaction, tenant: str, after: str = "", limit: int = _MOST_TOOLS
) -> list[str]:
    """The tools that a tenant has called, in order: looks at the index for each that anybody has.

    The number of tools is small; that of calls does not matter.
    """
    found: list[str] = []
    name = after
    while len(found) < limit:
        rows = tx.select("calls", {"tool >": name}, order_by=("tool", "started_at"), limit=1)
        if not rows:
            break
        name = rows[0]["tool"]
        if tx.select("calls", {"tool": name, "tenant": tenant}, limit=1):
            found.append(name)
    return found


def tool_use(tx: Transaction, tool: str, tenant: str) -> ToolUse:
    """How often a tool was called, how often it failed, and how long it took."""
    rows = tx.select(
        "calls",
        {"tool": tool, "tenant": tenant},
        order_by="started_at",
        descending=True,
        limit=_SAMPLE,
    )
    ended = [row for row in rows if row["state"] == "done"]
    took = sorted(max(0.0, row["finished_at"] - row["started_at"]) for row in ended)
    bad = sum(row["ending"] != "ok" for row in ended)
    return ToolUse(
        tool=tool,
        calls=len(rows)
        if len(rows) < _SAMPLE
        else tx.count("calls", {"tool": tool, "tenant": tenant}),
        sample=len(ended),
        errors=bad / len(ended) if ended else None,
        p50=_quantile(took, 0.50),
        p95=_quantile(took, 0.95),
        last_at=rows[0]["started_at"] if rows else None,
    )


def health(tx: Transaction, tenant: str) -> dict[str, Any]:
    """What is under way: processes and the hub of the store, and what waits of the tenant's."""
    processes = tx.select("owners", order_by="started_at", descending=True, limit=50)
    lease = tx.get("leases", "hub")
    stopped = tx.get("meta", "writes-stopped")
    waiting = {"tenant": tenant, "state": "pending", "decide_by >=": tx.now}
    return {
        "now": tx.now,
        "processes": [{**row, "live": tx.is_live(row["id"])} for row in processes],
        "hub": lease["holder"] if lease is not None and hub_is_live(tx) else None,
        "commands_queued": _commands_queued(tx, tenant),
        "approvals_pending": tx.count("approvals", waiting),
        "turns": _turns(tx, tenant),
        "open_calls": tx.count("calls", {"state": "open", "tenant": tenant}),
        "writes_stopped": None if stopped is None else stopped["value"] or "no reason given",
        "notifications": notifications.summary(tx, tenant),
    }


def _commands_queued(tx: Transaction, tenant: str) -> int:
    queued = tx.select("commands", {"state": "queued"})
    channels = (json.loads(row["payload"]).get("channel_id", "") for row in queued)
    return sum(channel_row(tx, each, tenant) is not None for each in channels)


def _turns(tx: Transaction, tenant: str) -> dict[str, int]:
    """How many turns have not ended, by state; a turn belongs to its channel's tenant."""
    found = dict.fromkeys(("due", "running", "parked"), 0)
    known: dict[str, bool] = {}
    for turn in tx.select("turns", {"state in": list(found)}):
        channel_id = turn["channel_id"]
        if channel_id not in known:
            known[channel_id] = channel_row(tx, channel_id, tenant) is not None
        found[turn["state"]] += known[channel_id]
    return found


def hub_is_live(tx: Transaction) -> bool:
    """Whether a running process holds the lease of the store's hub."""
    lease = tx.get("leases", "hub")
    return bool(lease and lease["owner_id"] and tx.is_live(lease["owner_id"]))


def pending_approvals(tx: Transaction, tenant: str, limit: int) -> tuple[list[str], int]:
    """The ids of the approvals that expire first of those that wait, and how many wait in all."""
    where = {"tenant": tenant, "state": "pending", "decide_by >=": now(tx)}
    rows = tx.select("approvals", where, order_by=("decide_by", "id"), limit=limit)
    return [row["id"] for row in rows], tx.count("approvals", where)


def taints(tx: Transaction, scopes: list[str], limit: int = 50) -> list[Row]:
    """The labels on these scopes (`run:…`, `thread:…`), in the order in which they came."""
    return tx.select("taints", {"scope in": scopes}, order_by="at", limit=limit)


def entries_of_calls(tx: Transaction, call_keys: list[str]) -> list[Row]:
    """The ledger's entries about these calls, oldest first."""
    return tx.select("ledger", {"call_key in": call_keys}, order_by="at") if call_keys else []


def refused_calls(tx: Transaction, run_id: str, limit: int) -> list[Row]:
    """The ledger's entries about calls of the run that were stopped before they began."""
    where = {"run_id": run_id, "kind": "refused"}
    return tx.select("ledger", where, order_by="seq", limit=limit)


def call_row(tx: Transaction, call_key: str, tenant: str) -> Row | None:
    """The call's row, unless it does not exist or belongs to another tenant."""
    return _of_tenant(tx.get("calls", call_key), tenant)


def channel_row(tx: Transaction, channel_id: str, tenant: str) -> Row | None:
    """The channel's row, unless it does not exist or belongs to another tenant."""
    return _of_tenant(tx.get("channels", channel_id), tenant)


def member_names(tx: Transaction, channel_id: str) -> dict[str, str]:
    """The name of each participant by agent id, in their order."""
    members = tx.select("channel_members", {"channel_id": channel_id}, order_by="position")
    return {each["agent_id"]: each["name"] or each["agent_id"] for each in members}


def human_members(tx: Transaction, channel_id: str) -> list[str]:
    """The names of the channel's participants that are people."""
    found = []
    for agent_id in member_names(tx, channel_id):
        known = tx.select("identities", {"agent_id": agent_id}, limit=1)
        if known and known[0]["kind"] == "human":
            found.append(known[0]["name"])
    return found


def human_id(tx: Transaction, name: str) -> str | None:
    """The id of the human participant of that name; `None` if there is none."""
    known = tx.get("identities", name)
    return known["agent_id"] if known is not None and known["kind"] == "human" else None


def deadlines(tx: Transaction, channel_id: str, limit: int = 50) -> list[Row]:
    """The expectations of the channel and of its turns."""
    where = {"channel_id": channel_id}
    return tx.select("expectations", where, order_by=("turn", "position"), limit=limit)


def latest_turn(tx: Transaction, channel: Row) -> Row | None:
    """The latest turn of a channel's row; `None` before the first."""
    return tx.get("turns", channel["turn_id"]) if channel["turn_id"] is not None else None


def graph(tx: Transaction, graph_hash: str | None) -> str | None:
    """A transition graph as JSON; `None` for a channel without one."""
    row = tx.get("graphs", graph_hash) if graph_hash is not None else None
    return None if row is None else row["data"]


def command(tx: Transaction, id: str, tenant: str) -> Row | None:
    """A command to the hub of this store, unless its channel belongs to another tenant."""
    row = tx.get("commands", id)
    if row is None:
        return None
    channel_id = json.loads(row["payload"]).get("channel_id", "")
    return None if channel_row(tx, channel_id, tenant) is None else row


def stored_run(tx: Transaction, run: str, tenant: str) -> str | None:
    """The key of a tenant's run, given that or its name; `None` for any other."""
    for key in (run, run_key(tenant, run)):
        if run_line(tx, key, tenant) is not None:
            return key
    return None


def _runs_with(
    tx: Transaction,
    tenant: str,
    limit: int,
    start: float | None,
    tool: str | None,
    ending: str | None,
    principal: str | None,
) -> tuple[list[RunLine], float | None]:
    where: dict[str, Any] = {"tenant": tenant}
    where |= {"tool": tool} if tool is not None else {}
    where |= {"ending": ending} if ending is not None else {}
    where |= {"principal": principal} if principal is not None else {}
    by = "started_at" if tool is not None else "finished_at"
    page = paged(tx, "calls", where, by=by, limit=_LOOKED_AT, start=start)
    found: dict[str, RunLine] = {}
    for row in page.rows:
        if row["run_id"] not in found:
            if len(found) == limit:
                return list(found.values()), row[by] + 1e-6
            line = run_line(tx, row["run_id"], tenant)
            if line is not None:
                found[row["run_id"]] = line
    return list(found.values()), page.next


def _line(tx: Transaction, row: Row) -> RunLine:
    run_id = row["run_id"]
    head = tx.get("chain_heads", run_id)
    last = tx.get("ledger", run_id, head["seq"]) if head is not None else None
    return RunLine(
        run_id=run_id,
        tenant=row["tenant"] or "",
        principal=row["principal"] or _asker(tx, run_id),
        started_at=row["started_at"],
        last_at=last["at"] if last is not None else row["started_at"],
        entries=head["seq"] if head is not None else 0,
        calls=tx.count("calls", {"run_id": run_id}),
        unclear=_unclear(tx, run_id),
        waiting=tx.count(
            "approvals", {"run_id": run_id, "state": "pending", "decide_by >=": now(tx)}
        ),
    )


def _asker(tx: Transaction, run_id: str) -> str | None:
    """Whom the run's calls are for, where its own row does not say."""
    known = tx.select("calls", {"run_id": run_id, "principal !=": None}, limit=1)
    return known[0]["principal"] if known else None


def _unclear(tx: Transaction, run_id: str) -> int:
    lost = tx.select("calls", {"run_id": run_id, "state": "open", "effects": "write"}, limit=100)
    dead = sum(not tx.is_live(row["owner_id"]) for row in lost)
    return dead + tx.count("calls", {"run_id": run_id, "ending": "unknown"})


def _of_tenant(row: Row | None, tenant: str) -> Row | None:
    return row if row is not None and (row["tenant"] or "") == tenant else None


def _quantile(ordered: list[float], share: float) -> float | None:
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]
