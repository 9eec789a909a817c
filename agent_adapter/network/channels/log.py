"""Operations on a channel's log: accept an envelope, end a turn, read a window.

Each is a plain function over a `Transaction`. The cost of accepting does not depend on the length
of the log. Operations of several callers share one database transaction, and a rollback redoes all
of them: an operation therefore checks every condition before its first insert.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agent_adapter.core.errors import ProtocolError
from agent_adapter.flow.envelope import (
    EV_CHANNEL_INVITE_ACK,
    EV_CHANNEL_INVITE_REJECT,
    EV_CONTEXT_SET,
    TURN_EVENTS,
    Envelope,
)
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.adapters.checks import run_check
from agent_adapter.network.channels import expectations
from agent_adapter.network.channels.lifecycle import answer
from agent_adapter.network.channels.metadata import TERMINAL_STATES, ChannelState
from agent_adapter.network.channels.snapshot import ChannelSnapshot, channel_row
from agent_adapter.network.channels.transaction import Change, ChannelTransaction, HubContext
from agent_adapter.network.hub import audit
from agent_adapter.network.turns import causes, turn_queue
from agent_adapter.network.turns.turn_types import TurnRef
from agent_adapter.store import taint
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.keys import conversation_key

INVITE_ANSWERS = (EV_CHANNEL_INVITE_ACK, EV_CHANNEL_INVITE_REJECT)
"""The events that an invitee may send before the channel is active."""

_ENDING = frozenset((*TERMINAL_STATES, ChannelState.CLOSING))


def accept(
    tx: Transaction,
    context: HubContext,
    envelope: Envelope,
    *,
    cached: ChannelSnapshot | None = None,
    turn: TurnRef | None = None,
    adopted: Collection[str] = (),
    answers: str | None = None,
    labels: Collection[str] = (),
) -> Change:
    """Append `envelope` and apply its consequences in one operation.

    `turn` is the attempt that the envelope ends; changes that its round staged are written first.
    `answers` is the turn that a person answers. `labels` taint the channel. Every refusal is
    raised before the first insert.
    """
    row = channel_row(tx, envelope.channel_id)
    snapshot = _first_acceptance(tx, context, row, envelope, cached)
    if snapshot is not None:
        return snapshot
    if answers is not None:
        turn_queue.check_waits(tx, answers, envelope.channel_id, envelope.sender_id)
    channel = ChannelTransaction(tx, context, row, cached)
    if envelope.event_type in INVITE_ANSWERS:
        answered = answer(channel, envelope)
        if not answered.repeated:
            _taint(channel, labels)
        return answered
    _check_open(channel)
    ended = _turn_ended(channel, envelope, turn)
    changes = [] if turn is None else round_changes(tx, turn, adopted)
    _check_all(channel, envelope, changes)
    # Every condition holds from here on: what follows only writes.
    _taint(channel, labels)
    closing, _ = _write_changes(channel, envelope.sender_id, changes, turn)
    sent = channel.append(envelope, None if ended is None else ended["turn_id"])
    if ended is not None:
        turn_queue.done(tx, ended)
    if sent.event_type in TURN_EVENTS and channel.row["turn_n"]:
        # A silent round ends its turn but keeps its deadlines: this message answers them.
        n = channel.row["turn_n"] if ended is None else ended["n"]
        expectations.stop_turn(tx, sent.channel_id, n)
    if ended is not None and ended["state"] == "parked":
        channel.run_clocks()
    _follow(channel, sent, closing, took_turn=ended is not None)
    return channel.finish(sent)


def _taint(channel: ChannelTransaction, labels: Collection[str]) -> None:
    for label in labels:
        scope = conversation_key("", channel.row["channel_id"])
        taint.mark(channel.tx, [scope], label)


def end_silent_turn(
    tx: Transaction,
    context: HubContext,
    ref: TurnRef,
    *,
    cached: ChannelSnapshot | None = None,
    adopted: Collection[str] = (),
) -> Change:
    """End the turn of a round without a message; its staged changes are written.

    No other turn follows. If the same participant is still expected, its deadlines run on, and
    `resume_silent` starts the turn again.
    """
    turn = turn_queue.held(tx, ref)
    channel = ChannelTransaction(tx, context, channel_row(tx, ref.channel_id), cached)
    _check_open(channel)
    changes = round_changes(tx, ref, adopted)
    _check_changes(channel, turn["agent_id"], changes)
    closing, said = _write_changes(channel, turn["agent_id"], changes, ref)
    if said is not None:
        turn_queue.done(tx, turn)
        expectations.stop_turn(tx, ref.channel_id, turn["n"])
        _follow(channel, said, closing, took_turn=True)
    elif closing is not None:
        turn_queue.done(tx, turn, "silent")
        channel.end(closing, by=turn["agent_id"])
    elif is_expected(channel, turn["agent_id"]):
        turn_queue.fall_silent(tx, turn)
        facts = {"turn_id": ref.turn_id, "attempt": ref.attempt, "envelope_id": turn["trigger"]}
        ids = {"agent_id": turn["agent_id"], "channel_id": ref.channel_id}
        audit.write(tx, audit.TURN_SILENT, ids | facts)
    else:
        turn_queue.done(tx, turn, "silent")
        if channel.row["turn_id"] == turn["turn_id"]:
            channel.give_turn(None)
    return channel.finish()


def resume_silent(
    tx: Transaction, context: HubContext, turn_id: str, cached: ChannelSnapshot | None = None
) -> Change:
    """Make a turn due again whose round had no message; unchanged if it is taken meanwhile."""
    turn = tx.get("turns", turn_id) or {}
    row = channel_row(tx, turn.get("channel_id", ""))
    channel = ChannelTransaction(tx, context, row, cached)
    if turn["state"] != "silent" or channel.is_over or row["paused"]:
        return Change(row["channel_id"], channel.before, repeated=True)
    if row["turn_id"] != turn_id or not is_expected(channel, turn["agent_id"]):
        turn_queue.done(tx, turn, "silent")
    else:
        channel.restart_turn(turn)
    return channel.finish()


def is_expected(channel: ChannelTransaction, agent_id: str) -> bool:
    """Whether the channel goes on only with a message of that participant."""
    expected = channel.before.adapter.expected_next(channel.metadata, channel.state)
    return expected is not None and expected.agent_id == agent_id


def fail_turn(
    tx: Transaction,
    context: HubContext,
    ref: TurnRef,
    error: BaseException,
    *,
    cached: ChannelSnapshot | None = None,
) -> Row | Change:
    """Count a failed attempt; returns the turn's row for a retry, else the closed channel."""
    turn = turn_queue.held(tx, ref)
    waits = () if isinstance(error, ProtocolError) else context.retries.waits(error)
    again = turn_queue.retry(tx, turn, causes.cause_of(error), waits)
    facts = {"turn_id": ref.turn_id, "attempt": ref.attempt, "envelope_id": turn["trigger"] or ""}
    facts |= {"exc_type": causes.class_of(error), "exc_message": causes.text_of(error)}
    ids = {"agent_id": turn["agent_id"], "channel_id": ref.channel_id}
    audit.write(tx, audit.TURN_FAILED, ids | facts | {"tried_again": again is not None})
    turn_queue.drop_loose(tx, ref)
    if again is not None:
        if causes.is_outage(error):
            # A provider that is away is not the participant's silence.
            expectations.pause(tx, ref.channel_id, turn["n"])
        return again
    channel = ChannelTransaction(tx, context, channel_row(tx, ref.channel_id), cached)
    if not channel.is_over:
        failed = {
            "turn_id": ref.turn_id,
            "agent_id": turn["agent_id"],
            "attempts": turn["fails"] + 1,
        }
        channel.end("turn_failed", facts={"cause": causes.cause_of(error), **failed})
    return channel.finish()


