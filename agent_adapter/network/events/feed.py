"""`EventFeed`: the stream of a hub's events, and who reads it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Protocol

from agent_adapter.core.errors import NetworkError
from agent_adapter.network.events.event import HubEvent, checked_kinds, position_of
from agent_adapter.network.events.reading import EventPage, read_events
from agent_adapter.network.events.recent_errors import RecentErrors
from agent_adapter.store.base import Operation, Store
from agent_adapter.store.positions import COLUMNS
from agent_adapter.store.watching import LONGEST_SECONDS, ChangeWatch, Settling, Telling

Read = Callable[[Operation[Any]], Awaitable[Any]]

_LOOK_SECONDS = 1.0
"""How often a reader that waits looks for what other processes wrote, where nothing tells of it."""

_TABLES = tuple({table: None for table, _ in COLUMNS})
_PAGE = 200


class EventFeed:
    """Wakes the readers of a hub's events when something was written.

    Attributes:
        newest: the position of the newest event that this process has written.
        has_readers: whether anybody waits.
        errors: the exceptions behind recent events.
        settle: returns when the listeners have seen what was written; `None` without listeners.
    """

    def __init__(self, read: Read, store: Store, *, own_clock: bool = False) -> None:
        self.read = read
        self._store = store
        self._tells = isinstance(store, Telling)
        # Positions follow the hub's clock: with its own they say nothing of those of others.
        self._settling = None if own_clock or not isinstance(store, Settling) else store
        self.newest = 0
        self.has_readers = False
        self.closed = False
        self.errors = RecentErrors()
        self.settle: Callable[[], Awaitable[None]] | None = None
        self._waiting: set[asyncio.Future[None]] = set()

    def subscribe(
        self,
        kinds: str | Iterable[str] | None = None,
        *,
        after: str | None = None,
        tenant: str | None = None,
    ) -> Subscription:
        """The events of these kinds behind `after`; without it those from now on."""
        asked = checked_kinds(kinds)
        position = self.newest if after is None else position_of(after)
        return Subscription(self, asked, position, tenant)

    def ring(self) -> None:
        """Wake all readers."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def close(self) -> None:
        """End every subscription."""
        self.closed = True
        self.ring()

    async def page(
        self, after: int, kinds: frozenset[str] | None, limit: int, tenant: str | None
    ) -> EventPage:
        """A page of events; see `read_events`."""
        before = None if self._settling is None else await self._settling.settled()
        op = partial(
            read_events, after=after, kinds=kinds, limit=limit, tenant=tenant, before=before
        )
        page: EventPage = await self.read(op)
        return page

    async def next_page(
        self,
        after: int,
        kinds: frozenset[str] | None,
        *,
        tenant: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # how long a far reader may be held
        limit: int = _PAGE,
        is_over: Callable[[], bool] = lambda: False,
    ) -> EventPage:
        """The next page that has events; an empty one when the hub closes or the time is over.

        So too once `is_over()`, which is asked whenever the feed rings.
        """
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        told = ChangeWatch(self._store, _TABLES) if self._tells else None
        look = _LOOK_SECONDS if told is None else LONGEST_SECONDS
        while not (self.closed or is_over()):
            newest = self.newest
            page = await self.page(after, kinds, limit, tenant)
            if page.events:
                return page
            after = page.position
            if not page.more:
                left = look if until is None else min(look, until - loop.time())
                if left <= 0:
                    break
                await self.wait(newest, left, told)
        return EventPage([], after, more=False)

    async def wait(self, newest: int, seconds: float, told: ChangeWatch | None = None) -> None:
        """Return when something is newer than `newest`, the feed rings, or the time is over.

        Also when the store tells `told` of what another process has written.
        """
        if self.closed or newest != self.newest:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        self.has_readers = True
        others = [] if told is None else [asyncio.ensure_future(told.wait(seconds, seconds))]
        try:
            await asyncio.wait([future, *others], timeout=seconds, return_when="FIRST_COMPLETED")
        finally:
            for other in others:
                other.cancel()
            self._waiting.discard(future)
            self.has_readers = bool(self._waiting)


class PageSource(Protocol):
    """Where a subscription has its events from: the hub itself, or a connection to it."""

    closed: bool

    def ring(self) -> None:
        """Look again whether the subscription is over."""
        ...

    async def next_page(
        self,
        after: Any,
        kinds: frozenset[str] | None,
        *,
        tenant: str | None = None,
        is_over: Callable[[], bool],
    ) -> EventPage:
        """The next page that has events; an empty one when the subscription is over."""
        ...


class Subscription:
    """An asynchronous iterator over a hub's events; ends when the hub is closed.

    It holds at most one page of events, whatever its reader's pace. An event may come again after
    a restart with an older cursor, and none is left out.
    """

    def __init__(
        self,
        feed: PageSource,
        kinds: frozenset[str] | None,
        position: int | None,
        tenant: str | None = None,
    ) -> None:
        self._feed = feed
        self._kinds = kinds
        self._tenant = tenant
        self._position = position
        self._seen = position
        self._page: deque[HubEvent] = deque()
        self._closed = False

    @property
    def cursor(self) -> str:
        """Where the stream continues behind the last event that was returned.

        `""` before the first event of a subscription over a connection that has no `after`.
        """
        return "" if self._seen is None else str(self._seen)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> HubEvent:
        while not self._page:
            if self._closed or self._feed.closed:
                raise StopAsyncIteration
            page = await self._feed.next_page(
                self._position, self._kinds, tenant=self._tenant, is_over=lambda: self._closed
            )
            self._page.extend(page.events)
            self._position = page.position
        event = self._page.popleft()
        self._seen = int(event.cursor) if self._page else self._position
        return event

    async def next(self, timeout: float | None = None) -> HubEvent:  # noqa: ASYNC109
        """The next event; `TimeoutError` after `timeout` seconds, `NetworkError` at the end."""
        try:
            async with asyncio.timeout(timeout):
                return await anext(self)
        except StopAsyncIteration:
            raise NetworkError("the hub is closed: there are no further events") from None

    async def aclose(self) -> None:
        """Return no more events."""
        self._closed = True
        self._page.clear()
        self._feed.ring()

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
