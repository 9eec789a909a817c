"""`ChannelTransaction`: one change of one channel, written whole at the end of an operation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent_adapter.core.errors import ProtocolError
from agent_adapter.exec.ids import new_secret_id
from agent_adapter.flow.envelope import EV_CHANNEL_CLOSED, EV_CHANNEL_EXPIRED, TURN_EVENTS, Envelope
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.adapters.base import ExpectedTurn
from agent_adapter.network.channels import expectations
from agent_adapter.network.channels.metadata import TERMINAL_STATES, ChannelState
from agent_adapter.network.channels.snapshot import (
    ChannelSnapshot,
    in_state,
    iso,
    load_snapshot,
    state_text,
)
from agent_adapter.network.hub import audit, task_operations
from agent_adapter.network.turns import turn_queue
from agent_adapter.network.turns.causes import Retries
from agent_adapter.store import channel_clocks, withdrawing
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.keys import conversation_key
from agent_adapter.store.positions import next_position

ENVELOPE_LIMIT = 512 * 1024
"""The most bytes of JSON in one envelope."""


@dataclass(frozen=True, slots=True)
class HubContext:
    """What an operation needs from its hub.

    The channel types, who is a person, who privileged, and when failed attempts are repeated.
    """

    adapters: AdapterRegistry
    is_person: Callable[[str], bool]
    is_privileged: Callable[[str], bool]
    retries: Retries = field(default_factory=Retries)


class Change:
    """What one operation did to one channel; delivered to participants once it is durable.

    Attributes:
        channel_id: the channel.
        snapshot: the channel after it.
        envelopes: those appended, in order.
        due: turns that may be started now or later.
        accepted: the envelope that the operation accepted, if any.
        repeated: whether nothing was written because it had been done before.
        opened: whether the channel is new.
    """

    __slots__ = ("accepted", "channel_id", "due", "envelopes", "opened", "repeated", "snapshot")

    def __init__(
        self,
        channel_id: str,
        snapshot: ChannelSnapshot,
        *,
        envelopes: Sequence[Envelope] = (),
        due: Sequence[Row] = (),
        accepted: Envelope | None = None,
        repeated: bool = False,
        opened: bool = False,
    ) -> None:
        self.channel_id = channel_id
        self.snapshot = snapshot
        self.envelopes = envelopes
        self.due = due
        self.accepted = accepted
        self.repeated = repeated
        self.opened = opened


class ChannelTransaction:
    """The channel's row, log and turn during one change; `finish` writes the row."""

    __slots__ = (
        "_closed_at",
        "_due",
        "_envelopes",
        "_spoken",
        "_values",
        "before",
        "context",
        "metadata",
        "row",
        "seq",
        "state",
        "tx",
    )

    def __init__(
        self, tx: Transaction, context: HubContext, row: Row, cached: ChannelSnapshot | None = None
    ) -> None:
        self.tx = tx
        self.context = context
        self.row = row
        if cached is None or cached.revision != row["revision"]:
            cached = load_snapshot(tx, row, context.adapters)
        self.before = cached
        self.metadata = self.before.metadata
        self.state = self.before.state
        self.seq: int = row["seq"]
        self._spoken: int = row["spoken"]
        self._envelopes: list[Envelope] = []
        self._due: list[Row] = []
        self._values: Row = {}

    def append(self, envelope: Envelope, turn_id: str | None = None) -> Envelope:
        """Add `envelope` to the log, with its id and time, and fold it."""
        tx = self.tx
        self.seq += 1
        sent = Envelope(
            envelope.channel_id,
            envelope.sender_id,
            envelope.audience,
            envelope.event_type,
            envelope.event_data,
            new_secret_id("env"),
            envelope.task_id,
            envelope.causation_id,
            envelope.trace_id,
            envelope.priority,
            envelope.depth,
            envelope.idempotency_key,
            iso(tx.now),
            envelope.ttl_seconds,
        )
        # Folded first: a condition of the graph may raise, and then nothing has been written.
        self.state = self.before.adapter.fold(sent, self.state)
        tx.insert("envelopes", self._log_row(sent, turn_id))
        if sent.event_type in TURN_EVENTS:
            self._spoken += 1
        self._envelopes.append(sent)
        return sent

    def say(
        self,
        event_type: str,
        data: Mapping[str, Any],
        audience: list[str] | None = None,
        *,
        by: str | None = None,
    ) -> Envelope:
        """Append an event: of the participant who caused it, else of the hub itself.

        The hub's own have the opener as their sender.
        """
        sender = self.metadata.creator_id if by is None else by
        return self.append(
            Envelope(self.row["channel_id"], sender, audience, event_type, dict(data))
        )

    def give_turn(self, turn: ExpectedTurn | None, *, by_hand: bool = False) -> None:
        """Make the next turn due; one `by_hand` waits for its participant's own message."""
        if turn is None:
            self._values["expected"] = None
            return
        n = (self._values.get("turn_n") or self.row["turn_n"]) + 1
        due_at = None if by_hand or self._waits(turn.agent_id) else self.tx.now
        made = turn_queue.open_turn(
            self.tx, self.row["channel_id"], n, turn.agent_id, turn.triggering_envelope_id, due_at
        )
        self._values |= {"turn_id": made["turn_id"], "turn_n": n, "expected": turn.agent_id}
        if due_at is not None:
            self._due.append(made)
        if not self.row["paused"]:
            channel_id = self.row["channel_id"]
            expectations.of_turn(self.tx, self.before.deadlines, channel_id, n, turn.agent_id)

    def point_turn(self, turn: ExpectedTurn) -> bool:
        """Let the current turn answer a later message; `False` if it has started.

        One that waited for the opener's message is due from now on.
        """
        row = None if self.row["turn_id"] is None else self.tx.get("turns", self.row["turn_id"])
        if row is None or not turn_queue.point_at(self.tx, row, turn):
            return False
        if row["due_at"] is None and not self._waits(turn.agent_id):
            due = {"due_at": self.tx.now, "due_event": next_position(self.tx)}
            self.tx.update("turns", {"turn_id": row["turn_id"], "state": "due"}, due)
            self._due.append(row | {"trigger": turn.triggering_envelope_id} | due)
        if not self.row["paused"]:
            channel_id, n = self.row["channel_id"], self.row["turn_n"]
            expectations.of_turn(self.tx, self.before.deadlines, channel_id, n, turn.agent_id)
        return True

    def restart_turn(self, turn: Row) -> None:
        """Make a silent turn due again."""
        self._due.append(turn_queue.restart(self.tx, turn))

    def run_clocks(self) -> None:
        """Let the clocks run on after a parked turn was taken, unless another one is parked."""
        if not channel_clocks.stands(self.tx, self.row):
            channel_clocks.run_deadlines(self.tx, self.row["channel_id"])
            self._run_life()

    def unpause(self) -> Change:
        """Continue the channel with its current turn."""
        self._values["paused"] = 0
        self._run_life()
        turn_id = self.row["turn_id"]
        turn = self.tx.get("turns", turn_id) if turn_id is not None else None
        if turn is not None and turn["state"] == "due":
            deadlines, channel_id = self.before.deadlines, turn["channel_id"]
            expectations.of_turn(self.tx, deadlines, channel_id, turn["n"], turn["agent_id"])
            if not self.context.is_person(turn["agent_id"]):
                due = {"due_at": self.tx.now, "due_event": next_position(self.tx)}
                self.tx.update("turns", {"turn_id": turn_id, "state": "due"}, due)
                self._due.append(turn | due)
        return self.finish()

    def move(self, state: ChannelState, **changes: Any) -> None:
        """Set the lifecycle state; `changes` are fields of the metadata."""
        self.metadata = in_state(self.metadata, state, **changes)
        self._values["state"] = state.value

    def end(
        self,
        reason: str,
        state: ChannelState = ChannelState.CLOSED,
        *,
        by: str | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """End the channel: append the event, drop its turns and its deadlines.

        `by` is the participant who asked for it, `facts` what else is said with the reason.
        """
        tx, channel_id = self.tx, self.row["channel_id"]
        event = EV_CHANNEL_EXPIRED if state is ChannelState.EXPIRED else EV_CHANNEL_CLOSED
        more = dict(facts or {})
        self.say(event, {"reason": reason, "channel_id": channel_id} | more, by=by)
        self.move(state, closed_at=iso(tx.now), close_reason=reason)
        self._values |= {"closed_at": tx.now, "close_reason": reason, "expected": None}
        turn_queue.drop_open(tx, channel_id, reason)
        asked = {"conversation": conversation_key(self.row["tenant"] or "", channel_id)}
        withdrawing.withdraw_all(tx, asked, reason=f"its channel has ended ({reason})")
        tx.delete("expectations", {"channel_id": channel_id})
        task_operations.end_of_channel(tx, channel_id, reason)
        self._due.clear()
        kind = audit.EXPIRED if state is ChannelState.EXPIRED else audit.CLOSED
        asked_by = {} if by is None else {"agent_id": by}
        audit.write(tx, kind, {"channel_id": channel_id, "reason": reason} | more | asked_by)

    def reopen(self) -> None:
        """Let an ended channel go on; it gets its whole life span again."""
        lives = channel_clocks.life_span(self.row)
        self.move(ChannelState.ACTIVE, closed_at=None, close_reason="", expires_at=None)
        self._values |= {"closed_at": None, "close_reason": None, "expires_at": None}
        self._values |= {"ttl": lives, "ttl_left": lives}
        if not self.row["paused"]:
            self._run_life()

    def go_on(self) -> None:
        """Continue a reopened channel with the turn at which it ended, else with the next one."""
        turn_id = self.row["turn_id"]
        turn = self.tx.get("turns", turn_id) if turn_id is not None else None
        if turn is None or turn["state"] not in ("failed", "dropped"):
            self.give_turn(self.before.adapter.expected_next(self.metadata, self.state))
            return
        # The same turn, and with it the same run: its calls that ended are not made again.
        first = turn["attempt"] == 0 and turn["n"] == 1
        waits = first or bool(self.row["paused"]) or self.context.is_person(turn["agent_id"])
        again = turn_queue.reopen(self.tx, turn, None if waits else self.tx.now)
        self._values["expected"] = turn["agent_id"]
        if not waits:
            self._due.append(again)
        if not self.row["paused"]:
            deadlines, channel_id = self.before.deadlines, turn["channel_id"]
            expectations.of_turn(self.tx, deadlines, channel_id, turn["n"], turn["agent_id"])

    @property
    def is_over(self) -> bool:
        """Whether the channel has ended and accepts nothing."""
        return self.metadata.state in TERMINAL_STATES

    def finish(self, accepted: Envelope | None = None) -> Change:
        """Write the channel's row; returns what was done."""
        revision = self.row["revision"] + 1
        folded = self.before.folded
        if self.state is not self.before.state:
            folded = state_text(self.before.adapter.state_to_dict(self.state))
        values = self._values | {"seq": self.seq, "spoken": self._spoken, "revision": revision}
        values["folded"] = folded
        where = {"channel_id": self.row["channel_id"], "revision": self.row["revision"]}
        if not self.tx.update("channels", where, values):
            raise ProtocolError(f"{self.row['channel_id']} was changed meanwhile; send it again")
        snapshot = self.before.after(revision, self.seq, self.metadata, self.state, folded)
        channel_id = self.row["channel_id"]
        return Change(
            channel_id,
            snapshot,
            envelopes=self._envelopes,
            due=self._due,
            accepted=accepted,
            opened=not self.before.revision,
        )

    def _run_life(self) -> None:
        """Let the life span run on where it stood."""
        left = (self.row | self._values)["ttl_left"]
        if left is not None:
            ends = self.tx.now + left
            self._values |= {"expires_at": ends, "ttl_left": None}
            self.metadata = replace(self.metadata, expires_at=iso(ends))

    def _waits(self, agent_id: str) -> bool:
        """Whether a turn of that participant is not started by the hub."""
        return bool(self.row["paused"]) or self.context.is_person(agent_id)

    def _log_row(self, sent: Envelope, turn_id: str | None) -> Row:
        body = sent.to_json()
        # A character has up to four bytes, so most bodies need not be encoded to be measured.
        if len(body) * 4 > ENVELOPE_LIMIT:
            check_size(len(body.encode("utf-8", "surrogatepass")))
        return {
            "channel_id": sent.channel_id,
            "seq": self.seq,
            "envelope_id": sent.envelope_id,
            "sender_id": sent.sender_id,
            "event_type": sent.event_type,
            "causation_id": sent.causation_id,
            "idempotency_key": sent.idempotency_key,
            "turn_id": turn_id,
            "at": self.tx.now,
            "audience": None if sent.audience is None else json.dumps(sent.audience),
            "body": body,
            "event": next_position(self.tx),
        }


def check_size(size: int) -> None:
    """Raises `ProtocolError` with both sizes if an envelope of `size` bytes is too long."""
    if size > ENVELOPE_LIMIT:
        raise ProtocolError(
            f"the envelope has {size} bytes of JSON, the limit is {ENVELOPE_LIMIT}; keep large "
            "data elsewhere and send where it is"
        )