def read_from(
    tx: Transaction, channel_id: str, since_seq: int = 0, limit: int = 500
) -> list[tuple[int, Envelope]]:
    """Entries after `since_seq`, oldest first, each with its sequence number."""
    # Keys, not a range: the memory store has no ordered index and would scan the whole log.
    keys = list(range(since_seq + 1, since_seq + limit + 1))
    rows = tx.select("envelopes", {"channel_id": channel_id, "seq in": keys}, order_by="seq")
    return [(row["seq"], stored(row["body"])) for row in rows]


def envelope_of(tx: Transaction, envelope_id: str | None) -> Envelope | None:
    """The envelope with that id."""
    if envelope_id is None:
        return None
    rows = tx.select("envelopes", {"envelope_id": envelope_id}, limit=1)
    return stored(rows[0]["body"]) if rows else None


def stored(body: str) -> Envelope:
    """An envelope from the log, not validated again: that happened when it was accepted."""
    return Envelope(**json.loads(body))


def _first_acceptance(
    tx: Transaction,
    context: HubContext,
    row: Row,
    envelope: Envelope,
    cached: ChannelSnapshot | None,
) -> Change | None:
    """The acceptance of an earlier message with the same idempotency key."""
    if envelope.idempotency_key is None:
        return None
    where = {"channel_id": row["channel_id"], "idempotency_key": envelope.idempotency_key}
    rows = tx.select("envelopes", where, limit=1)
    if not rows or rows[0]["sender_id"] != envelope.sender_id:
        return None
    first = stored(rows[0]["body"])
    snapshot = ChannelTransaction(tx, context, row, cached).before
    return Change(
        row["channel_id"],
        snapshot,
        accepted=first,
        repeated=True,
    )


