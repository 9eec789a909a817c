"""What open pages hear of: one look at the store for all of them, however many there are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from agent_adapter.network.channels.snapshot import channel_row
from agent_adapter.store import queries
from agent_adapter.store.base import Store, Transaction
from agent_adapter.store.waiting import Counts, turns_waiting, writes_in_doubt

_LOG = logging.getLogger(__name__)

POLL_SECONDS = 0.7
"""How often the store is looked at while any page is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageNews:
    """What one open page can show; equal ones need no event.

    `inbox` has the ids of the first page of requests; `channels` and `runs` are those that the page
    asked about.
    """

    counts: Counts
    inbox: tuple[str, ...]
    channels: dict[str, dict[str, Any]]
    runs: dict[str, int]


@dataclass(slots=True, eq=False)
class Listener:
    """One open stream: whose it is, and what its pages show.

    `is_valid` looks whether the session is still good; `news` is set with each new `latest`, and
    at the `end` of the stream, whose reason that is.
    """

    tenant: str
    name: str
    channels: tuple[str, ...]
    runs: tuple[str, ...]
    page_size: int
    is_valid: Callable[[Transaction], bool]
    latest: PageNews | None = None
    end: str | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, latest: PageNews | None, end: str | None = None) -> None:
        """Take what the last look found."""
        if end is not None or latest != self.latest:
            self.latest, self.end = latest, end
            self.news.set()


class Feed:
    """Looks at the store for every open stream of a console."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # One for each event loop that serves the application: their futures do not mix.
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Watch] = WeakKeyDictionary()

    @asynccontextmanager
    async def following(self, listener: Listener) -> AsyncIterator[None]:
        """Let the listener hear of what changes until the block ends."""
        loop = asyncio.get_running_loop()
        watch = self._loops.setdefault(loop, _Watch(self._store))
        watch.add(listener)
        try:
            yield
        finally:
            watch.remove(listener)


class _Watch:
    """The listeners of one event loop, and the task that looks for them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._joined = asyncio.Event()

    def add(self, listener: Listener) -> None:
        self._listeners.add(listener)
        self._joined.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    def remove(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        if not self._listeners and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while self._listeners:
            self._joined.clear()
            await self._look()
            try:
                # Whoever joins does not wait for the next look.
                async with asyncio.timeout(POLL_SECONDS):
                    await self._joined.wait()
            except TimeoutError:
                pass

    async def _look(self) -> None:
        listeners = list(self._listeners)
        try:
            found = await self._store.read(lambda tx: _news_of(tx, listeners))
        except Exception:
            # The streams end; the pages say that they are out of date, and try again.
            _LOG.exception("the console cannot read its store")
            for listener in listeners:
                listener.hear(None, "store")
            return
        for listener, latest in zip(listeners, found, strict=True):
            listener.hear(latest, None if latest is not None else "signed-out")


def _news_of(tx: Transaction, listeners: list[Listener]) -> list[PageNews | None]:
    """What each listener can show now; `None` for one whose session has ended."""
    inboxes: dict[tuple[str, int], tuple[tuple[str, ...], int, int]] = {}

    def of(listener: Listener) -> PageNews | None:
        if not listener.is_valid(tx):
            return None
        key = (listener.tenant, listener.page_size)
        if key not in inboxes:
            found, pending = queries.pending_approvals(tx, *key)
            inboxes[key] = (tuple(found), pending, writes_in_doubt(tx, listener.tenant))
        ids, total, doubt = inboxes[key]
        turns = turns_waiting(tx, listener.tenant, listener.name)
        return PageNews(
            counts=Counts(waiting=total, doubt=doubt, turns=turns),
            inbox=ids,
            channels={id: _channel(tx, id) for id in listener.channels},
            runs={id: _entries(tx, id) for id in listener.runs},
        )

    return [of(each) for each in listeners]


def _channel(tx: Transaction, channel_id: str) -> dict[str, Any]:
    """A channel's state; the turn is part of it, as parking one changes no revision."""
    row = channel_row(tx, channel_id)
    turn = queries.latest_turn(tx, row)
    said = "" if turn is None else f"{turn['turn_id']} {turn['state']} {turn['attempt']}"
    return {
        "entries": row["seq"],
        "state": row["state"],
        "expected": row["expected"],
        "turn": f"{said} {row['revision']}",
    }


def _entries(tx: Transaction, run_id: str) -> int:
    """How long the run's chain is: it grows with whatever happens in the run."""
    head = tx.get("chain_heads", run_id)
    return 0 if head is None else int(head["seq"])
