"""Operations that delete what is older than it has to be kept, a bounded number at a time.

Whole runs go, with their calls, chains, payloads and approvals; of a channel a summary stays. Each
step leaves an entry `pruned` that names what is gone with the newest link of its chain: the chain
that holds it is sealed with the store's key, so `verify` can tell what was pruned from what was
deleted by others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from agent_adapter.store import ledger
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.chain_check import ChainCheck
from agent_adapter.store.retention import Holds
from agent_adapter.store.witness import CHANNEL, UPKEEP, is_run

OF_A_RUN = (
    *("calls", "ledger", "chain_heads", "payloads", "usage", "runs", "reservations"),
    "trusted_texts",
)
"""The tables whose rows belong to one run."""

_OF_A_TURN = ("turn_waits", "staged")
_OF_A_CHANNEL = ("envelopes", "turns", "expectations")
_ENDED = ("closed", "expired")
_QUIET = ("erased", "changed")
"""Entries that no use of a run has written."""


def old_runs(tx: Transaction, before: float, *, tenant: str | None = None) -> list[str]:
    """Runs last used before that time that nothing may still ask for and nobody holds."""
    heads = tx.select("chain_heads", order_by="run_id")
    held = Holds(tx)
    return [row["run_id"] for row in heads if _may_go(tx, row, before, held, tenant)]


def prune(tx: Transaction, runs: Iterable[str], before: float, *, by: str) -> int:
    """Delete those of `runs` that may still go, and note it in the ledger; how many."""
    heads = [tx.get("chain_heads", run_id) for run_id in runs]
    held = Holds(tx)
    over = [row for row in heads if row is not None and _may_go(tx, row, before, held, None)]
    for row in over:
        _delete(tx, row["run_id"])
    if over:
        gone = [[row["run_id"], row["seq"], row["hash"].hex()] for row in over]
        facts = {"reviewer": by, "runs": len(over), "before": before, "gone": gone}
        ledger.append(tx, UPKEEP, "pruned", None, facts)
    return len(over)


def gone(tx: Transaction) -> dict[str, tuple[int, str]]:
    """The runs that were pruned, with the length and the newest link of the chain of each."""
    found = {}
    for row in tx.select("ledger", {"run_id": UPKEEP, "kind": "pruned"}, order_by="seq"):
        for run_id, seq, link in json.loads(row["body"]).get("gone", ()):
            found[run_id] = (seq, link)
    return found


def old_payloads(tx: Transaction, before: float, *, tenant: str) -> list[str]:
    """Runs last used before that time that have payloads left, and that may lose them."""
    held = Holds(tx)
    return [
        row["run_id"]
        for row in tx.select("runs", {"started_at <": before}, order_by="started_at")
        if (row["tenant"] or "") == tenant and not held.keeps_run(row) and _is_idle(tx, row, before)
    ]


def erase_old(tx: Transaction, runs: Iterable[str], before: float) -> int:
    """Erase the payloads of those of `runs` that may still lose them; of how many runs."""
    held = Holds(tx)
    rows = [tx.get("runs", run_id) for run_id in runs]
    idle = [row for row in rows if row and not held.keeps_run(row) and _is_idle(tx, row, before)]
    for row in idle:
        ledger.erase(tx, row["run_id"])
    return len(idle)


def old_channels(tx: Transaction, before: float, *, tenant: str) -> list[str]:
    """Channels that ended before that time, still have their transcript, and are not held."""
    held = Holds(tx)
    where = {"state in": list(_ENDED), "closed_at <": before, "summary": None}
    return [
        row["channel_id"]
        for row in tx.select("channels", where, order_by="closed_at")
        if (row["tenant"] or "") == tenant and not held.keeps_channel(row)
    ]


def fold_channel(tx: Transaction, channel_id: str, before: float, *, by: str) -> int:
    """Delete a channel's transcript; its row stays, with a summary and the digest of its log.

    How many envelopes went; 0, changing nothing, where it may not go.
    """
    row = tx.get("channels", channel_id)
    chain = CHANNEL + channel_id
    head = tx.get("chain_heads", chain)
    if row is None or head is None or row["state"] not in _ENDED or row["summary"] is not None:
        return 0
    if row["closed_at"] is None or row["closed_at"] >= before or Holds(tx).keeps_channel(row):
        return 0
    check = ChainCheck(tx, chain)
    check.check(None)
    if check.problems:  # evidence
        return 0
    for turn in tx.select("turns", {"channel_id": channel_id}):
        for table in _OF_A_TURN:
            tx.delete(table, {"turn_id": turn["turn_id"]})
    gone = {table: tx.delete(table, {"channel_id": channel_id}) for table in _OF_A_CHANNEL}
    tx.delete("ledger", {"run_id": chain})
    tx.delete("chain_heads", {"run_id": chain})
    ledger.forget(tx, chain)
    facts: dict[str, Any] = {"envelopes": gone["envelopes"], "turns": gone["turns"]}
    facts |= {"entries": head["seq"], "digest": head["hash"].hex(), "reviewer": by}
    summary = json.dumps({"v": 1, "at": tx.now, **facts})
    values = {"summary": summary, "folded": "{}", "revision": row["revision"] + 1}
    tx.update("channels", {"channel_id": channel_id}, values)
    ledger.baseline(tx, chain, kind="pruned", facts=facts)
    return gone["envelopes"]


def old_audit(tx: Transaction, before: float, *, tenant: str) -> list[str]:
    """Ids of the audit records from before that time that are not held, oldest first."""
    held = Holds(tx)
    rows = tx.select("audit", {"at <": before}, order_by="at")
    found = []
    for row in rows:
        channel = tx.get("channels", row["channel_id"]) if row["channel_id"] is not None else None
        of = "" if channel is None else channel["tenant"] or ""
        if of == tenant and not (channel is not None and held.keeps_channel(channel)):
            found.append(row["id"])
    return found


def delete_audit(tx: Transaction, ids: list[str], before: float) -> int:
    """Delete these audit records; the chains note each."""
    return tx.delete("audit", {"id in": ids, "at <": before})


def _may_go(tx: Transaction, head: Row, before: float, held: Holds, tenant: str | None) -> bool:
    if not _is_over(tx, head, before):
        return False
    run = tx.get("runs", head["run_id"])
    if run is None:
        return tenant in (None, "")
    return not held.keeps_run(run) and tenant in (None, run["tenant"] or "")


def _is_over(tx: Transaction, head: Row, before: float) -> bool:
    run_id = head["run_id"]
    if run_id == UPKEEP or not is_run(run_id):
        return False
    used = _last_used(tx, head)
    # A chain that lacks its end is evidence.
    if used is None or used >= before:
        return False
    if any(_holds(tx, row) for row in tx.select("calls", {"run_id": run_id})):
        return False
    return not _waits(tx, run_id)


def _is_idle(tx: Transaction, run: Row, before: float) -> bool:
    """Whether the run has payloads that nothing needs any more."""
    run_id = run["run_id"]
    if run_id == UPKEEP or not tx.select("payloads", {"run_id": run_id, "data !=": None}, limit=1):
        return False
    head = tx.get("chain_heads", run_id)
    used = None if head is None else _last_used(tx, head)
    if used is None or used >= before or _waits(tx, run_id):
        return False
    calls = tx.select("calls", {"run_id": run_id})
    return not any(row["state"] == "open" or row["ending"] == "unknown" for row in calls)


def _last_used(tx: Transaction, head: Row) -> float | None:
    """When the newest entry was written that tells of the run's use."""
    seq = head["seq"]
    entry = tx.get("ledger", head["run_id"], seq)
    while entry is not None and entry["kind"] in _QUIET and seq > 1:
        seq -= 1
        entry = tx.get("ledger", head["run_id"], seq)
    return None if entry is None else float(entry["at"])


def _waits(tx: Transaction, run_id: str) -> bool:
    waiting = {"run_id": run_id, "state in": ["pending", "approved"]}
    return any(
        tx.now <= (row["decide_by"] if row["state"] == "pending" else row["use_by"])
        for row in tx.select("approvals", waiting)
    )


def _holds(tx: Transaction, call: Row) -> bool:
    """Whether its run must stay: under way, unclear, once over all runs, or inside such a call."""
    if call["state"] == "open" or call["ending"] == "unknown" or call["once_key"] is not None:
        return True
    parent = call["parent_call_key"]
    around = None if parent is None else tx.get("calls", parent)
    return around is not None and _holds(tx, around)


def _delete(tx: Transaction, run_id: str) -> None:
    for row in tx.select("approvals", {"run_id": run_id}):
        tx.delete("votes", {"approval_id": row["id"]})
    for table in (*OF_A_RUN, "approvals"):
        tx.delete(table, {"run_id": run_id})
    tx.delete("taints", {"scope": f"run:{run_id}"})
    ledger.forget(tx, run_id)
