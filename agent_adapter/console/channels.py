"""The channel pages: transcript, current turn, graph, and forms to speak and to fork."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

from markupsafe import Markup
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console import actions
from agent_adapter.console.authentication import Person
from agent_adapter.console.channel_view import (
    Path,
    grouped,
    path_of,
    setters,
    turn_sentence,
    waits_of,
)
from agent_adapter.console.graph_svg import graph_svg
from agent_adapter.console.pages import Console, Form, action, page, see_other
from agent_adapter.console.paging import page_links
from agent_adapter.console.parameters import EntryNumber, Parameters, Start, Text, read_query
from agent_adapter.console.problems import Problem
from agent_adapter.console.routing import in_path
from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.flow.graph import TransitionGraph
from agent_adapter.flow.picture import Picture, picture_of
from agent_adapter.network.channels.log import read_from
from agent_adapter.network.channels.reports import (
    ONGOING,
    ChannelLine,
    ChannelReport,
    LogLine,
    list_lines,
    log_lines,
    replayed,
    report_of,
    text_line,
)
from agent_adapter.network.channels.search import find_channels, find_entries
from agent_adapter.network.channels.snapshot import channel_row
from agent_adapter.store import queries
from agent_adapter.store.base import Row, Transaction

_LISTED = 50
_LOG_PAGE = 100

ChannelStates = Literal["open", "closed", "all"]
_STATES: dict[ChannelStates, Sequence[str] | None] = {
    "open": ONGOING,
    "closed": ("closed", "expired"),
    "all": None,
}


class _ChannelListQuery(Parameters):
    state: ChannelStates = "open"
    q: Text = None
    mine: bool = False
    start: Start = None


class _ChannelQuery(Parameters):
    command: str | None = None
    order: Literal["oldest", "newest"] = "oldest"


class _NewerQuery(Parameters):
    since: EntryNumber = 0


class _SearchQuery(Parameters):
    q: Text = None
    before: Annotated[EntryNumber, Field(ge=1)] | None = None


class _EarlierQuery(Parameters):
    before: Annotated[EntryNumber, Field(ge=1)] = 1


async def _list(console: Console, request: Request, person: Person) -> Response:
    query = read_query(request, _ChannelListQuery)
    tenant, name = console.settings.tenant, person.name

    def op(tx: Transaction) -> tuple[list[ChannelLine], float | None]:
        mine = queries.human_id(tx, name) if query.mine else None
        if query.mine and mine is None:
            return [], None
        return find_channels(
            tx,
            tenant,
            states=_STATES[query.state],
            text=query.q,
            expected=mine,
            limit=_LISTED,
            start=query.start,
        )

    lines, more = await console.store.read(op)
    filters = query.model_dump(include={"state", "q"}) | {"mine": "1" if query.mine else ""}
    return console.render(
        request,
        "channels.html",
        lines=lines,
        filters=filters,
        states=list(_STATES),
        links=page_links(request, filters, start=query.start, following=more),
    )


async def _show(console: Console, request: Request, person: Person) -> Response:
    return await _render(console, request, person)


async def _render(
    console: Console,
    request: Request,
    person: Person,
    *,
    problem: Problem | None = None,
    text: str = "",
) -> Response:
    """The channel's page; with a `problem` it keeps the `text` that was not sent."""
    channel_id = request.path_params["id"]
    query = read_query(request, _ChannelQuery)
    command = (
        await actions.command_result(console.settings, query.command) if query.command else None
    )
    if command is not None and command.state == "refused":
        text = text or await console.store.read(partial(_text_of, command.id, person.reviewer))
    found = await channel_report(console, channel_id)
    lines = await log_page(console, channel_id)
    last = lines[-1].seq if lines else 0
    row, names, expectations, served = await console.store.read(lambda tx: _facts(tx, channel_id))
    picture = await _picture(console, row, names)
    seen = await console.store.read(partial(_seen, found, names, served))
    return console.render(
        request,
        "channel.html",
        report=found,
        lines=lines[::-1] if query.order == "newest" else lines,
        first=lines[0].seq if lines else 0,
        last=last,
        text_line=text_line,
        picture=picture,
        svg=None if picture is None else _drawn(picture, _current(row, found), seen["taken"]),
        rules=[] if picture is None else _rules(picture),
        expectations=expectations,
        **seen,
        speakers=await actions.speakers(console.settings, person, channel_id),
        served=served,
        key=secrets.token_hex(8),
        turn=row["turn_id"] if row["expected"] is not None else "",
        command=command,
        problem=problem,
        text=text,
        order=query.order,
        status=200 if problem is None else problem.status,
    )


