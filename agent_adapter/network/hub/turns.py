"""`Turns`: who is attached, the turns started for them, and how each attempt ended."""

from __future__ import annotations

import contextlib
import contextvars
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from agent_adapter.core.errors import ProtocolError, StoreError
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.adapters.checks import await_check, is_async
from agent_adapter.network.channels import log, parking
from agent_adapter.network.channels.integrity import ChannelAltered
from agent_adapter.network.channels.metadata import ChannelState
from agent_adapter.network.channels.snapshot import (
    ChannelSnapshot,
    channel_row,
    iso,
    load_snapshot,
)
from agent_adapter.network.channels.transaction import Change, HubContext
from agent_adapter.network.events.recent_errors import attempt_key
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.network.hub.identities import Identities
from agent_adapter.network.turns import causes, turn_queue
from agent_adapter.network.turns.dispatcher import Dispatcher
from agent_adapter.network.turns.turn_spans import TurnSpans, note_failure, note_parked
from agent_adapter.network.turns.turn_types import (
    PendingTurn,
    Receiver,
    RunTurn,
    StartedTurn,
    TurnRef,
)
from agent_adapter.store import waits
from agent_adapter.store.base import Row, Transaction

_log = logging.getLogger("agent_adapter.network")


class Turns:
    """Starts due turns of attached participants and records the end of each attempt."""

    def __init__(
        self,
        service: ChannelService,
        hub_context: HubContext,
        identities: Identities,
        context: contextvars.Context,
        spans: TurnSpans,
    ) -> None:
        self._service = service
        self._context = hub_context
        self._identities = identities
        self._spans = spans
        self.dispatcher = Dispatcher(self, service.runner_of, context)
        service.when_due(self.dispatcher.offer)

    def attach(self, agent_id: str, receiver: Receiver) -> None:
        """Deliver the envelopes and turns of a participant to `receiver`.

        `ProtocolError` if a receiver is attached for it already.
        """
        name = self._identities.get(agent_id).name
        if self._service.receiver(agent_id) is not None:
            raise ProtocolError(f"{name} is connected already; disconnect it first")
        self._service.attach(agent_id, receiver)
        if receiver.run_turn is not None:
            self._service.spawn(partial(self.resume_turns, agent_id))

    async def detach(self, agent_id: str) -> None:
        """Stop delivering; returns when the participant's running turns are released."""
        self._service.detach(agent_id)
        await self.dispatcher.stop_agent(agent_id)

    async def run_due(self) -> None:
        """Start the due turns of all attached participants."""
        # Looked up here and not for each turn: a program may set up tracing after its hub.
        self.dispatcher.around = self._spans.around if self._spans.enabled else None
        hosted = [item for item in self._service.attached() if self._service.runner_of(item)]
        if hosted:
            for row in await self._service.read(lambda tx: turn_queue.due_turns(tx, hosted)):
                self.dispatcher.offer(row)

    async def run_turn(self, turn_id: str, run_turn: RunTurn) -> None:
        """Run a due turn with `run_turn`, in place of its participant's own runner.

        One that runs elsewhere is awaited: it may be given back.
        """
        row = await self._service.read(lambda tx: tx.get("turns", turn_id))
        if row is not None and row["state"] in ("due", "running"):
            await self.dispatcher.run_by_hand(row, run_turn)

    async def resume_turns(self, agent_id: str) -> int:
        """Start the turns of a participant that can run; returns how many wait for it.

        Those in which it said nothing, though its channel expects it, are started again.
        """
        waiting = len(await self.pending_turns_for(agent_id))
        for row in await self._service.read(lambda tx: turn_queue.silent_turns(tx, agent_id)):
            change = _resuming(self._context, row["turn_id"])
            with contextlib.suppress(ChannelAltered):
                waiting += bool((await self._service.change(row["channel_id"], change)).due)
        await self.run_due()
        return waiting

    async def wake_turn(self, turn_id: str) -> None:
        """Make a parked turn due: what it waits for was decided outside the hub's store."""
        await self._service.write(lambda tx: waits.wake_turn(tx, turn_id))
        await self.run_due()

    async def reclaim(self, turn_id: str) -> None:
        """Make due a turn whose last write failed, so that its outcome here is unknown."""
        try:
            await self._service.write(lambda tx: turn_queue.reclaim(tx, turn_id))
        except StoreError:
            self.dispatcher.lose(turn_id)
            raise

    async def pending_turns_for(self, agent_id: str) -> list[PendingTurn]:
        """Turns of a participant that have not ended, oldest first."""

        def op(tx: Transaction) -> list[PendingTurn]:
            where = {"agent_id": agent_id, "state in": ["due", "running", "parked"]}
            return [_pending(tx, row) for row in tx.select("turns", where)]

        found = await self._service.read(op)
        return sorted(found, key=lambda item: item.expected_at)

    async def start_turn(self, turn_id: str, channel_id: str | None = None) -> StartedTurn | None:
        """Claim a due turn, of that channel where it is known; `None` if it is not due.

        That is so too while its channel is paused, or was changed in the store.
        """

        def op(tx: Transaction) -> StartedTurn | str | None:
            turn = tx.get("turns", turn_id)
            row = None if turn is None else tx.get("channels", turn["channel_id"])
            if row is None or row["paused"] or row["state"] != ChannelState.ACTIVE.value:
                return None
            found_in: str = row["channel_id"]
            if found_in not in self._service.whole:
                return None if self._service.is_altered(found_in) else found_in
            started = turn_queue.start(tx, turn_id)
            cached = self._service.snapshots.get(row["channel_id"])
            return None if started is None else _started(tx, started, row, self._context, cached)

        found = await self._service.write_leased(op, channel_id)
        if isinstance(found, str):
            with contextlib.suppress(ChannelAltered):
                await self._service.check(found)
            found = await self._service.write_leased(op, channel_id)
        return None if isinstance(found, str) else found

    async def check_turn(self, ref: TurnRef) -> None:
        """`StaleTurn` unless the attempt may still write."""
        await self._service.read(lambda tx: turn_queue.held(tx, ref))

    def has_ended(self, ref: TurnRef) -> bool:
        """Whether the end of a running attempt is recorded, though its runner has not returned."""
        return self.dispatcher.is_told(ref)

    async def stage(self, ref: TurnRef, call_key: str | None, body: Mapping[str, Any]) -> None:
        """Keep a change of the running attempt until its packet.

        `StaleTurn` if another attempt has begun.
        """
        await self._service.write(
            lambda tx: turn_queue.stage(tx, ref, call_key, body), ref.channel_id
        )

    async def end_silent_turn(self, ref: TurnRef, adopted: Collection[str] = ()) -> None:
        """End a turn without a packet; its staged changes are written."""
        change: Change = await self._service.change(
            ref.channel_id,
            lambda tx, cached: log.end_silent_turn(
                tx, self._context, ref, cached=cached, adopted=adopted
            ),
            before=None
            if not self._context.adapters.has_async_checks
            else partial(self.await_checks, ref.channel_id, None, ref, adopted),
        )
        self.dispatcher.told(ref)
        now = change.snapshot
        expected = now.adapter.expected_next(now.metadata, now.state)
        if expected is not None and not now.metadata.is_terminal():
            _log.warning(
                "turn %s of %s in channel %s ended without a message, which the channel still "
                "expects; resume_pending_turns() of the participant starts it again",
                ref.turn_id,
                self._identities.name_for(expected.agent_id),
                ref.channel_id,
            )

    async def await_checks(
        self,
        channel_id: str,
        envelope: Envelope | None,
        turn: TurnRef | None,
        adopted: Collection[str],
    ) -> None:
        """Await the channel type's async check of what a round staged, and of its envelope."""
        snapshot = await self._service.snapshot(channel_id)
        adapter, metadata, state = snapshot.adapter, snapshot.metadata, snapshot.state
        if not is_async(adapter.validate_send) or metadata.is_terminal():
            return
        if turn is not None:
            sender_id, changes = await self._service.read(
                lambda tx: (
                    turn_queue.held(tx, turn)["agent_id"],
                    log.round_changes(tx, turn, adopted),
                )
            )
            for change in changes:
                if "close" not in change:
                    staged = log.staged_envelope(adapter, channel_id, sender_id, change)
                    await await_check(adapter.validate_send, metadata, staged, state)
                    state = adapter.fold(staged, state)
        if envelope is not None and envelope.event_type not in log.INVITE_ANSWERS:
            await await_check(adapter.validate_send, metadata, envelope, state)

    async def park_turn(self, ref: TurnRef, waits_for: Sequence[str]) -> None:
        """Park a turn until one of these approvals or calls is decided; its deadlines pause."""
        note_parked(len(waits_for))
        cached = self._service.snapshots.get(ref.channel_id)
        row, cause = await self._service.write_leased(
            lambda tx: parking.park(tx, self._context, ref, waits_for, cached)
        )
        self.dispatcher.told(ref)
        if cause is None:
            self.dispatcher.offer(row)
        else:
            name = self._identities.name_for(row["agent_id"])
            said = (ref.turn_id, name, ref.channel_id, cause)
            _log.warning("turn %s of %s in %s waits for a person: %s", *said)

    async def fail_turn(self, ref: TurnRef, error: BaseException) -> None:
        """Count a failed attempt: the turn is retried, or the channel closes with `turn_failed`."""
        note_failure(error)
        self._service.feed.errors.keep(attempt_key(ref.turn_id, ref.attempt), error)
        result: Row | Change = await self._service.change(
            ref.channel_id,
            lambda tx, cached: log.fail_turn(tx, self._context, ref, error, cached=cached),
        )
        self.dispatcher.told(ref)
        if isinstance(result, dict):
            fails = result["fails"]
            pause = self._context.retries.waits(error)[fails - 1]
            self._tell_of(ref, error, f"it is tried again in {pause:g} s", whole=fails == 1)
            self.dispatcher.offer(result, pause)
        else:
            self._tell_of(ref, error, "its channel is closed (turn_failed)", whole=True)

    def _tell_of(self, ref: TurnRef, error: BaseException, follows: str, *, whole: bool) -> None:
        """Log a failed attempt; if `whole`, also at ERROR with the traceback."""
        said = (ref.attempt, ref.turn_id, ref.channel_id, causes.cause_of(error), follows)
        _log.warning("attempt %d of turn %s in %s failed: %s; %s", *said)
        if whole:
            _log.error("the failure of turn %s: %s", ref.turn_id, said[3], exc_info=error)

    async def release_turn(self, ref: TurnRef) -> None:
        """Give a turn back without counting the attempt; it is due at once."""
        row = await self._service.write(lambda tx: turn_queue.release(tx, ref), ref.channel_id)
        self.dispatcher.told(ref)
        self.dispatcher.offer(row)


