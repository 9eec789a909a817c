"""`RemoteFeed`: the events of a hub in another process, asked for a page at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from agent_adapter.core.errors import NetworkError
from agent_adapter.network.events.event import HubEvent
from agent_adapter.network.events.reading import EventPage

_WAIT_SECONDS = 20.0


class RemoteFeed:
    """The pages of one subscription; `closed` once the connection has ended for good."""

    def __init__(
        self, request: Callable[[str, dict[str, Any]], Awaitable[Any]], position: int | None
    ) -> None:
        self._request = request
        self.closed = False
        self._over = asyncio.Event()
        # Asked at once: what happens before the first read is behind this cursor.
        self._begin = None if position is not None else asyncio.ensure_future(self._newest())

    def ring(self) -> None:
        """End the request that waits."""
        self._over.set()

    async def next_page(
        self,
        after: int | None,
        kinds: frozenset[str] | None,
        *,
        tenant: str | None = None,
        is_over: Callable[[], bool],
    ) -> EventPage:
        """The next page that has events; an empty one when the subscription is over."""
        position = after
        if position is None:
            assert self._begin is not None  # noqa: S101  # such a feed has asked for its begin
            position = await asyncio.shield(self._begin)
        asked = None if kinds is None else sorted(kinds)
        while not is_over():
            params = {"after": str(position), "kinds": asked, "wait": _WAIT_SECONDS}
            answer = await self._answer(params)
            if answer is None:
                break
            position = int(answer["cursor"])
            events = [HubEvent.from_dict(item) for item in answer["events"]]
            if events:
                return EventPage(events, position, more=False)
        return EventPage([], position, more=False)

    async def _newest(self) -> int:
        return int((await self._request("read_events", {}))["cursor"])

    async def _answer(self, params: dict[str, Any]) -> Any:
        """The hub's answer; `None` if the subscription was closed meanwhile."""
        asking = asyncio.ensure_future(self._request("read_events", params))
        closing = asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait([asking, closing], return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        except NetworkError:
            self.closed = True
            raise
        finally:
            for task in (asking, closing):
                task.cancel()