async def _log(console: Console, request: Request, person: Person) -> Response:
    """The entries after `since`; an open page adds them without a reload."""
    channel_id = request.path_params["id"]
    since = read_query(request, _NewerQuery).since
    await channel_report(console, channel_id)
    lines = await log_page(console, channel_id, since=since)
    return console.render(
        request,
        "_log.html",
        lines=lines,
        text_line=text_line,
        grouped=grouped,
        channel_id=channel_id,
        last=lines[-1].seq if lines else since,
    )


async def _earlier(console: Console, request: Request, person: Person) -> Response:
    """The page of the log before an entry."""
    channel_id = request.path_params["id"]
    before = read_query(request, _EarlierQuery).before
    await channel_report(console, channel_id)
    first = max(0, before - 1 - _LOG_PAGE)
    lines = await log_page(console, channel_id, since=first, until=before - 1) if before > 1 else []
    return console.render(
        request,
        "log.html",
        lines=lines,
        text_line=text_line,
        grouped=grouped,
        channel_id=channel_id,
        first=lines[0].seq if lines else 0,
        heading="Earlier messages",
    )


async def _search(console: Console, request: Request, person: Person) -> Response:
    """The entries of a log that have a text, the newest first."""
    channel_id = request.path_params["id"]
    query = read_query(request, _SearchQuery)
    await channel_report(console, channel_id)
    lines, more = await console.store.read(
        lambda tx: find_entries(tx, channel_id, query.q or "", before=query.before)
    )
    filters = {"q": query.q}
    return console.render(
        request,
        "log.html",
        lines=lines,
        text_line=text_line,
        grouped=grouped,
        channel_id=channel_id,
        first=0,
        heading=f"Messages with “{query.q or ''}”",
        links=page_links(request, filters, start=query.before, following=more, name="before"),
    )


async def _replay(console: Console, request: Request, person: Person) -> Response:
    """The log folded again, compared with the state that the store holds."""
    channel_id = request.path_params["id"]
    await channel_report(console, channel_id)
    report = await console.store.read(lambda tx: replayed(tx, channel_id))
    return console.render(request, "replay.html", report=report, channel_id=channel_id)


async def _speak(console: Console, request: Request, person: Person, form: Form) -> Response:
    channel_id = request.path_params["id"]
    sender, text = form.get("sender", ""), form.get("text", "").replace("\r\n", "\n")
    # A second text from one page is another message; the same text twice is a double click.
    said = hashlib.sha256(f"{sender}\n{text}".encode("utf-8", "replace")).hexdigest()[:16]
    key = f"{form['key']}:{said}" if form.get("key") else ""
    try:
        id = await actions.speak(
            console.settings,
            person,
            channel_id,
            sender=sender,
            text=text,
            key=key,
            turn=form.get("turn"),
        )
    except Problem as problem:
        if problem.status not in (409, 422):
            raise
        return await _render(console, request, person, problem=problem, text=text)
    return _see_command(channel_id, id)


async def _fork(console: Console, request: Request, person: Person, form: Form) -> Response:
    channel_id = request.path_params["id"]
    id = await actions.fork(console.settings, person, channel_id, at=form.get("at", "").strip())
    return _see_command(channel_id, id)


async def _resume(console: Console, request: Request, person: Person, form: Form) -> Response:
    channel_id = request.path_params["id"]
    id = await actions.resume_fork(console.settings, person, channel_id)
    return _see_command(channel_id, id)


def _text_of(command_id: str, reviewer: str, tx: Transaction) -> str:
    """The text of a person's own command, so that a refused one is not lost."""
    row = tx.get("commands", command_id)
    if row is None or row["by"] != reviewer:
        return ""
    return str(json.loads(row["payload"]).get("text") or "")


