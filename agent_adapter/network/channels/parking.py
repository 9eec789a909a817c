"""Parks a turn, and says in the audit log what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_adapter.core.errors import ApprovalPending, ToolInDoubt
from agent_adapter.network.channels import expectations
from agent_adapter.network.channels.snapshot import ChannelSnapshot, channel_row, load_snapshot
from agent_adapter.network.channels.transaction import HubContext
from agent_adapter.network.hub import audit
from agent_adapter.network.turns import turn_queue
from agent_adapter.network.turns.turn_types import TurnRef
from agent_adapter.store.base import Row, Transaction


def park(
    tx: Transaction,
    context: HubContext,
    ref: TurnRef,
    waits_for: Sequence[str],
    cached: ChannelSnapshot | None = None,
) -> tuple[Row, str | None]:
    """Park the turn; its row, and the cause as text, or `None` if it is due at once."""
    row = turn_queue.park(tx, ref, waits_for)
    if row["state"] != "parked":
        return row, None
    channel = channel_row(tx, ref.channel_id)
    deadlines = load_snapshot(tx, channel, context.adapters, cached).deadlines
    expectations.of_parked(tx, deadlines, ref.channel_id, row["n"], row["agent_id"])
    about = [_about(tx, item) for item in waits_for]
    cause = "; ".join(item["cause"] for item in about)
    ids = {"agent_id": row["agent_id"], "channel_id": ref.channel_id, "turn_id": ref.turn_id}
    parked = {"attempt": ref.attempt, "waits_for": list(waits_for), "cause": cause}
    audit.write(tx, audit.TURN_PARKED, ids | parked)
    for item in about:
        audit.write(tx, item.pop("kind"), ids | item)
    return row, cause


def _about(tx: Transaction, waits_for: str) -> dict[str, Any]:
    """The record of one thing that the turn waits for."""
    record = tx.get("approvals", waits_for)
    if record is not None:
        said = f"{ApprovalPending.__name__}: {record['tool']} waits for approval {waits_for}"
        found = {"kind": audit.APPROVAL_WAITING, "approval_id": waits_for, "cause": said}
        return found | {"tool": record["tool"]}
    call = tx.get("calls", waits_for)
    if call is not None:
        said = f"{ToolInDoubt.__name__}: it is not known what {call['tool']} did ({waits_for})"
        found = {"kind": audit.CALL_IN_DOUBT, "call_key": waits_for, "cause": said}
        return found | {"tool": call["tool"]}
    said = f"{waits_for} is decided in the participant's own store"
    return {"kind": audit.APPROVAL_WAITING, "approval_id": waits_for, "cause": said}
