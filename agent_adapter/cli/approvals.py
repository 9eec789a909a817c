"""`agent-adapter approvals`: list, show and decide approvals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from agent_adapter.cli.acting import Actor, Tenant, with_actor
from agent_adapter.cli.completing import completing
from agent_adapter.cli.options import (
    AsJson,
    KeyFile,
    Reason,
    Reviewer,
    StoreUrl,
    parse_json,
    parse_object,
    reviewer_key,
    reviewer_name,
    with_store,
)
from agent_adapter.cli.output import (
    paged,
    plain,
    print_fields,
    print_json,
    print_line,
    print_list,
    print_text,
    print_whole,
    when,
)
from agent_adapter.cli.polling import Seconds, poll, print_json_line
from agent_adapter.cli.prefixes import whole_id
from agent_adapter.core.inert import short, text_of

if TYPE_CHECKING:
    from agent_adapter.exec.approval.inbox import ApprovalRecord, Inbox
    from agent_adapter.store.base import Store

T = TypeVar("T")

app = typer.Typer(name="approvals", help="List, show and decide approvals.")

Id = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The approval, apr_…, or its beginning.",
        show_default=False,
        autocompletion=completing("approval"),
    ),
]

_MOST_WATCHED = 100_000


class ApprovalFilter(StrEnum):
    """The records that `list` shows."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    TAKEN = "taken"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    ANSWERED = "answered"
    ALL = "all"


@app.command("list", epilog="Example: agent-adapter approvals list --state all")
def list_(
    state: Annotated[
        ApprovalFilter, typer.Option("--state", help="The state of the records.")
    ] = ApprovalFilter.PENDING,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="The maximum number of records.")
    ] = 100,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """List approvals, oldest first."""
    wanted = None if state is ApprovalFilter.ALL else state.value
    records = _with_inbox(store, tenant, lambda inbox, by: inbox.list(wanted, limit=limit))
    print_list(
        [asdict(record) for record in records],
        ("id", "state", "tool", "arguments", "why", "decide by"),
        (
            (
                short(each.id),
                each.state,
                short(each.tool),
                _line(each),
                each.why,
                when(each.decide_by),
            )
            for each in records
        ),
        empty="no pending approvals" if state is ApprovalFilter.PENDING else "no records",
        as_json=as_json,
    )


@app.command(epilog="Example: agent-adapter approvals show apr_0123")
def show(
    record_id: Id, tenant: Tenant = None, store: StoreUrl = None, as_json: AsJson = False
) -> None:
    """Show one record: exactly what will run, with invisible characters as escapes."""

    async def work(inbox: Inbox, by: str, id: str) -> ApprovalRecord:
        return await inbox.get(id)

    _print(_with_record(store, tenant, record_id, work), as_json)


