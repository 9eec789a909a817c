"""What the row of an earlier call means for the same call, made again."""

from __future__ import annotations

from agent_adapter.store import ledger
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.intents import Found, Intent

_NOT_AN_END = ("cancelled", "approval-pending", "tool-in-flight", "tool-busy")
"""Errors after which a repeatable call is run again, instead of being answered with them."""

_OPAQUE = b"opaque"
"""The tag of a result that is kept as a text about it."""


def found_as(tx: Transaction, row: Row, intent: Intent) -> Found:
    """What the row of an earlier call means for the same call."""
    write = row["effects"] == "write" and not intent.workflow
    if row["state"] == "open":
        if row["owner_id"] == tx.owner_id:
            return "running"
        if tx.is_live(row["owner_id"]):
            return "in-flight"
        # The process died between intent and outcome: only a person can know what a write did.
        return "in-doubt" if write else "again"
    if row["ending"] == "unknown":
        return "unknown"
    if row["ending"] == "suspended" and write:
        # The question of the call inside it said what entering it again means.
        said = row["error_kind"] == "approval-pending" or row["call_key"] == intent.going_on
        return "again" if said else "unfinished"
    left = row["ending"] == "failed" and row["error_kind"] in _NOT_AN_END
    left = left or (intent.repeats_failed and _may_be_run_again(tx, row))
    return "again" if left or row["ending"] in ("aborted", "suspended") else "recorded"


def _may_be_run_again(tx: Transaction, row: Row) -> bool:
    """Whether an ended call that is safe to repeat left nothing that could be handed out.

    That is so if it failed and was not made again since, or its result could not be kept.
    """
    if row["ending"] == "failed":
        same = {name: row[name] for name in ("run_id", "tool", "digest", "tenant")}
        since = same | {"ending": "ok", "n >": row["n"]}
        return not tx.select("calls", since, limit=1)
    if row["error_kind"] is not None:
        return False
    kept = ledger.payload(tx, row["result"])
    return kept is None or kept.partition(b"\n")[0] == _OPAQUE