def _check_open(channel: ChannelTransaction) -> None:
    state = channel.metadata.state
    if state is not ChannelState.ACTIVE:
        reason = f" ({channel.metadata.close_reason})" if channel.metadata.close_reason else ""
        raise ProtocolError(
            f"channel {channel.row['channel_id']} is {state.value}{reason} and accepts no messages"
        )


def _check_all(
    channel: ChannelTransaction, envelope: Envelope, changes: Sequence[Mapping[str, Any]]
) -> None:
    """Validate the staged changes and the envelope, each against the state that it meets."""
    state = _check_changes(channel, envelope.sender_id, changes)
    _validate(channel, envelope, state)


def _check_changes(
    channel: ChannelTransaction, sender_id: str, changes: Sequence[Mapping[str, Any]]
) -> Any:
    """Validate the staged changes; returns the folded state after them."""
    adapter, state = channel.before.adapter, channel.state
    for change in changes:
        if "close" not in change:
            staged = staged_envelope(adapter, channel.row["channel_id"], sender_id, change)
            _validate(channel, staged, state)
            state = adapter.fold(staged, state)
    return state


def _validate(channel: ChannelTransaction, envelope: Envelope, state: Any) -> None:
    check = channel.before.adapter.validate_send
    if channel.context.adapters.has_own:
        run_check(check, channel.metadata, envelope, state)
    else:
        check(channel.metadata, envelope, state)


def round_changes(
    tx: Transaction, turn: TurnRef, adopted: Collection[str]
) -> list[Mapping[str, Any]]:
    """The staged changes that count when the attempt ends its turn, in order."""
    changes = turn_queue.staged_changes(tx, turn.turn_id)
    return turn_queue.adopted_changes(changes, turn.attempt, adopted) if changes else []


def _write_changes(
    channel: ChannelTransaction,
    sender_id: str,
    changes: Sequence[Mapping[str, Any]],
    turn: TurnRef | None,
) -> tuple[str | None, Envelope | None]:
    """Append the staged changes; the reason if one closes the channel, and the last text."""
    closing: str | None = None
    said: Envelope | None = None
    for change in changes:
        if "close" in change:
            closing = str(change["close"] or "closed_by_participant")
            continue
        staged = staged_envelope(
            channel.before.adapter, channel.row["channel_id"], sender_id, change
        )
        sent = channel.append(staged, None if turn is None else turn.turn_id)
        said = sent if sent.event_type in TURN_EVENTS else said
    return closing, said


def staged_envelope(
    adapter: ChannelAdapter, channel_id: str, sender_id: str, change: Mapping[str, Any]
) -> Envelope:
    """A staged change as the envelope that it becomes: a text, or a change of variables."""
    if "say" in change:
        audience = change.get("audience")
        return adapter.build_text_envelope(channel_id, sender_id, change["say"], audience=audience)
    return Envelope(channel_id, sender_id, None, EV_CONTEXT_SET, dict(change))


def _turn_ended(
    channel: ChannelTransaction, envelope: Envelope, turn: TurnRef | None
) -> Row | None:
    """The turn that `envelope` ends: the turn of its round, or the one its sender was due."""
    if turn is not None:
        row = turn_queue.held(channel.tx, turn)
        if row["agent_id"] != envelope.sender_id:
            raise ProtocolError(
                f"turn {turn.turn_id} belongs to {row['agent_id']}, not to {envelope.sender_id}'s"
            )
        return row
    turn_id = channel.row["turn_id"]
    if turn_id is None or envelope.event_type not in TURN_EVENTS:
        return None
    row_of_turn = channel.tx.get("turns", turn_id)
    if row_of_turn is None or row_of_turn["agent_id"] != envelope.sender_id:
        return None
    return row_of_turn if row_of_turn["state"] in turn_queue.OPEN else None


def _follow(
    channel: ChannelTransaction, sent: Envelope, closing: str | None, *, took_turn: bool
) -> None:
    """End the channel or open the next turn, as the accepted envelope requires."""
    result = channel.before.adapter.on_accepted(channel.metadata, sent, channel.state)
    if result.next_state in _ENDING:
        ends_as = ChannelState.EXPIRED if result.next_state == "expired" else ChannelState.CLOSED
        channel.end(result.auto_close_reason or "closed_by_channel_type", ends_as)
        return
    if closing is not None:
        channel.end(closing, by=sent.sender_id)
        return
    if sent.event_type in TURN_EVENTS:
        turn = channel.before.adapter.next_turn(channel.metadata, sent, channel.state)
        if took_turn or turn is None or not channel.point_turn(turn):
            channel.give_turn(turn)
    expectations.of_silence(channel.tx, channel.before.deadlines, sent.channel_id)
