"""Waits for an event of a channel: reads the log from its start, then new entries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agent_adapter.core.errors import NotConnected, NotFoundError
from agent_adapter.flow.envelope import (
    EV_CHANNEL_CLOSED,
    EV_CHANNEL_EXPIRED,
    Envelope,
    visible_to,
)
from agent_adapter.network.adapters.base import HUB_EVENTS
from agent_adapter.network.links.operations import HubLike

Predicate = Callable[[Envelope], bool]
"""Returns whether an envelope is the awaited one."""

_PAGE = 256
_ENDS = (EV_CHANNEL_CLOSED, EV_CHANNEL_EXPIRED)


class Wakes:
    """Wakes the waiters of a channel when an envelope arrives for it."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self.ended: str | None = None

    def wake(self, channel_id: str) -> None:
        """Wake the waiters of `channel_id`."""
        for event in self._waiting.get(channel_id, ()):
            event.set()

    def end(self, why: str) -> None:
        """End all waiting: every waiter gets a `NotConnected` with the text `why`."""
        self.ended = why
        for events in self._waiting.values():
            for event in events:
                event.set()

    def join(self, channel_id: str) -> asyncio.Event:
        """Start waiting: returns an event that `wake` sets."""
        event = asyncio.Event()
        self._waiting.setdefault(channel_id, set()).add(event)
        return event

    def part(self, channel_id: str, event: asyncio.Event) -> None:
        """Stop waiting."""
        events = self._waiting.get(channel_id, set())
        events.discard(event)
        if not events:
            self._waiting.pop(channel_id, None)


def from_elsewhere(envelope: Envelope, agent_id: str) -> bool:
    """Whether `agent_id` may see `envelope` and did not send it itself."""
    if envelope.sender_id == agent_id and envelope.event_type not in HUB_EVENTS:
        return False
    return visible_to(envelope, agent_id)


async def wait_for_event(
    hub: HubLike,
    wakes: Wakes,
    *,
    agent_id: str,
    channel_id: str,
    predicate: Predicate,
    timeout: float,  # noqa: ASYNC109  # its public name, and asyncio.timeout is inside
) -> Envelope:
    """The first envelope of the channel, from its start, that `predicate` accepts.

    The end of a channel that was reopened is none: it goes on.

    Each waiter reads the log itself, so that no waiter takes an event from another. Raises
    `TimeoutError` after `timeout` seconds, or at once if the channel has ended without the event.
    """
    event = wakes.join(channel_id)
    try:
        async with asyncio.timeout(timeout):
            metadata = await hub.get_channel(channel_id)
            if agent_id not in metadata.participant_ids():
                raise NotFoundError(
                    f"channel not found: there is no channel {channel_id!r} that {agent_id} is in"
                )
            at = 0
            while True:
                event.clear()
                found, at = await _scanned(hub, channel_id, at, agent_id, predicate)
                if found is not None:
                    return found
                if wakes.ended is not None:
                    raise NotConnected(wakes.ended)
                if metadata.is_terminal():
                    why = metadata.close_reason or metadata.state.value
                    raise TimeoutError(
                        f"channel {channel_id} has ended ({why}) without such an event"
                    )
                metadata = await hub.get_channel(channel_id)
                if not metadata.is_terminal():
                    await event.wait()
    finally:
        wakes.part(channel_id, event)


async def _scanned(
    hub: HubLike, channel_id: str, at: int, agent_id: str, predicate: Predicate
) -> tuple[Envelope | None, int]:
    """The first accepted envelope from entry `at` on, or `None`, and the next entry to read."""
    while True:
        page = await hub.read_wal(channel_id, at, at + _PAGE)
        for place, envelope in enumerate(page, at + 1):
            if not (from_elsewhere(envelope, agent_id) and predicate(envelope)):
                continue
            # Only a reopening follows an end.
            goes_on = envelope.event_type in _ENDS and await hub.read_wal(
                channel_id, place, place + 1
            )
            if not goes_on:
                return envelope, at
        at += len(page)
        if len(page) < _PAGE:
            return None, at
