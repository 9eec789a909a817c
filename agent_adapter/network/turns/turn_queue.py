"""Operations on turns: due, started, parked, failed and over.

due ──start──▶ running ──accept──▶ done
 ▲               │ │ ├──park──▶ parked ──decision──▶ due
 │               │ │ └──nothing to say, still expected──▶ silent ──resume──▶ due
 └──fail, lost───┘ └──third failure──▶ failed
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from agent_adapter.core.errors import StaleTurn
from agent_adapter.exec.ids import new_secret_id
from agent_adapter.network.adapters.base import ExpectedTurn
from agent_adapter.network.turns.turn_types import StagedChange, TurnRef
from agent_adapter.store import channel_clocks, timekeeping, waits, withdrawing
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.positions import next_position

OPEN = ("due", "running", "parked", "silent")
"""The states of a turn that can still be taken."""

_AT_ONCE = 200


def open_turn(
    tx: Transaction,
    channel_id: str,
    n: int,
    agent_id: str,
    trigger: str | None,
    due_at: float | None,
) -> Row:
    """Insert a new turn; returns its row."""
    row: Row = {
        "turn_id": new_secret_id("trn"),
        "channel_id": channel_id,
        "n": n,
        "agent_id": agent_id,
        "attempt": 0,
        "fails": 0,
        "state": "due",
        "due_at": due_at,
        "trigger": trigger,
        "due_event": next_position(tx),
    }
    tx.insert("turns", row)
    return row


def due_turns(tx: Transaction, agent_ids: Collection[str]) -> list[Row]:
    """Turns of these participants that are due now, oldest first, at most 200."""
    where = {"agent_id in": list(agent_ids), "state": "due", "due_at <=": tx.now}
    return tx.select("turns", where, order_by="due_at", limit=_AT_ONCE)


def start(tx: Transaction, turn_id: str) -> Row | None:
    """Start the next attempt of a due turn in this process; `None` if it is no longer due."""
    row = tx.get("turns", turn_id)
    if row is None or row["state"] != "due" or row["due_at"] is None or row["due_at"] > tx.now:
        return None
    values: Row = {"state": "running", "attempt": row["attempt"] + 1, "owner_id": tx.owner_id}
    values |= {"started_at": tx.now, "due_at": None, "started_event": next_position(tx)}
    tx.update("turns", {"turn_id": turn_id, "state": "due"}, values)
    if row["fails"]:
        channel_clocks.run_deadlines(tx, row["channel_id"], row["n"])
    return row | values


def held(tx: Transaction, ref: TurnRef) -> Row:
    """The row of a running attempt; `StaleTurn` if it was superseded or has ended."""
    row = tx.get("turns", ref.turn_id)
    same = row is not None and row["attempt"] == ref.attempt and row["owner_id"] == ref.owner_id
    if row is None or not same or row["state"] != "running":
        raise StaleTurn(
            f"attempt {ref.attempt} of turn {ref.turn_id} may not write any more: the turn is "
            + ("unknown" if row is None else f"{row['state']}, at attempt {row['attempt']}")
        )
    return row


def stale_reason(tx: Transaction, ref: TurnRef) -> str | None:
    """Why the attempt may not write any more; `None` if it is current."""
    try:
        held(tx, ref)
    except StaleTurn as exc:
        return str(exc)
    return None


def check_waits(tx: Transaction, turn_id: str, channel_id: str, agent_id: str) -> None:
    """Raises `StaleTurn` unless that participant still has to take the turn."""
    row = tx.get("turns", turn_id)
    if row is None or (row["channel_id"], row["agent_id"]) != (channel_id, agent_id):
        raise StaleTurn(f"turn {turn_id} does not belong to {agent_id} in channel {channel_id}")
    if row["state"] not in OPEN:
        raise StaleTurn(f"turn {turn_id} has passed ({row['state']}); read the channel again")


def done(tx: Transaction, row: Row, reason: str | None = None) -> None:
    """Record the regular end of a turn and drop its staged changes."""
    values = {"state": "done", "ended_at": tx.now, "reason": reason, "due_at": None}
    values["ended_event"] = next_position(tx)
    tx.update("turns", {"turn_id": row["turn_id"]}, values)
    if row["attempt"]:
        tx.delete("staged", {"turn_id": row["turn_id"]})
    if row["state"] == "parked":
        withdrawing.withdraw_waits(tx, row["turn_id"], "its turn was taken without it")
        waits.forget(tx, row["turn_id"])


def fall_silent(tx: Transaction, row: Row) -> None:
    """End a round without a message of a participant who is still expected to send one."""
    done(tx, row, "silent")
    tx.update("turns", {"turn_id": row["turn_id"]}, {"state": "silent"})


def restart(tx: Transaction, row: Row) -> Row:
    """Make a silent turn due again; calls of its earlier rounds keep their recorded outcomes."""
    due: Row = {"state": "due", "due_at": tx.now, "ended_at": None, "reason": None}
    due |= {"due_event": next_position(tx), "ended_event": None}
    tx.update("turns", {"turn_id": row["turn_id"], "state": "silent"}, due)
    return row | due


def silent_turns(tx: Transaction, agent_id: str) -> list[Row]:
    """The turns in which the participant said nothing though it is expected to."""
    return tx.select("turns", {"agent_id": agent_id, "state": "silent"}, limit=_AT_ONCE)


def park(tx: Transaction, ref: TurnRef, waits_for: Sequence[str]) -> Row:
    """Park the turn until one of these is decided; due at once if one already is."""
    row = held(tx, ref)
    settled = not waits_for or any(waits.is_settled(tx, item) for item in waits_for)
    state: Row = {"state": "parked"}
    if settled:
        state = {"state": "due", "due_at": tx.now, "due_event": next_position(tx)}
    tx.update("turns", {"turn_id": ref.turn_id, "attempt": ref.attempt}, state)
    drop_loose(tx, ref)
    if not settled:
        waits.park(tx, ref.turn_id, waits_for)
        channel_clocks.stop(tx, row["channel_id"])
    return row | state


def retry(tx: Transaction, row: Row, reason: str, pauses: Sequence[float]) -> Row | None:
    """Schedule the next attempt of a failed turn; `None` after the last of `pauses`."""
    fails = row["fails"] + 1
    key = {"turn_id": row["turn_id"], "attempt": row["attempt"]}
    if fails > len(pauses):
        ended = {"state": "failed", "fails": fails, "ended_at": tx.now, "reason": reason}
        tx.update("turns", key, ended)
        return None
    again: Row = {"state": "due", "fails": fails, "reason": reason}
    again["due_at"] = tx.now + pauses[fails - 1]
    again["due_event"] = next_position(tx)
    tx.update("turns", key, again)
    return row | again


def reopen(tx: Transaction, row: Row, due_at: float | None) -> Row:
    """Make a turn due again that failed or was dropped with its channel."""
    again: Row = {"state": "due", "due_at": due_at, "due_event": next_position(tx)}
    again |= {"fails": 0, "ended_at": None, "reason": None}
    tx.update("turns", {"turn_id": row["turn_id"]}, again)
    return row | again


def release(tx: Transaction, ref: TurnRef) -> Row:
    """Give a running turn back without counting the attempt; it is due at once."""
    row = held(tx, ref)
    due: Row = {"state": "due", "due_at": tx.now, "due_event": next_position(tx)}
    tx.update("turns", {"turn_id": ref.turn_id, "attempt": ref.attempt}, due)
    drop_loose(tx, ref)
    return row | due


def reclaim(tx: Transaction, turn_id: str) -> bool:
    """Make due a turn that this process started but no longer runs."""
    where = {"turn_id": turn_id, "state": "running", "owner_id": tx.owner_id}
    due = {"state": "due", "due_at": tx.now, "due_event": next_position(tx)}
    return bool(tx.update("turns", where, due))


def lose_running(tx: Transaction) -> int:
    """Make due the turns that an earlier hub was running; returns how many."""
    return tx.update("turns", {"state": "running"}, {"state": "due", "due_at": tx.now})


def drop_open(tx: Transaction, channel_id: str, reason: str) -> None:
    """Drop the open turns of a channel that ends; a reopened one adopts their staged changes."""
    ended: Row = {"state": "dropped", "ended_at": tx.now, "reason": reason, "due_at": None}
    for state in OPEN:
        for row in tx.select("turns", {"channel_id": channel_id, "state": state}):
            ended["ended_event"] = next_position(tx)
            tx.update("turns", {"turn_id": row["turn_id"]}, ended)
            waits.forget(tx, row["turn_id"])


def point_at(tx: Transaction, row: Row, turn: ExpectedTurn) -> bool:
    """Make a turn that has not started answer a later message; `False` if it has started.

    In a channel without an order several messages may arrive before a turn starts. It answers the
    newest and sees the others.
    """
    where = {"turn_id": row["turn_id"], "agent_id": turn.agent_id, "state": "due", "attempt": 0}
    return bool(tx.update("turns", where, {"trigger": turn.triggering_envelope_id}))


def has_expired_waits(tx: Transaction) -> bool:
    """Whether a turn waits for an approval that has expired."""
    return bool(tx.select("turn_waits", {"until <": timekeeping.now(tx)}, limit=1))


def wake_expired(tx: Transaction) -> int:
    """Make due the turns whose approval has expired; returns how many."""
    rows = tx.select(
        "turn_waits", {"until <": timekeeping.now(tx)}, order_by="until", limit=_AT_ONCE
    )
    woken: int = sum(waits.wake_turn(tx, row["turn_id"]) for row in rows)
    return woken


def stage(tx: Transaction, ref: TurnRef, call_key: str | None, body: Mapping[str, Any]) -> int:
    """Store a change of this attempt until its packet is accepted; returns its position."""
    held(tx, ref)
    where = {"turn_id": ref.turn_id, "attempt": ref.attempt}
    position = tx.count("staged", where) + 1
    row: Row = {"position": position, "call_key": call_key, "at": tx.now, "body": json.dumps(body)}
    tx.insert("staged", where | row)
    return position


def staged_changes(tx: Transaction, turn_id: str) -> tuple[StagedChange, ...]:
    """The changes that all attempts of a turn staged, in order."""
    rows = tx.select("staged", {"turn_id": turn_id}, order_by=("attempt", "position"))
    return tuple(
        StagedChange(attempt=row["attempt"], call_key=row["call_key"], body=json.loads(row["body"]))
        for row in rows
    )


def adopted_changes(
    changes: Iterable[StagedChange], attempt: int, adopted: Collection[str]
) -> list[Mapping[str, Any]]:
    """The changes to apply: those of this attempt, and those of calls whose outcome it reused.

    If several attempts staged changes for one call, only the latest attempt's are applied.
    """
    kept = tuple(changes)
    latest: dict[str, int] = {}
    for change in kept:
        if change.call_key is not None and change.call_key in adopted:
            latest[change.call_key] = max(change.attempt, latest.get(change.call_key, 0))
    return [
        change.body
        for change in kept
        if change.attempt == attempt
        or (change.call_key is not None and latest.get(change.call_key) == change.attempt)
    ]


def drop_loose(tx: Transaction, ref: TurnRef) -> None:
    """Delete the attempt's changes made outside of calls: no later attempt can adopt them."""
    where = {"turn_id": ref.turn_id, "attempt": ref.attempt, "call_key": None}
    tx.delete("staged", where)