def _see_command(channel_id: str, id: str) -> Response:
    return see_other(f"/channels/{in_path(channel_id)}?command={id}#command")


async def channel_lines(console: Console, states: ChannelStates, limit: int) -> list[ChannelLine]:
    """The tenant's channels, newest first."""
    tenant = console.settings.tenant

    return await console.store.read(lambda tx: list_lines(tx, _STATES[states], limit, tenant))


async def channel_report(console: Console, channel_id: str) -> ChannelReport:
    """A channel without its log; `Problem` 404 if it does not exist."""

    def op(tx: Transaction, tenant: str) -> ChannelReport | None:
        row = queries.channel_row(tx, channel_id, tenant)
        return None if row is None else report_of(tx, channel_id)

    return await console.find(op, f"channel {channel_id}")


async def log_page(
    console: Console,
    channel_id: str,
    *,
    since: int | None = None,
    until: int | None = None,
) -> list[LogLine]:
    """One page of a channel's log, oldest first: the newest entries, or those after `since`."""

    def op(tx: Transaction) -> list[LogLine]:
        if since is None:
            return log_lines(tx, channel_id, newest=_LOG_PAGE)
        names = queries.member_names(tx, channel_id)
        limit = _LOG_PAGE if until is None else min(_LOG_PAGE, until - since)
        return [
            LogLine(seq=seq, sender=names.get(each.sender_id, each.sender_id), envelope=each)
            for seq, each in read_from(tx, channel_id, since, max(1, limit))
        ]

    return await console.store.read(op)


def _seen(
    found: ChannelReport, names: dict[str, str], served: bool, tx: Transaction
) -> dict[str, Any]:
    """What people want to know of a channel: why it waits, who set what, the way it took."""
    channel_id = found.line.channel_id
    expected = found.line.expected
    is_person = expected is not None and queries.human_id(tx, expected) is not None
    return {
        "sentence": turn_sentence(found.turn, is_person=is_person, served=served),
        "waits": waits_of(tx, found.turn),
        "setters": setters(tx, channel_id, list(found.context_vars), names),
        "taken": path_of(tx, channel_id),
        "grouped": grouped,
    }


def _drawn(picture: Picture, current: str | None, path: Path) -> Markup:
    drawn = graph_svg(picture, current, spoke=path.spoke, steps=path.steps)
    return Markup(drawn)  # noqa: S704  # it escapes its texts itself


def _facts(
    tx: Transaction, channel_id: str
) -> tuple[Row, dict[str, str], list[dict[str, Any]], bool]:
    row = channel_row(tx, channel_id)
    names = queries.member_names(tx, channel_id)
    expectations = [
        {**each, "of": names.get(each["agent_id"] or "", each["agent_id"])}
        for each in queries.deadlines(tx, channel_id)
    ]
    return row, names, expectations, queries.hub_is_live(tx)


def _current(row: Row, found: ChannelReport) -> str | None:
    current: str | None = row["expected"] if found.line.state in ONGOING else None
    return current


async def _picture(console: Console, row: Row, names: dict[str, str]) -> Picture | None:
    graph = await console.store.read(lambda tx: queries.graph(tx, row["graph_hash"]))
    try:
        return None if graph is None else picture_of(TransitionGraph.loads(graph), names)
    except AgentAdapterError:  # the graph uses targets that only the hub's process registered
        return None


def _rules(picture: Picture) -> list[dict[str, str]]:
    labels = {node.id: node.label for node in picture.nodes} | {"start": "start"}
    return [
        {"source": labels[each.source], "target": labels[each.target], "when": each.label}
        for each in picture.arrows
    ]


ROUTES: list[Route] = [
    page("/channels", _list),
    page("/channels/{id}", _show),
    page("/channels/{id}/entries", _log),
    page("/channels/{id}/earlier", _earlier),
    page("/channels/{id}/replay", _replay),
    page("/channels/{id}/search", _search),
    action("/channels/{id}/speak", _speak),
    action("/channels/{id}/fork", _fork, role="admin"),
    action("/channels/{id}/resume", _resume, role="admin"),
]
