"""`agent-adapter channels`: list and show channels, read their logs, fork and replay them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_adapter.cli.acting import Actor, Tenant, with_actor
from agent_adapter.cli.completing import completing
from agent_adapter.cli.exit_codes import DOUBT, OK, CommandError
from agent_adapter.cli.options import AsJson, StoreUrl
from agent_adapter.cli.output import (
    console,
    paged,
    plain,
    print_fields,
    print_json,
    print_list,
    print_rows,
    print_text,
    print_whole,
    when,
)
from agent_adapter.cli.polling import POLL_SECONDS, print_json_line
from agent_adapter.cli.prefixes import whole_id_in

if TYPE_CHECKING:
    from agent_adapter.network.channels.reports import ChannelReport, LogLine
    from agent_adapter.store.base import Store, Transaction

app = typer.Typer(
    name="channels", help="List and show channels, read their logs, fork and replay them."
)

Id = Annotated[
    str,
    typer.Argument(
        metavar="CHANNEL",
        help="The channel, chn_…, or its beginning.",
        show_default=False,
        autocompletion=completing("channel"),
    ),
]


class ChannelFilter(StrEnum):
    """The channels that `list` shows."""

    OPEN = "open"
    CLOSED = "closed"
    ALL = "all"


@app.command("list", epilog="Example: agent-adapter channels list --state all")
def list_(
    state: Annotated[
        ChannelFilter, typer.Option("--state", help="The state of the channels.")
    ] = ChannelFilter.OPEN,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="The maximum number of channels.")
    ] = 50,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """List channels, newest first."""
    from agent_adapter.network.channels.reports import ONGOING, list_lines

    states = {
        ChannelFilter.OPEN: ONGOING,
        ChannelFilter.CLOSED: ("closed", "expired"),
        ChannelFilter.ALL: None,
    }[state]
    lines = with_actor(
        store,
        tenant,
        lambda opened, actor: opened.read(lambda tx: list_lines(tx, states, limit, actor.within)),
    )
    print_list(
        [asdict(line) for line in lines],
        ("id", "type", "state", "participants", "turns", "next or close reason", "created"),
        (
            (
                line.channel_id,
                line.type,
                "paused" if line.paused else line.state,
                ", ".join(line.participants),
                line.turns,
                line.close_reason or line.expected or "-",
                when(line.created_at),
            )
            for line in lines
        ),
        empty="no channels" if state is not ChannelFilter.OPEN else "no open channels",
        as_json=as_json,
    )


@app.command(epilog="Example: agent-adapter channels show chn_0123")
def show(
    channel_id: Id, tenant: Tenant = None, store: StoreUrl = None, as_json: AsJson = False
) -> None:
    """Show one channel: its participants, variables and current turn."""
    from agent_adapter.network.channels.reports import report_of

    report = with_actor(
        store,
        tenant,
        lambda opened, actor: opened.read(lambda tx: report_of(tx, _shown(tx, channel_id, actor))),
    )
    if as_json:
        print_json(asdict(report))
    else:
        _print_report(report)


@app.command(epilog="Example: agent-adapter channels tail chn_0123 --follow")
def tail(
    channel_id: Id,
    lines: Annotated[int, typer.Option("-n", "--lines", min=1, help="The number of entries.")] = 20,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new entries until the channel ends.")
    ] = False,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print the newest entries of a channel's log; with --json one object per line."""

    async def _work(opened: Store, actor: Actor) -> None:
        from agent_adapter.network.channels.reports import log_lines, report_of

        whole = await opened.read(lambda tx: _shown(tx, channel_id, actor))
        entries = await opened.read(lambda tx: log_lines(tx, whole, newest=lines))
        seen = 0
        while True:
            _print_entries(entries, as_json)
            seen = entries[-1].seq if entries else seen
            report = await opened.read(lambda tx: report_of(tx, whole))
            over = report.line.state in ("closed", "expired")
            if not follow or (over and report.entries <= seen):
                return
            await asyncio.sleep(POLL_SECONDS)
            entries = await opened.read(_after(whole, seen))

    with contextlib.suppress(KeyboardInterrupt):
        with_actor(store, tenant, _work)


