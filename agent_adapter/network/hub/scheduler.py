"""`Scheduler`: sweeps deadlines, lifetimes, decisions and commands, and renews the lease."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agent_adapter.core.errors import ToolError
from agent_adapter.exec import retention
from agent_adapter.exec.executor import Executor
from agent_adapter.network.channels import expectations, expiring, lifecycle
from agent_adapter.network.channels.integrity import ChannelAltered
from agent_adapter.network.channels.snapshot import ChannelSnapshot
from agent_adapter.network.channels.transaction import Change, HubContext
from agent_adapter.network.hub import commands, leases
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.network.hub.channels import Channels
from agent_adapter.network.hub.identities import Identities
from agent_adapter.network.hub.own_expectations import OwnExpectations
from agent_adapter.network.hub.tasks import Tasks
from agent_adapter.network.hub.turn_observer import TurnObserver
from agent_adapter.network.hub.turns import Turns
from agent_adapter.network.turns import turn_queue
from agent_adapter.store.base import Row, Transaction

_POLL_SECONDS = 0.2
_RENEW_SECONDS = 5.0
_OBSERVE_SECONDS = 10.0
_RETENTION_SECONDS = 3600.0
_log = logging.getLogger("agent_adapter.network")


class Scheduler:
    """Sweeps and polls a store at intervals; each method is one sweep, for tests and tools."""

    def __init__(
        self,
        service: ChannelService,
        hub_context: HubContext,
        turns: Turns,
        *,
        channels: Channels,
        identities: Identities,
        executor: Executor,
        holder: str,
        tasks: Tasks,
        own_expectations: OwnExpectations,
        context: contextvars.Context,
    ) -> None:
        self._service = service
        self._hub_context = hub_context
        self._turns = turns
        self._channels = channels
        self._identities = identities
        self._executor = executor
        self._holder = holder
        self._tasks = tasks
        self._own_expectations = own_expectations
        self._observer = TurnObserver(service, identities)
        self._context = context
        self._sweepers: dict[str, asyncio.Task[None]] = {}
        self._own: set[str] = set()
        self._renewed_at = 0.0

    def start(self, ttl_sweep_interval: float, expectation_sweep_interval: float) -> None:
        """Start the sweepers, each as a task of its own; an interval of 0 leaves one off."""
        self._repeat("ttl", ttl_sweep_interval, self.expire_due)
        self._repeat("expectations", expectation_sweep_interval, self.run_expectations)
        self._repeat("poll", _POLL_SECONDS, self.poll)
        self._repeat("observations", _OBSERVE_SECONDS, self.count_uses)
        self._repeat("retention", _RETENTION_SECONDS, self.apply_retention)

    def register_sweeper(
        self, name: str, interval_seconds: float, fn: Callable[[], Awaitable[object] | object]
    ) -> None:
        """Call `fn` every `interval_seconds`, until the hub is closed.

        What it raises is logged, and it is called again. `ValueError` for a name that is taken and
        for an interval that is not above 0.
        """
        if name in self._sweepers:
            taken = ", ".join(sorted(self._sweepers))
            raise ValueError(f"the sweeper {name!r} is already registered; there are {taken}")
        if not 0 < interval_seconds < math.inf:
            raise ValueError(f"interval_seconds is a positive number, not {interval_seconds!r:.80}")

        async def sweep() -> None:
            result = fn()
            if inspect.isawaitable(result):
                await result

        self._own.add(name)
        self._repeat(name, interval_seconds, sweep)

    async def unregister_sweeper(self, name: str) -> None:
        """Stop a sweeper that was registered; an unknown name changes nothing."""
        if name not in self._own:
            return
        self._own.discard(name)
        task = self._sweepers.pop(name)
        task.cancel()
        if task is not asyncio.current_task():
            await asyncio.gather(task, return_exceptions=True)

    @property
    def sweepers(self) -> list[str]:
        """The names of the sweepers that run."""
        return [name for name, task in self._sweepers.items() if not task.done()]

    async def close(self) -> None:
        """Cancel the sweepers and wait for them."""
        tasks = list(self._sweepers.values())
        self._sweepers.clear()
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def expire_due(self) -> None:
        """Close the channels whose lifetime has ended, and end such tasks."""
        await self._tasks.expire_tasks()
        for channel_id in await self._service.read(expiring.expire_due):
            with contextlib.suppress(ChannelAltered):
                change = await self._service.change(
                    channel_id, _expiry(self._hub_context, channel_id)
                )
                if not change.repeated:
                    _log.warning("channel %s has expired: its lifetime has ended", channel_id)

    async def run_expectations(self) -> None:
        """Act on every passed deadline: warn, close the channel, or record it."""
        if await self._service.read(turn_queue.has_expired_waits):
            await self._service.write(turn_queue.wake_expired)
            await self._turns.run_due()
        for row in await self._service.read(expectations.due):
            fired: list[Mapping[str, Any]] = []
            with contextlib.suppress(ChannelAltered):
                await self._service.change(
                    row["channel_id"], _firing(self._hub_context, row, fired)
                )
            for record in fired:
                _log.warning(
                    "expectation %s of %s was not met by %s: %s after %g s",
                    record["expectation"],
                    record["channel_id"],
                    ", ".join(map(self._identities.name_for, record["violators"])) or "nobody",
                    record["on_violation"],
                    record["detail"]["elapsed_seconds"],
                )
            if fired and row["handler"] in self._hub_context.adapters.own_handlers:
                await self._own_expectations.handle_fired(row)
        await self._own_expectations.run()

    async def poll(self) -> None:
        """Renew the lease; look for decisions and commands that other processes wrote."""
        now = asyncio.get_running_loop().time()
        if now - self._renewed_at >= _RENEW_SECONDS:
            self._renewed_at = now
            await self._service.write(lambda tx: leases.beat(tx, self._holder))
        if self._executor.runtime.in_flight.lost:
            # A parked turn may wait for one of these calls.
            with contextlib.suppress(ToolError):
                await self._executor.runtime.in_flight.settle_lost()
        for turn_id in self._turns.dispatcher.take_lost():
            await self._turns.reclaim(turn_id)
        await self._turns.run_due()
        await self.run_commands()

    async def count_uses(self) -> None:
        """Count ended turns and their calls in the résumés of participants."""
        await self._observer.run()

    async def apply_retention(self) -> None:
        """Delete what is older than its tenant's policy, in small steps."""
        await retention.apply(self._service.store, by="hub")

    async def run_commands(self) -> None:
        """Run the commands that other processes have queued in the store."""
        for row in await self._service.read(commands.queued):
            state, result = await commands.run(self._channels, self._identities, row)
            await self._service.write(_settling(row["id"], state, result))

    async def idle(self) -> None:
        """Return when no turn is running and nothing waits for delivery."""
        dispatcher = self._turns.dispatcher
        while True:
            await dispatcher.idle()
            await self._service.drained()
            await asyncio.sleep(0)
            if not dispatcher.running:
                return

    def _repeat(self, name: str, seconds: float, sweep: Callable[[], Awaitable[object]]) -> None:
        if seconds > 0:
            self._sweepers[name] = asyncio.create_task(
                _repeated(name, seconds, sweep),
                name=f"agent-adapter-{name}",
                context=self._context.copy(),
            )


def _expiry(
    context: HubContext, channel_id: str
) -> Callable[[Transaction, ChannelSnapshot | None], Change]:
    return lambda tx, cached: expiring.expire(tx, context, channel_id, cached)


def _firing(
    context: HubContext, row: Row, fired: list[Mapping[str, Any]]
) -> Callable[[Transaction, ChannelSnapshot | None], Any]:
    def op(tx: Transaction, cached: ChannelSnapshot | None) -> Any:
        change, record = lifecycle.fire(tx, context, row, cached)
        fired[:] = [] if record is None else [record]  # an operation may be run again
        return change

    return op


def _settling(id: str, state: str, result: Mapping[str, Any]) -> Callable[[Transaction], None]:
    return lambda tx: commands.settle(tx, id, state, result)


async def _repeated(name: str, seconds: float, sweep: Callable[[], Awaitable[object]]) -> None:
    while True:
        await asyncio.sleep(seconds)
        try:
            await sweep()
        except Exception:
            # One failed sweep must not end the rest: the rows it did not reach stay due.
            _log.exception("the sweeper %s failed; it runs again in %g s", name, seconds)
