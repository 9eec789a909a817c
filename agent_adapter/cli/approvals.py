"""`agent-adapter approvals`: what waits for a person, and their word on it."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_adapter.cli.exit_codes import OK
from agent_adapter.cli.options import (
    AsJson,
    KeyFile,
    Reason,
    Reviewer,
    StoreUrl,
    parse_object,
    reviewer_key,
    reviewer_name,
    with_store,
)
from agent_adapter.cli.output import console, plain, print_json, table, when
from agent_adapter.cli.polling import Seconds, follow, print_line

if TYPE_CHECKING:
    from agent_adapter.exec.approval.inbox import ApprovalRecord
    from agent_adapter.store.base import Store

__all__ = ["app"]

app = typer.Typer(help="See what waits for a person, and decide it.")

Id = Annotated[str, typer.Argument(metavar="ID", help="The approval, apr_….", show_default=False)]

_MOST_WATCHED = 100_000


class ApprovalFilter(StrEnum):
    """Which records `list` shows."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    TAKEN = "taken"
    EXPIRED = "expired"
    ALL = "all"


@app.command("list", epilog="Example: agent-adapter approvals list --state all")
def list_(
    state: Annotated[
        ApprovalFilter, typer.Option("--state", help="Which records.")
    ] = ApprovalFilter.PENDING,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 100,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> int:
    """List what waits for a person, oldest first."""

    async def _work(opened: Store) -> list[ApprovalRecord]:
        from agent_adapter.exec.approval.inbox import Inbox

        wanted = None if state is ApprovalFilter.ALL else state.value
        return await Inbox(opened).list(wanted, limit=limit)

    records = with_store(store, _work)
    if as_json:
        print_json([asdict(record) for record in records])
        return OK
    if not records:
        console().print(
            "nothing waits for a person" if state is ApprovalFilter.PENDING else "no records"
        )
        return OK
    rows = [
        (each.id, each.state, each.tool, _line(each.shown), each.why, when(each.decide_by))
        for each in records
    ]
    columns = ("id", "state", "tool", "arguments", "why", "decide by")
    console().print(table(columns, rows))
    return OK


@app.command(epilog="Example: agent-adapter approvals show apr_0123")
def show(record_id: Id, store: StoreUrl = None, as_json: AsJson = False) -> int:
    """Show one record whole: exactly what will run, and what is invisible made visible."""

    async def _work(opened: Store) -> ApprovalRecord:
        from agent_adapter.exec.approval.inbox import Inbox

        return await Inbox(opened).get(record_id)

    _print(with_store(store, _work), as_json)
    return OK


@app.command(epilog='Example: agent-adapter approvals approve apr_0123 --reason "order checked"')
def approve(
    record_id: Id,
    args: Annotated[
        str | None,
        typer.Option("--args", help="Other arguments to run with, as one JSON object."),
    ] = None,
    reason: Reason = None,
    reviewer: Reviewer = None,
    key: KeyFile = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> int:
    """Let the call run, once, as shown, or with the arguments that you give."""
    edits = None if args is None else parse_object(args, "--args")
    who = reviewer_name(reviewer)
    signer = reviewer_key(key)

    async def _work(opened: Store) -> ApprovalRecord:
        from agent_adapter.exec.approval.inbox import Inbox

        return await Inbox(opened).approve(
            record_id, reviewer=who, reason=reason, arguments=edits, key=signer
        )

    return _decided(with_store(store, _work), who, as_json)


@app.command(epilog='Example: agent-adapter approvals deny apr_0123 --reason "wrong customer"')
def deny(
    record_id: Id,
    reason: Reason = None,
    reviewer: Reviewer = None,
    key: KeyFile = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> int:
    """Refuse the call; the same call of that run is not asked about again."""
    who = reviewer_name(reviewer)
    signer = reviewer_key(key)

    async def _work(opened: Store) -> ApprovalRecord:
        from agent_adapter.exec.approval.inbox import Inbox

        return await Inbox(opened).deny(record_id, reviewer=who, reason=reason, key=signer)

    return _decided(with_store(store, _work), who, as_json)


@app.command(epilog="Example: agent-adapter approvals watch --json")
def watch(seconds: Seconds = None, store: StoreUrl = None, as_json: AsJson = False) -> int:
    """Print what waits for a person, then every new question and every decision as it comes."""
    follow(store, _InboxFollower(as_json).look, seconds)
    return OK


class _InboxFollower:
    """Prints the records that are new or have another state since it last looked."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._known: dict[str, str] = {}

    async def look(self, store: Store) -> bool:
        from agent_adapter.exec.approval.inbox import Inbox

        inbox = Inbox(store)
        waiting = await inbox.list("pending", limit=_MOST_WATCHED)
        gone = [each for each in self._known if each not in {record.id for record in waiting}]
        for record in [*waiting, *[await inbox.get(each) for each in gone]]:
            if self._known.get(record.id) != record.state:
                self._print(record)
            if record.state == "pending":
                self._known[record.id] = record.state
            else:
                self._known.pop(record.id, None)
        return False

    def _print(self, record: ApprovalRecord) -> None:
        if self._as_json:
            print_line(asdict(record))
            return
        head = f"{record.id} {record.state} {record.tool}"
        if record.state == "pending":
            said = f"{_line(record.shown)} ({record.why}); decide by {when(record.decide_by)}"
        else:
            said = f"by {record.reviewer}" if record.reviewer else ""
        print(plain(f"{head} {said}".rstrip()), flush=True)


def _decided(record: ApprovalRecord, who: str, as_json: bool) -> int:
    if as_json:
        print_json(asdict(record))
    elif record.state == "pending":
        votes = f"{record.votes_needed} votes are needed"
        console().print(plain(f"{record.id}: noted for {who}; {votes}"))
    else:
        until = f", to be used by {when(record.use_by)}" if record.state == "approved" else ""
        console().print(plain(f"{record.id}: {record.tool} {record.state} by {who}{until}"))
    return OK


def _print(record: ApprovalRecord, as_json: bool) -> None:
    if as_json:
        print_json(asdict(record))
        return
    out = console()
    out.print(plain(f"{record.tool} ({record.id}, {record.state})"), style="bold")
    out.print(plain(record.description, lines=True))
    out.print(table(("field", "value"), _fields(record)))
    out.print("arguments", style="bold")
    # Printed, not laid out: a long value is neither cut nor broken.
    print(plain(record.shown, lines=True))
    if record.edited is not None:
        out.print("edited by the reviewer to", style="bold")
        print(plain(json.dumps(record.edited, indent=2, ensure_ascii=False), lines=True))


def _fields(record: ApprovalRecord) -> list[tuple[str, Any]]:
    values = {
        "why": record.why,
        "run": record.run_id,
        "thread": record.thread_id,
        "call": record.call_key,
        "on behalf of": record.principal,
        "asked": when(record.created_at),
        "decide by": when(record.decide_by),
        "tainted by": ", ".join(record.taint),
        "after writes": ", ".join(record.earlier),
        "edits": "allowed" if record.edits_allowed else "the framework cannot apply them",
        "votes needed": record.votes_needed if record.votes_needed > 1 else None,
        "reviewer": record.reviewer,
        "reason": record.reason,
        "decided": when(record.decided_at) if record.decided_at else None,
        "use by": when(record.use_by) if record.use_by else None,
        "taken": when(record.taken_at) if record.taken_at else None,
    }
    return [(key, value) for key, value in values.items() if value]


def _line(shown: str) -> str:
    """The arguments on one line; never a part of them, since a hidden end could be the point."""
    text = " ".join(shown.split())
    return text if len(text) <= 200 else f"{len(text)} characters: see `approvals show`"
