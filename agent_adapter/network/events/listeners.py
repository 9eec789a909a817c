"""`HubListener`: methods that a hub calls with what happened, from its stream of events."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, runtime_checkable

from agent_adapter.core.errors import NetworkError
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.channels.metadata import ChannelMetadata, Expectation
from agent_adapter.network.events.event import HubEvent
from agent_adapter.network.events.feed import EventFeed

_log = logging.getLogger("agent_adapter.network")

_PATIENCE = 1.0
"""Seconds for which an operation waits for the listeners, at most, before it returns."""

_SLOW = 0.25
"""A listener whose method takes longer than these seconds is not waited for any more."""

_in_listener: contextvars.ContextVar[bool] = contextvars.ContextVar("in_listener", default=False)

Prepare = Callable[[HubEvent], Awaitable[Callable[[], Any] | None]]
"""Makes of an event what calls the listener; `None` if it is not told of the event."""


@runtime_checkable
class HubListener(Protocol):
    """What a hub calls when something has happened; see `BaseHubListener`.

    The methods observe: what they raise is logged, and what they return is ignored.
    """

    async def on_envelope_posted(self, envelope: Envelope, metadata: ChannelMetadata) -> None:
        """An envelope was accepted; it is in the log of its channel."""
        ...

    async def on_envelope_rejected(self, envelope: Envelope, reason: NetworkError) -> None:
        """An envelope was refused; `reason` is the error that its sender got."""
        ...

    async def on_dispatch_failed(
        self, envelope: Envelope, recipient_id: str, reason: BaseException
    ) -> None:
        """An accepted envelope could not be given to one of its recipients."""
        ...

    async def on_channel_event(self, channel_id: str, kind: str, payload: dict[str, Any]) -> None:
        """A channel was `created`, `opened`, `closed`, `expired`, `reopened` or `forked`."""
        ...

    async def on_agent_event(self, agent_id: str, kind: str, payload: dict[str, Any]) -> None:
        """A participant was `registered` or `unregistered`, or its record changed.

        The other kinds are `resume_set`, `rule_set`, `skill_set` and `observation_recorded`.
        """
        ...

    async def on_expectation_fired(
        self, channel_id: str, expectation: Expectation, violation: Any
    ) -> None:
        """An expectation of a channel was not met; `violation` says by whom."""
        ...

    async def on_turn_failed(
        self, channel_id: str, agent_id: str, envelope_id: str, exc: BaseException
    ) -> None:
        """An attempt of a participant's turn has failed."""
        ...

    async def on_task_event(self, task_id: str, kind: str, payload: dict[str, Any]) -> None:
        """A task was `started` or made `progress`, or has ended.

        The ends are `completed`, `failed`, `expired` and `cancelled`; `mirror_failed` says that
        the hub was not told of something.
        """
        ...

    async def on_inbox_pressure(self, agent_id: str, pending: int, cap: int) -> None:
        """The number of messages that wait for a participant has passed its mark."""
        ...


class BaseHubListener:
    """A listener that does nothing; override the methods that you need."""

    async def on_envelope_posted(self, envelope: Envelope, metadata: ChannelMetadata) -> None:
        """See `HubListener`."""

    async def on_envelope_rejected(self, envelope: Envelope, reason: NetworkError) -> None:
        """See `HubListener`."""

    async def on_dispatch_failed(
        self, envelope: Envelope, recipient_id: str, reason: BaseException
    ) -> None:
        """See `HubListener`."""

    async def on_channel_event(self, channel_id: str, kind: str, payload: dict[str, Any]) -> None:
        """See `HubListener`."""

    async def on_agent_event(self, agent_id: str, kind: str, payload: dict[str, Any]) -> None:
        """See `HubListener`."""

    async def on_expectation_fired(
        self, channel_id: str, expectation: Expectation, violation: Any
    ) -> None:
        """See `HubListener`."""

    async def on_turn_failed(
        self, channel_id: str, agent_id: str, envelope_id: str, exc: BaseException
    ) -> None:
        """See `HubListener`."""

    async def on_task_event(self, task_id: str, kind: str, payload: dict[str, Any]) -> None:
        """See `HubListener`."""

    async def on_inbox_pressure(self, agent_id: str, pending: int, cap: int) -> None:
        """See `HubListener`."""


