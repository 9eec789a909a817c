"""One stream of server-sent events for all open pages of a browser."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import asdict
from functools import partial
from typing import Any

from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console.approvals import PAGE_SIZE
from agent_adapter.console.authentication import Person
from agent_adapter.console.feed import Listener, PageNews
from agent_adapter.console.pages import Console, page
from agent_adapter.console.problems import Problem
from agent_adapter.store import queries
from agent_adapter.store.base import Row, Transaction

MAX_STREAMS = 8
"""The maximum number of open streams of one session."""

MAX_TOPICS = 32
"""The maximum number of channels and runs that one stream follows."""

_PING_SECONDS = 15

_open: Counter[str] = Counter()


async def _events(console: Console, request: Request, person: Person) -> Response:
    """`change` events with the parts that differ from the event before; the first has all of them.

    An `end` event names the reason why no other will come.
    """
    channels = tuple(dict.fromkeys(request.query_params.getlist("channel")))
    runs = tuple(dict.fromkeys(request.query_params.getlist("run")))
    if len(channels) + len(runs) > MAX_TOPICS:
        raise Problem(422, "query", f"channel, run: at most {MAX_TOPICS} in one stream")
    listener = await _listener(console, request, person, channels, runs)
    return _stream(person, _changes(console, listener))


async def _listener(
    console: Console,
    request: Request,
    person: Person,
    channels: tuple[str, ...] = (),
    runs: tuple[str, ...] = (),
) -> Listener:
    """A listener for this person; `Problem` 404 for a channel or a run that they cannot see."""
    for id in channels:
        await console.find(partial(_channel_of, id), f"channel {id}")
    for id in runs:
        await console.find(partial(_run_of, id), f"run {id}")
    return Listener(
        tenant=console.settings.tenant,
        name=person.name,
        channels=channels,
        runs=runs,
        page_size=PAGE_SIZE,
        is_valid=lambda tx: console.authenticator.is_signed_in(tx, request, person),
    )


def _channel_of(id: str, tx: Transaction, tenant: str) -> Row | None:
    return queries.channel_row(tx, id, tenant)


def _run_of(id: str, tx: Transaction, tenant: str) -> queries.RunLine | None:
    return queries.run_line(tx, id, tenant)


async def _check(console: Console, request: Request, person: Person) -> Response:
    """Nothing: whether a stream would be answered, which browsers do not tell of a failed one."""
    return Response(status_code=204)


async def _changes(console: Console, listener: Listener) -> AsyncIterator[dict[str, str]]:
    sent: PageNews | None = None
    async with console.feed.following(listener):
        while True:
            await listener.news.wait()
            listener.news.clear()
            now = listener.latest
            if listener.end is not None or now is None:
                yield {"event": "end", "data": json.dumps({"reason": listener.end})}
                return
            if parts := _parts(sent, now):
                yield {"event": "change", "data": json.dumps(parts)}
            sent = now


def _parts(before: PageNews | None, now: PageNews) -> dict[str, Any]:
    """What differs between two looks; all of the first one."""
    parts: dict[str, Any] = {}
    if before is None or before.counts != now.counts:
        parts["counts"] = asdict(now.counts)
    if before is None:
        parts["inbox"] = {"ids": list(now.inbox), "added": [], "removed": []}
    elif before.inbox != now.inbox:
        known, shown = set(before.inbox), set(now.inbox)
        parts["inbox"] = {
            "added": [id for id in now.inbox if id not in known],
            "removed": [id for id in before.inbox if id not in shown],
        }
    if "inbox" in parts or "counts" in parts:
        parts["inbox"] = parts.get("inbox", {"added": [], "removed": []})
        parts["inbox"]["total"] = now.counts.waiting
    for name in ("channels", "runs"):
        old = {} if before is None else getattr(before, name)
        fresh = {id: each for id, each in getattr(now, name).items() if old.get(id) != each}
        parts |= {name: fresh} if fresh else {}
    return parts


def _stream(person: Person, events: AsyncIterator[dict[str, str]]) -> Response:
    key = person.session.id if person.session is not None else person.name
    if _open[key] >= MAX_STREAMS:
        raise Problem(
            429,
            "too-many",
            f"too many open browsers (at most {MAX_STREAMS}): close one and reload this page",
        )

    async def counted() -> AsyncIterator[dict[str, str]]:
        _open[key] += 1
        try:
            async for event in events:
                yield event
        finally:
            _open[key] -= 1
            if not _open[key]:
                del _open[key]

    # As an event and not as a comment: a page notices by its absence that the line is dead.
    return EventSourceResponse(
        counted(),
        ping=_PING_SECONDS,
        ping_message_factory=lambda: ServerSentEvent(event="ping", data=""),
    )


ROUTES: list[Route] = [
    page("/events", _events, idle=True),
    page("/events/check", _check, idle=True),
]
