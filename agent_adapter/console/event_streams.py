"""Server-sent events: an open page learns that something changed, and fetches it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console.approvals import list_pending
from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, page
from agent_adapter.console.problems import Problem
from agent_adapter.network.channels.snapshot import channel_row
from agent_adapter.store import queries
from agent_adapter.store.base import Row, Transaction

POLL_SECONDS = 0.7
"""How often a stream reads the store."""

# Browsers reconnect, and the new request is authenticated again.
_STREAM_SECONDS = 600.0
_CHECK_SECONDS = 15

MAX_STREAMS = 8
"""The maximum number of open streams of one session."""

_open: Counter[str] = Counter()


async def _inbox(console: Console, request: Request, person: Person) -> Response:
    """`change` events: `{"added": […], "removed": […], "total": n}`; the first has all `ids`."""

    async def events() -> AsyncIterator[dict[str, str]]:
        known: set[str] | None = None
        sent_total = -1
        async for _ in _ticks(console, request, person):
            ids, total = await list_pending(console)
            if known is None or set(ids) != known or total != sent_total:
                added = [id for id in ids if known is not None and id not in known]
                removed = sorted((known or set()) - set(ids))
                data: dict[str, Any] = {"added": added, "removed": removed, "total": total}
                if known is None:
                    data["ids"] = ids
                yield {"event": "change", "data": json.dumps(data)}
                known, sent_total = set(ids), total

    return _stream(person, events())


async def _channel(console: Console, request: Request, person: Person) -> Response:
    """`change` events: `{"entries": n, "state": …, "expected": …, "turn": …}`."""
    channel_id = request.path_params["id"]
    await console.find(
        lambda tx, tenant: queries.channel_row(tx, channel_id, tenant), f"channel {channel_id}"
    )

    async def events() -> AsyncIterator[dict[str, str]]:
        sent: tuple[Any, ...] = ()
        async for _ in _ticks(console, request, person):
            row, turn = await console.store.read(lambda tx: _with_turn(tx, channel_id))
            if (row["revision"], turn) != sent:
                sent = (row["revision"], turn)
                data = {"entries": row["seq"], "state": row["state"], "expected": row["expected"]}
                yield {"event": "change", "data": json.dumps(data | {"turn": turn})}

    return _stream(person, events())


def _with_turn(tx: Transaction, channel_id: str) -> tuple[Row, str]:
    """The channel's row and the state of its latest turn.

    The turn is needed too: parking one does not change the channel's revision.
    """
    row = channel_row(tx, channel_id)
    turn = queries.latest_turn(tx, row)
    return row, "" if turn is None else f"{turn['turn_id']} {turn['state']} {turn['attempt']}"


async def _ticks(console: Console, request: Request, person: Person) -> AsyncIterator[None]:
    """One item per poll, until the stream is old, or the session has ended or changed tenant."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _STREAM_SECONDS
    checked_at = loop.time()
    while loop.time() < until:
        yield
        await asyncio.sleep(POLL_SECONDS)
        if loop.time() - checked_at > _CHECK_SECONDS:
            checked_at = loop.time()
            still = await console.authenticator.authenticate(request)
            if still is None or still.tenant != person.tenant:
                return


def _stream(person: Person, events: AsyncIterator[dict[str, str]]) -> Response:
    key = person.session.id if person.session is not None else person.name
    if _open[key] >= MAX_STREAMS:
        raise Problem(
            429,
            "too-many",
            f"too many open pages (at most {MAX_STREAMS}): close one and reload this page",
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

    return EventSourceResponse(counted(), ping=15)


ROUTES: list[Route] = [
    page("/events/approvals", _inbox),
    page("/events/channels/{id}", _channel),
]