@app.command(epilog='Example: agent-adapter approvals approve apr_0123 --reason "order checked"')
def approve(
    record_id: Id,
    args: Annotated[
        str | None,
        typer.Option(
            "--args", help="Run the call with these arguments instead, as one JSON object."
        ),
    ] = None,
    reason: Reason = None,
    reviewer: Reviewer = None,
    key: KeyFile = None,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Approve a call: it may run once, as shown or with other arguments."""
    edits = None if args is None else parse_object(args, "--args")
    signer = reviewer_key(key)

    async def work(inbox: Inbox, by: str, id: str) -> tuple[ApprovalRecord, str]:
        return await inbox.approve(id, reviewer=by, reason=reason, arguments=edits, key=signer), by

    decided = _with_record(store, tenant, record_id, work, "approver", reviewer)
    _print_decision(*decided, as_json)


@app.command(epilog='Example: agent-adapter approvals deny apr_0123 --reason "wrong customer"')
def deny(
    record_id: Id,
    reason: Reason = None,
    reviewer: Reviewer = None,
    key: KeyFile = None,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Deny a call; the same call of that run is not asked for again."""
    signer = reviewer_key(key)

    async def work(inbox: Inbox, by: str, id: str) -> tuple[ApprovalRecord, str]:
        return await inbox.deny(id, reviewer=by, reason=reason, key=signer), by

    decided = _with_record(store, tenant, record_id, work, "approver", reviewer)
    _print_decision(*decided, as_json)


@app.command(epilog='Example: agent-adapter approvals respond apr_0123 --text "ask Bo instead"')
def respond(
    record_id: Id,
    text: Annotated[
        str | None, typer.Option("--text", help="The result of the call, as text.")
    ] = None,
    value: Annotated[
        str | None, typer.Option("--value", help="The result of the call, as one JSON value.")
    ] = None,
    reason: Reason = None,
    reviewer: Reviewer = None,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Answer in place of a call: it is not run, and the answer is its result."""
    if (text is None) == (value is None):
        raise typer.BadParameter("give one of: --text, --value")
    answer = text if value is None else parse_json(value, "--value")

    async def work(inbox: Inbox, by: str, id: str) -> tuple[ApprovalRecord, str]:
        return await inbox.respond(id, answer, reviewer=by, reason=reason), by

    decided = _with_record(store, tenant, record_id, work, "approver", reviewer)
    _print_decision(*decided, as_json)


@app.command(epilog='Example: agent-adapter approvals withdraw apr_0123 --reason "order cancelled"')
def withdraw(
    record_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]",
            help="The approval, apr_…, or its beginning.",
            show_default=False,
            autocompletion=completing("approval"),
        ),
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", help="The reason, kept in the record.")
    ] = "no longer needed",
    run: Annotated[
        str | None, typer.Option("--run", help="Withdraw every open approval of this run.")
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", help="The same of this conversation or channel."),
    ] = None,
    reviewer: Reviewer = None,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Withdraw a request, or an approval that no call has used: nothing will run on it."""
    if [record_id, run, conversation].count(None) != 2:
        raise typer.BadParameter("give one of: an approval's ID, --run, --conversation")

    async def work(inbox: Inbox, by: str, id: str) -> tuple[Sequence[str], str]:
        if run is not None:
            return await inbox.withdraw_run(run, reason, reviewer=by), by
        if conversation is not None:
            return await inbox.withdraw_conversation(conversation, reason, reviewer=by), by
        return [(await inbox.withdraw(id, reason, reviewer=by)).id], by

    ids, who = _with_record(store, tenant, record_id or "", work, "approver", reviewer)
    print_line(ids, f"withdrawn by {who}: {', '.join(ids) or 'none was open'}", as_json)


@app.command("confirm-time", epilog="Example: agent-adapter approvals confirm-time")
def confirm_time(
    reviewer: Reviewer = None, store: StoreUrl = None, as_json: AsJson = False
) -> None:
    """Confirm the clock after it jumped ahead: approvals are used, and expire, by it again."""
    who = reviewer_name(reviewer)
    ahead = with_store(store, lambda opened: _inbox(opened).confirm_time(reviewer=who))
    print_line({"ahead": ahead}, f"confirmed by {who}; the clock was {ahead:,.0f} s ahead", as_json)


@app.command(epilog="Example: agent-adapter approvals watch --json")
def watch(
    seconds: Seconds = None,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print the pending approvals, then every new request and decision."""
    poll(store, tenant, _InboxFollower(as_json).look, seconds)


class _InboxFollower:
    """Prints the records that are new or have another state since its last poll."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._known: dict[str, str] = {}

    async def look(self, store: Store, actor: Actor) -> bool:
        inbox = _inbox(store, actor.tenant)
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
            print_json_line(asdict(record))
            return
        head = f"{record.id} {record.state} {short(record.tool)}"
        if record.state == "pending":
            said = f"{_line(record)} ({record.why}); decide by {when(record.decide_by)}"
        else:
            said = f"by {short(record.reviewer)}" if record.reviewer else ""
        print_text(plain(f"{head} {said}".rstrip()))


def _with_inbox(
    url: str | None,
    tenant: str | None,
    work: Callable[[Inbox, str], Awaitable[T]],
    role: str = "viewer",
    reviewer: str | None = None,
) -> T:
    """Open a tenant's inbox, run `work` with it and the name of who acts, and close the store."""

    async def _work(store: Store, actor: Actor) -> T:
        return await work(_inbox(store, actor.tenant), actor.reviewer)

    return with_actor(url, tenant, _work, role=role, reviewer=reviewer)


def _with_record(
    url: str | None,
    tenant: str | None,
    written: str,
    work: Callable[[Inbox, str, str], Awaitable[T]],
    role: str = "viewer",
    reviewer: str | None = None,
) -> T:
    """The same, with the id of the record that is written whole or by its beginning."""

    async def _work(store: Store, actor: Actor) -> T:
        id = await whole_id(store, "approval", written, actor.tenant)
        return await work(_inbox(store, actor.tenant), actor.reviewer, id)

    return with_actor(url, tenant, _work, role=role, reviewer=reviewer)


def _inbox(store: Store, tenant: str = "") -> Inbox:
    from agent_adapter.exec.approval.inbox import Inbox

    return Inbox(store, tenant=tenant)


def _print_decision(record: ApprovalRecord, who: str, as_json: bool) -> None:
    if record.state == "pending":
        said = f"the vote of {who} is recorded; {record.votes_needed} votes are required"
    else:
        until = f", use by {when(record.use_by)}" if record.state == "approved" else ""
        said = f"{short(record.tool)} {record.state} by {who}{until}"
    print_line(asdict(record), f"{record.id}: {said}", as_json)


def _print(record: ApprovalRecord, as_json: bool) -> None:
    if as_json:
        print_json(asdict(record))
        return
    with paged() as screen:
        head = f"{short(record.tool)} ({record.id}, {record.state})"
        screen.print(plain(head), style="bold", soft_wrap=True)
        print_whole(screen, plain(record.description, lines=True))
        print_fields(screen, _fields(record))
        screen.print("arguments", style="bold")
        print_whole(screen, plain(record.shown, lines=True))
        if record.change is not None:
            screen.print("edited by a reviewer", style="bold")
            print_whole(screen, plain(record.change, lines=True))


def _fields(record: ApprovalRecord) -> list[tuple[str, Any]]:
    values = {
        "why": record.why,
        "run": short(record.run_id),
        "thread": short(record.thread_id or ""),
        "call": record.call_key,
        "on behalf of": short(record.principal or ""),
        "asked": when(record.created_at),
        "decide by": when(record.decide_by),
        "tainted by": ", ".join(map(short, record.taint)),
        "after writes": ", ".join(record.earlier),
        "edits": "allowed" if record.edits_allowed else "not supported by the framework",
        "votes": _votes(record),
        "reviewer": short(record.reviewer or ""),
        "reason": record.reason,
        "answer": None if record.state != "answered" else text_of({"answer": record.answer}),
        "decided": when(record.decided_at) if record.decided_at else None,
        "use by": when(record.use_by) if record.use_by else None,
        "taken": when(record.taken_at) if record.taken_at else None,
    }
    return [(key, value) for key, value in values.items() if value]


def _votes(record: ApprovalRecord) -> str | None:
    if record.votes_needed == 1:
        return None
    given = f"{len(record.votes)} of {record.votes_needed} for what is shown"
    return f"{given}: {', '.join(map(short, record.votes))}" if record.votes else given


def _line(record: ApprovalRecord) -> str:
    """The arguments on one line, or only their size: a cut could hide what matters."""
    text = " ".join(record.shown.split())
    if record.change is not None:
        text += " (edited by a reviewer)"
    return text if len(text) <= 200 else f"{len(text)} characters: see `approvals show`"