def _resuming(
    context: HubContext, turn_id: str
) -> Callable[[Transaction, ChannelSnapshot | None], Change]:
    return lambda tx, cached: log.resume_silent(tx, context, turn_id, cached)


def _started(
    tx: Transaction, turn: Row, row: Row, context: HubContext, cached: ChannelSnapshot | None
) -> StartedTurn:
    snapshot = load_snapshot(tx, row, context.adapters, cached)
    ref = TurnRef(
        turn_id=turn["turn_id"],
        channel_id=turn["channel_id"],
        attempt=turn["attempt"],
        owner_id=turn["owner_id"],
    )
    return StartedTurn(
        ref=ref,
        agent_id=turn["agent_id"],
        n=turn["n"],
        trigger=log.envelope_of(tx, turn["trigger"]),
        metadata=snapshot.metadata,
        state=snapshot.state,
        seq=row["seq"],
        spoken=row["spoken"],
        staged=turn_queue.staged_changes(tx, turn["turn_id"]) if turn["attempt"] > 1 else (),
    )


def _pending(tx: Transaction, row: Row) -> PendingTurn:
    since = row["due_at"] or row["started_at"]
    if since is None:
        since = channel_row(tx, row["channel_id"])["created_at"]
    return PendingTurn(
        channel_id=row["channel_id"],
        triggering_envelope_id=row["trigger"],
        expected_at=iso(since),
        turn_id=row["turn_id"],
        state=row["state"],
    )
