"""`Dispatcher`: runs the due turns of attached participants, one at a time per channel."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol

from agent_adapter.core.errors import AgentAdapterError, NetworkError, StaleTurn, StoreError
from agent_adapter.network.turns.turn_types import RunTurn, StartedTurn, TurnRef
from agent_adapter.store.base import Row

_log = logging.getLogger("agent_adapter.network")


class TurnKeeper(Protocol):
    """The operations of a hub that the dispatcher uses."""

    async def start_turn(self, turn_id: str, channel_id: str | None = None) -> StartedTurn | None:
        """Start a due turn of a channel; `None` if it is no longer due."""
        ...

    async def end_silent_turn(self, ref: TurnRef) -> None:
        """End a turn without a packet."""
        ...

    async def fail_turn(self, ref: TurnRef, error: BaseException) -> None:
        """Count a failed attempt."""
        ...

    async def release_turn(self, ref: TurnRef) -> None:
        """Give a turn back without counting the attempt."""
        ...


class Dispatcher:
    """The running rounds by channel, and the due turns that wait for their channel."""

    def __init__(
        self,
        keeper: TurnKeeper,
        runner_of: Callable[[str], RunTurn | None],
        context: contextvars.Context,
    ) -> None:
        self._keeper = keeper
        self._runner_of = runner_of
        self._context = context
        self.around: Callable[[StartedTurn], AbstractContextManager[None]] | None = None
        self._running: dict[str, asyncio.Task[None]] = {}
        self._agents: dict[str, str] = {}
        self._next: dict[str, deque[Row]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._told: set[tuple[str, int]] = set()
        self._lost: set[str] = set()
        self._closed = False

    @property
    def running(self) -> int:
        """The number of running rounds."""
        return len(self._running)

    def offer(self, row: Row, delay: float = 0.0) -> None:
        """Start the turn of `row` after `delay` seconds, once its channel has no running round."""
        turn_id, channel_id = row["turn_id"], row["channel_id"]
        if self._closed or self._runner_of(row["agent_id"]) is None:
            return
        if delay > 0:
            self._later(turn_id, delay, row)
        elif channel_id in self._running:
            waiting = self._next.setdefault(channel_id, deque())
            if all(item["turn_id"] != turn_id for item in waiting):
                waiting.append(row)
        else:
            self._begin(row)

    async def run_by_hand(self, row: Row, run_turn: RunTurn) -> None:
        """Run a due turn with `run_turn`, once its channel has no running round; waits for its end.

        For participants whose turns are started by nobody else.
        """
        channel_id = row["channel_id"]
        while (under_way := self._running.get(channel_id)) is not None:
            await asyncio.wait([under_way])
        if self._closed:
            return
        self._begin(row, run_turn)
        await asyncio.wait([self._running[channel_id]])

    def told(self, ref: TurnRef) -> None:
        """Note that the hub has recorded the end of this attempt."""
        self._told.add((ref.turn_id, ref.attempt))

    def is_told(self, ref: TurnRef) -> bool:
        """Whether the hub has recorded the end of this attempt."""
        return (ref.turn_id, ref.attempt) in self._told

    def take_lost(self) -> list[str]:
        """Take the ids of turns whose state is unknown here because a write of theirs failed."""
        lost = [turn_id for turn_id in self._lost if turn_id not in self._under_way()]
        self._lost.difference_update(lost)
        return lost

    def lose(self, turn_id: str) -> None:
        """Mark a turn whose state is unknown; `take_lost` returns it."""
        self._lost.add(turn_id)

    async def stop_agent(self, agent_id: str) -> None:
        """Cancel the rounds of a detached participant and wait for them."""
        stopped = [
            task
            for channel_id, task in self._running.items()
            if self._agents.get(channel_id) == agent_id and task is not asyncio.current_task()
        ]
        for task in stopped:
            task.cancel()
        await asyncio.gather(*stopped, return_exceptions=True)

    async def idle(self) -> None:
        """Return when no round is running."""
        while self._running:
            await asyncio.wait(list(self._running.values()))

    async def close(self) -> None:
        """Start no more rounds; cancel the running ones and wait for them."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._next.clear()
        tasks = [task for task in self._running.values() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _under_way(self) -> set[str]:
        return {task.get_name().removeprefix("turn-") for task in self._running.values()}

    def _later(self, turn_id: str, delay: float, row: Row) -> None:
        if turn_id not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[turn_id] = loop.call_later(delay, self._timed, turn_id, row)

    def _timed(self, turn_id: str, row: Row) -> None:
        self._timers.pop(turn_id, None)
        self.offer(row)

    def _begin(self, row: Row, run_turn: RunTurn | None = None) -> None:
        # In the hub's own context: a round must not inherit the scope of the round before it.
        channel_id = row["channel_id"]
        self._agents[channel_id] = row["agent_id"]
        self._running[channel_id] = asyncio.create_task(
            self._work(row, run_turn), name=f"turn-{row['turn_id']}", context=self._context.copy()
        )

    async def _work(self, row: Row, run_turn: RunTurn | None) -> None:
        try:
            await self._run(row, run_turn or self._runner_of(row["agent_id"]))
        except NetworkError as exc:
            _log.warning("turn %s: %s", row["turn_id"], exc)
        except Exception as exc:
            _log.error("turn %s could not be run: %s", row["turn_id"], exc, exc_info=exc)
            self.lose(row["turn_id"])
        finally:
            self._free(row["channel_id"])

    def _free(self, channel_id: str) -> None:
        self._running.pop(channel_id, None)
        self._agents.pop(channel_id, None)
        waiting = self._next.get(channel_id)
        if waiting:
            row = waiting.popleft()
            if not waiting:
                del self._next[channel_id]
            self.offer(row)

    async def _run(self, row: Row, run_turn: RunTurn | None) -> None:
        if run_turn is None:
            return
        started = await self._keeper.start_turn(row["turn_id"], row["channel_id"])
        if started is None:
            return
        ref = started.ref
        try:
            if self.around is None:
                await self._finish(run_turn, started)
            else:
                with self.around(started):
                    await self._finish(run_turn, started)
        except StaleTurn as exc:
            _log.info("turn %s: %s", ref.turn_id, exc)
        finally:
            self._told.discard((ref.turn_id, ref.attempt))

    async def _finish(self, run_turn: RunTurn, started: StartedTurn) -> None:
        """Run the round; record its end if its runner did not."""
        ref = started.ref
        try:
            await run_turn(started)
        except asyncio.CancelledError:
            if not self.is_told(ref):
                await _through(self._keeper.release_turn(ref))
            raise
        except (StaleTurn, StoreError):
            # A write failed and may have been committed: `poll` reads the turn's row again.
            raise
        except Exception as exc:
            if self.is_told(ref):
                raise
            await self._keeper.fail_turn(ref, exc)
            return
        if not self.is_told(ref):
            await self._keeper.end_silent_turn(ref)


async def _through(work: Awaitable[None]) -> None:
    """Finish `work` under cancellation: otherwise the turn stays `running` with no runner."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except AgentAdapterError as exc:
        _log.info("a turn could not be given back: %s", exc)
