"""What a connection may see of a hub's events and tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Protocol

from agent_adapter.core.errors import AccessDeniedError, NotFoundError, ProtocolError
from agent_adapter.flow.envelope import visible_to
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.events.event import (
    ENVELOPE_POSTED,
    EVENT_KINDS,
    EXPECTATION_FIRED,
    HubEvent,
    checked_kinds,
    position_of,
)
from agent_adapter.network.events.feed import EventFeed
from agent_adapter.network.hub.task_records import TaskMetadata

_READERS = 8
_PAGE = 100

_PUBLIC = ("agent_registered", "agent_unregistered", "resume_set", "skill_set")
_ROOTS = ("channel_", "turn_", "task_", ENVELOPE_POSTED, EXPECTATION_FIRED)
_OF_CHANNELS = tuple(kind for kind in EVENT_KINDS if kind.startswith(_ROOTS))
_SHOWN = (
    *("at", "reason", "n", "attempt", "seq", "envelope", "participants", "creator_id"),
    *("manifest_type", "manifest_version", "expectation", "violators", "on_violation", "detail"),
    *("name", "version", "source", "title", "state", "capability", "outcome", "removed"),
    "parent_channel_id",
)
"""What is told to everybody in a channel; causes of failures, and what a turn waits for, are
told to the participant whose turn it is."""


class WatchedHub(Protocol):
    """A hub, as far as its events are read here."""

    feed: EventFeed

    async def get_channel(self, channel_id: str) -> ChannelMetadata:
        """The metadata of a channel."""
        ...


class SessionEvents:
    """The events and tasks of a hub, for the participants of one connection."""

    def __init__(self, hub: WatchedHub, own: Collection[str]) -> None:
        self._hub = hub
        self._own = own
        self._readers = 0
        self._members: dict[str, frozenset[str]] = {}

    async def read(
        self, after: str | None, kinds: Sequence[str] | None, wait: float
    ) -> dict[str, Any]:
        """Events that the connection may see; waits for the first of them, at most `wait` s."""
        feed = self._hub.feed
        try:
            asked = checked_kinds(kinds)
            position = feed.newest if after is None else position_of(after)
        except ValueError as exc:
            raise ProtocolError(str(exc)) from None
        if after is None:
            return {"events": [], "cursor": str(position)}
        if self._readers >= _READERS:
            raise AccessDeniedError(f"a connection has at most {_READERS} subscriptions that wait")
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        self._readers += 1
        try:
            while True:
                left = until - loop.time()
                page = await feed.next_page(position, asked, timeout=left, limit=_PAGE)
                position = page.position
                found = [seen for item in page.events if (seen := await self._seen(item))]
                if found or left <= 0 or feed.closed:
                    events = [item.to_dict() for item in found]
                    return {"events": events, "cursor": str(position)}
        finally:
            self._readers -= 1

    async def may_see_task(self, task: TaskMetadata) -> bool:
        """Whether the task is of a participant of the connection, or of a channel it is in."""
        if task.owner_id in self._own:
            return True
        return task.channel_id is not None and await self._is_member(task.channel_id)

    async def _seen(self, event: HubEvent) -> HubEvent | None:
        """The event as the connection may see it; `None` for one of others."""
        if event.agent_id in self._own:
            return event
        shown = {key: value for key, value in event.payload.items() if key in _SHOWN}
        if event.kind in _PUBLIC:
            return replace(event, payload=shown)
        if event.kind not in _OF_CHANNELS or event.channel_id is None:
            return None
        if not await self._is_member(event.channel_id):
            return None
        envelope = event.envelope if event.kind == ENVELOPE_POSTED else None
        if envelope is not None and not any(visible_to(envelope, item) for item in self._own):
            return None
        return replace(event, payload=shown)

    async def _is_member(self, channel_id: str) -> bool:
        if channel_id not in self._members:
            try:
                metadata = await self._hub.get_channel(channel_id)
            except NotFoundError:
                return False
            self._members[channel_id] = frozenset(metadata.participant_ids())
        return not self._members[channel_id].isdisjoint(self._own)
