"""`agent-adapter runs`: list runs, show one as a timeline, follow the ledger."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_adapter.cli.acting import Actor, Tenant, stored_run_of, with_actor
from agent_adapter.cli.completing import completing
from agent_adapter.cli.exit_codes import USAGE, CommandError
from agent_adapter.cli.following import LedgerFollower, no_run
from agent_adapter.cli.moments import Since, Until, moment_of
from agent_adapter.cli.options import (
    AsJson,
    Reason,
    Reviewer,
    StoreUrl,
)
from agent_adapter.cli.output import (
    paged,
    plain,
    print_json,
    print_line,
    print_list,
    print_whole,
    when,
)
from agent_adapter.cli.polling import Seconds, poll
from agent_adapter.cli.prefixes import whole_id
from agent_adapter.core.inert import short

if TYPE_CHECKING:
    from rich.console import Console

    from agent_adapter.exec.approval.inbox import ApprovalRecord
    from agent_adapter.store.base import Store, Transaction
    from agent_adapter.store.queries import CallReport, RunLine

    _Shown = tuple[list[CallReport], list[ApprovalRecord]]

app = typer.Typer(name="runs", help="List runs, show one as a timeline, follow the ledger.")

Run = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="The run, run_…, its name, or a beginning.",
        show_default=False,
        autocompletion=completing("run"),
    ),
]


class Status(StrEnum):
    """What a run is, or how a call of it ended, for `list --status`."""

    WAITING = "waiting"
    RUNNING = "running"
    IN_DOUBT = "in-doubt"
    CANCELLED = "cancelled"
    OK = "ok"
    NO_EFFECT = "no-effect"
    FAILED = "failed"
    UNKNOWN = "unknown"
    ABORTED = "aborted"


class Ending(StrEnum):
    """How a call ended, for `list --ending`."""

    OK = "ok"
    NO_EFFECT = "no-effect"
    UNKNOWN = "unknown"
    ABORTED = "aborted"
    FAILED = "failed"


NamePart = Annotated[
    str | None, typer.Option("--name", help="Runs whose name or id has this part.")
]
OfStatus = Annotated[
    Status | None, typer.Option("--status", help="Runs that are so, or have such a call.")
]
OfEnding = Annotated[
    Ending | None, typer.Option("--ending", help="The same, for how a call ended.")
]


@app.command(epilog='Example: agent-adapter runs cancel run_7f3a --reason "wrong customer"')
def cancel(
    run: Run,
    reason: Reason = None,
    reviewer: Reviewer = None,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a run: none of its writes may start any more, in any process."""
    from agent_adapter.exec.upkeep import cancel_run

    async def _work(opened: Store, actor: Actor) -> None:
        stored = await _stored(opened, run, actor)
        await cancel_run(opened, stored, by=actor.reviewer, reason=reason or "")

    with_actor(store, tenant, _work, role="approver", reviewer=reviewer)
    said = f"{run} is cancelled: none of its writes may start any more"
    print_line({"run": run, "cancelled": True, "reason": reason}, said, as_json)


@app.command("list", epilog="Example: agent-adapter runs list --tool refund --status waiting")
def list_(
    tool: Annotated[
        str | None, typer.Option("--tool", help="Runs that called a tool of this name, or part.")
    ] = None,
    principal: Annotated[
        str | None, typer.Option("--principal", help="Runs on behalf of this name, or part of it.")
    ] = None,
    name: NamePart = None,
    status: OfStatus = None,
    ending: OfEnding = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="The maximum number of runs.")] = 50,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    from agent_adapter.store.run_search import RunFilter, find_runs

    if status is not None and ending is not None:
        raise CommandError("--status and --ending say the same: give one", code=USAGE)
    how = status or ending
    wanted = RunFilter(
        run=name,
        tool=tool,
        who=principal,
        status=None if how is None else how.value,  # type: ignore[arg-type]
        since=None if since is None else moment_of(since, "--since"),
        until=None if until is None else moment_of(until, "--until"),
    )

    async def _work(opened: Store, actor: Actor) -> list[RunLine]:
        found: list[RunLine] = await _read(
            opened, lambda tx: find_runs(tx, actor.tenant, wanted, limit=limit)[0]
        )
        return found

    lines = with_actor(store, tenant, _work)
    print_list(
        [asdict(line) for line in lines],
        ("run", "started", "last", "on behalf of", "calls", "waiting", "in doubt"),
        (
            (
                line.run_id,
                when(line.started_at),
                when(line.last_at),
                line.principal or "-",
                line.calls,
                line.waiting,
                line.unclear,
            )
            for line in lines
        ),
        empty="no runs",
        as_json=as_json,
    )