@app.command(epilog="Example: agent-adapter channels fork chn_0123 --at env_0456")
def fork(
    channel_id: Id,
    at: Annotated[
        str,
        typer.Option(
            "--at", metavar="ENVELOPE", help="The last message in the log of the fork, env_…."
        ),
    ],
    wait: Annotated[
        float, typer.Option("--wait", min=0, help="The seconds to wait for a running hub.")
    ] = 30.0,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Fork a channel at a message: a paused channel with the same log up to it. Undoes no writes.

    If a hub serves the store, that hub makes the fork.
    """

    async def _work(opened: Store, actor: Actor) -> Mapping[str, Any]:
        from agent_adapter.core.errors import NetworkError
        from agent_adapter.network.hub.hub import Hub

        whole = await opened.read(lambda tx: _shown(tx, channel_id, actor))
        try:
            hub = await Hub.open(opened, ttl_sweep_interval=0, expectation_sweep_interval=0)
        except NetworkError:
            asked = {"channel_id": whole, "at": at}
            return await _ask_hub(opened, "fork", asked, wait, actor.reviewer)
        async with hub:
            made = await hub.fork(whole, at=at)
            return {"channel_id": made, "writes": await hub.writes_after(whole, at)}

    made = with_actor(store, tenant, _work, role="admin")
    if as_json:
        print_json(made)
        return
    screen = console()
    said = f"{made['channel_id']} has the log of {channel_id} up to {at}; it is paused"
    print_whole(screen, plain(said))
    if made["writes"]:
        screen.print("writes that the fork does not undo", style="bold")
        rows = [
            (write["call_key"], write["tool"], write["ending"] or "open", when(write["started_at"]))
            for write in made["writes"]
        ]
        print_rows(screen, ("call", "tool", "ending", "started"), rows)


@app.command(epilog="Example: agent-adapter channels reopen chn_0123")
def reopen(
    channel_id: Id,
    wait: Annotated[
        float, typer.Option("--wait", min=0, help="The seconds to wait for a running hub.")
    ] = 30.0,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Reopen an ended channel: it goes on with the turn at which it ended.

    If a hub serves the store, that hub reopens it.
    """

    async def _work(opened: Store, actor: Actor) -> Mapping[str, Any]:
        from agent_adapter.core.errors import NetworkError
        from agent_adapter.network.hub.hub import Hub

        whole = await opened.read(lambda tx: _shown(tx, channel_id, actor))
        try:
            hub = await Hub.open(opened, ttl_sweep_interval=0, expectation_sweep_interval=0)
        except NetworkError:
            asked = {"channel_id": whole}
            answer = await _ask_hub(opened, "reopen", asked, wait, actor.reviewer)
            return {**answer, "channel_id": whole}
        async with hub:
            metadata = await hub.reopen(whole)
            return {"channel_id": whole, "state_of_channel": metadata.state.value}

    made = with_actor(store, tenant, _work, role="admin")
    if as_json:
        print_json({"channel_id": made["channel_id"], "state": made["state_of_channel"]})
    else:
        print_text(plain(f"{made['channel_id']} is {made['state_of_channel']}"))


@app.command(epilog="Example: agent-adapter channels replay chn_0123")
def replay(
    channel_id: Id, tenant: Tenant = None, store: StoreUrl = None, as_json: AsJson = False
) -> int:
    """Replay a channel's log and compare it with the stored state; exit code 4 if they differ.

    Changes nothing.
    """
    from agent_adapter.network.channels.reports import replayed

    report = with_actor(
        store,
        tenant,
        lambda opened, actor: opened.read(lambda tx: replayed(tx, _shown(tx, channel_id, actor))),
    )
    if as_json:
        print_json(asdict(report))
    elif report.matches:
        print_text(plain(f"{channel_id}: {report.envelopes} entries match the stored state"))
    else:
        for line in report.differences:
            print_text(plain(line))
    return OK if report.matches else DOUBT


def _shown(tx: Transaction, channel_id: str, actor: Actor) -> str:
    """The id of a channel that the actor may see; `NotFoundError` for any other."""
    from agent_adapter.network.channels.snapshot import channel_row

    whole = whole_id_in(tx, "channel", channel_id, actor.within)
    return str(channel_row(tx, whole, actor.within)["channel_id"])


def _after(channel_id: str, seen: int) -> Any:
    from agent_adapter.network.channels.reports import log_lines

    return lambda tx: log_lines(tx, channel_id, since=seen)


async def _ask_hub(
    store: Store, kind: str, payload: Mapping[str, Any], seconds: float, by: str
) -> Mapping[str, Any]:
    """The answer of the hub that serves the store to a command."""
    from agent_adapter.network.hub import commands

    id = await store.write(lambda tx: commands.queue(tx, kind, payload, by))
    try:
        async with asyncio.timeout(seconds):
            answer = None
            while answer is None:
                await asyncio.sleep(POLL_SECONDS / 5)
                answer = await store.read(lambda tx: commands.result(tx, id))
    except TimeoutError:
        raise CommandError(
            f"the hub that serves the store did not answer within {seconds:g} s; {id} stays "
            "queued: check that its program runs"
        ) from None
    if answer["state"] != "done":
        raise CommandError(str(answer.get("error")), kind=str(answer.get("kind", "refused")))
    return answer


def _print_entries(entries: list[LogLine], as_json: bool) -> None:
    from agent_adapter.network.channels.reports import text_line

    for entry in entries:
        envelope = entry.envelope
        if as_json:
            print_json_line({"seq": entry.seq, "sender": entry.sender, **envelope.to_dict()})
            continue
        event = envelope.event_type.removeprefix("ag2.")
        hidden = "" if envelope.audience is None else " (private)"
        said = f"{entry.seq:>4} {envelope.created_at} {entry.sender} {event}{hidden}"
        print_text(plain(f"{said} {envelope.envelope_id}: {text_line(envelope)}"))


def _expiry(report: ChannelReport) -> str:
    if report.ttl_left is None:
        return when(report.expires_at)
    return f"{timedelta(seconds=round(report.ttl_left))} after it goes on"


def _print_report(report: ChannelReport) -> None:
    line = report.line
    state = f"{line.state}, paused" if line.paused else line.state
    turn = report.turn or {}
    waits = ", ".join(turn.get("waits_for", ()))
    fields = {
        "opened by": report.creator,
        "participants": ", ".join(line.participants),
        "created": when(line.created_at),
        "expires": _expiry(report),
        "entries": report.entries,
        "turns": line.turns,
        "next": line.expected,
        "latest turn": f"{turn['turn_id']} of {turn['of']}: {turn['state']}" if turn else None,
        "attempts": turn.get("attempts"),
        "waits for": waits or None,
        "close reason": line.close_reason,
        "forked from": report.parent_channel_id,
    }
    rows = [(name, value) for name, value in fields.items() if value not in (None, "")]
    with paged() as screen:
        head = f"{line.channel_id} ({line.type}, {state})"
        screen.print(plain(head), style="bold", soft_wrap=True)
        print_fields(screen, rows)
        if report.context_vars:
            screen.print("variables", style="bold")
            values = json.dumps(report.context_vars, indent=2, ensure_ascii=False)
            print_whole(screen, plain(values, lines=True))