class Listening:
    """Reads the stream for one listener, at the listener's own pace."""

    def __init__(
        self, name: str, feed: EventFeed, prepare: Prepare, context: contextvars.Context
    ) -> None:
        self._name = name
        self._feed = feed
        self._prepare = prepare
        self._position = feed.newest
        self._waiters: set[asyncio.Future[None]] = set()
        self.is_slow = False
        self._task = asyncio.create_task(
            self._run(), name=f"agent-adapter-listener-{name}", context=context.copy()
        )

    async def caught_up(self, position: int, seconds: float) -> None:
        """Return when everything up to `position` was delivered; at the latest after `seconds`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._position < position and not self._task.done():
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiters.add(waiter)
            done, _ = await asyncio.wait([waiter], timeout=max(0.0, until - loop.time()))
            self._waiters.discard(waiter)
            if not done:
                self._mark_slow(f"has not returned for {seconds:g} s")
                return

    def stop(self) -> None:
        """Deliver no more; an event under way is cancelled."""
        self._task.cancel()

    async def close(self) -> None:
        """Stop, and wait for that."""
        self.stop()
        if self._task is not asyncio.current_task():
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        _in_listener.set(True)
        while not self._feed.closed:
            newest = self._feed.newest
            page = await self._feed.page(self._position, None, 100, None)
            for event in page.events:
                try:
                    await self._deliver(event)
                except Exception:
                    _log.exception("the listener %s failed on %s", self._name, event.kind)
                self._reached(int(event.cursor))
            # What this process wrote before the read is in the page, unless there is more.
            self._reached(page.position if page.more else max(page.position, newest))
            if not page.more:
                await self._feed.wait(newest, 1.0)

    async def _deliver(self, event: HubEvent) -> None:
        call = await self._prepare(event)
        if call is None:
            return
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            result = call()
            if inspect.isawaitable(result):
                await result
        finally:
            if loop.time() - begun > _SLOW:
                self._mark_slow(f"took {loop.time() - begun:.1f} s for {event.kind}")

    def _reached(self, position: int) -> None:
        self._position = max(self._position, position)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _mark_slow(self, what: str) -> None:
        if not self.is_slow:
            self.is_slow = True
            _log.warning(
                "the listener %s %s; the hub does not wait for it any more", self._name, what
            )


class Listeners:
    """The listeners of a hub.

    An operation returns after the listeners have seen what it did, unless they are slow: each reads
    the stream by itself, so none can delay another, or lose what it has not seen yet.
    """

    def __init__(self, feed: EventFeed, context: contextvars.Context) -> None:
        self._feed = feed
        self._context = context
        self._all: dict[int, tuple[Any, Listening]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, listener: Any, prepare: Prepare) -> None:
        """Give `listener` what happens from now on; adding it twice changes nothing."""
        if self._key_of(listener) is None:
            name = type(listener).__name__ if not callable(listener) else _name_of(listener)
            listening = Listening(name, self._feed, prepare, self._context)
            self._all[id(listener)] = (listener, listening)
            self._feed.settle = self._caught_up

    def remove(self, listener: Any) -> None:
        """Give it no more; an unknown one changes nothing."""
        found = self._key_of(listener)
        if found is None:
            return
        _, listening = self._all.pop(found)
        listening.stop()
        if not self._all:
            self._feed.settle = None

    async def close(self) -> None:
        """Stop all."""
        for _, listening in self._all.values():
            await listening.close()
        self._all.clear()
        self._feed.settle = None

    def _key_of(self, listener: Any) -> int | None:
        # A method is another object at each look-up, and equal.
        return next((key for key, (item, _) in self._all.items() if item == listener), None)

    async def _caught_up(self) -> None:
        if _in_listener.get():
            return  # it would wait for itself
        position = self._feed.newest
        for _, listening in tuple(self._all.values()):
            if not listening.is_slow:
                await listening.caught_up(position, _PATIENCE)


def _name_of(listener: Any) -> str:
    return str(getattr(listener, "__qualname__", type(listener).__name__))