@app.command(epilog="Example: agent-adapter runs show run_0123")
def show(
    run: Run,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="The maximum number of calls.")
    ] = 100,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show one run as a timeline: each call with its arguments, decision, time and result."""

    async def _work(opened: Store, actor: Actor) -> _Shown | None:
        whole = await whole_id(opened, "run", run, actor.tenant)
        found: _Shown | None = await _read(
            opened, lambda tx: _reports(tx, whole, actor.tenant, limit)
        )
        return found

    shown = with_actor(store, tenant, _work)
    if shown is None:
        raise no_run(run)
    reports, waiting = shown
    calls = [_call_facts(report) for report in reports]
    if as_json:
        print_json({"run_id": run, "calls": calls, "waiting": [asdict(each) for each in waiting]})
        return
    with paged() as screen:
        if not calls and not waiting:
            print_whole(screen, plain(f"{run}: no calls; see `agent-adapter ledger show {run}`"))
        for each in waiting:
            _print_waiting(screen, each)
        for call in calls:
            _print_call(screen, call)


@app.command(epilog="Example: agent-adapter runs tail --json")
def tail(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="The run; default: all.",
            show_default=False,
            autocompletion=completing("run"),
        ),
    ] = None,
    lines: Annotated[
        int,
        typer.Option("-n", "--lines", min=0, help="The number of existing entries to print first."),
    ] = 10,
    seconds: Seconds = None,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print ledger entries as they are written; with --json one object per line."""
    poll(store, tenant, LedgerFollower(run, lines, as_json).look, seconds)


def _reports(tx: Transaction, run: str, tenant: str, limit: int) -> _Shown | None:
    """The calls of a tenant's run, given its key or its name, and the requests that wait.

    `None` for no such run.
    """
    from agent_adapter.exec.approval.inbox import records_of
    from agent_adapter.store.queries import call_report, call_rows, stored_run
    from agent_adapter.store.waiting import requests_of_run

    stored = stored_run(tx, run, tenant)
    if stored is None:
        return None
    rows = call_rows(tx, stored, tenant, limit=limit).rows
    reports = (call_report(tx, row["call_key"], tenant) for row in rows)
    waiting = records_of(tx, requests_of_run(tx, stored, limit))
    return [each for each in reports if each is not None], waiting


async def _stored(store: Store, run: str, actor: Actor) -> str:
    """The key of the actor's run."""
    stored = await stored_run_of(store, run, actor)
    if stored is None:
        raise no_run(run)
    return stored


async def _read(store: Store, op: Any) -> Any:
    await store.flush()
    return await store.read(op)


def _call_facts(report: CallReport) -> dict[str, Any]:
    row, approval = report.row, report.approval
    ended = row["finished_at"]
    return {
        "call_key": row["call_key"],
        "tool": row["tool"],
        "effects": row["effects"],
        "state": row["state"],
        "ending": row["ending"],
        "error": row["error_text"],
        "attempts": row["attempt"],
        "started_at": row["started_at"],
        "seconds": None if ended is None else max(0.0, ended - row["started_at"]),
        "cost": row["cost"],
        "arguments": _value(report.arguments),
        "result": _value(None if report.result is None else report.result.partition(b"\n")[2]),
        "approval": None
        if approval is None
        else {name: approval[name] for name in ("id", "state", "reviewer", "reason", "decided_at")},
    }


def _value(kept: bytes | None) -> Any:
    """Stored JSON as a value, other text as text; `None` if it was erased."""
    if kept is None:
        return None
    from agent_adapter.core.json_values import json_or_text

    return json_or_text(kept.decode("utf-8", "replace"))


def _print_waiting(screen: Console, record: ApprovalRecord) -> None:
    head = f"{when(record.created_at)} {short(record.tool)} waits for a person"
    screen.print(plain(head), style="bold", soft_wrap=True)
    facts = {"approval": record.id, "why": record.why, "decide by": when(record.decide_by)}
    for name, value in facts.items():
        print_whole(screen, f"  {name}: {plain(value)}")


def _print_call(screen: Console, call: dict[str, Any]) -> None:
    took = "running" if call["seconds"] is None else f"{call['seconds']:.3f} s"
    ending = call["ending"] or call["state"]
    head = f"{when(call['started_at'])} {call['tool']} {ending} ({took})"
    screen.print(plain(head), style="bold", soft_wrap=True)
    asked = call["approval"] or {}
    decided = " ".join(str(asked[name]) for name in ("id", "state", "reviewer") if asked.get(name))
    facts = {
        "call": call["call_key"],
        "arguments": _text(call["arguments"]),
        "result": _text(call["result"]),
        "error": call["error"],
        "decision": decided,
        "reason": asked.get("reason"),
        "attempts": call["attempts"] if (call["attempts"] or 1) > 1 else None,
        "cost": call["cost"],
    }
    for name, value in facts.items():
        if value not in (None, "", 0):
            print_whole(screen, f"  {name}: {plain(value)}")


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
