"""`agent-adapter ledger`: show and verify the ledger, resolve writes with unknown outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_adapter.cli.acting import Actor, Tenant, stored_run_of, whole_store, with_actor
from agent_adapter.cli.completing import completing
from agent_adapter.cli.exit_codes import DOUBT, OK, USAGE, CommandError
from agent_adapter.cli.options import AsJson, Reason, Reviewer, StoreUrl
from agent_adapter.cli.output import (
    paged,
    plain,
    print_json,
    print_line,
    print_list,
    print_whole,
    when,
    working,
)
from agent_adapter.cli.prefixes import whole_id
from agent_adapter.core.inert import short

if TYPE_CHECKING:
    from agent_adapter.exec.ledger import Entry, Report
    from agent_adapter.store.base import Store

app = typer.Typer(
    name="ledger", help="Show and verify the ledger, resolve writes with unknown outcome."
)

_MAIN_FACTS = (
    "ending",
    "effects",
    "verdict",
    "reviewer",
    "reason",
    "why",
    "error",
    "approval",
    "cost",
)
_IN_DOUBT_FIELDS = (
    *("call_key", "run_id", "tool", "state", "ending", "error_kind"),
    *("attempt", "call_id", "principal", "started_at", "finished_at"),
)


@app.command(epilog="Example: agent-adapter ledger show run_0123")
def show(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="The run; default: all.",
            show_default=False,
            autocompletion=completing("run"),
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="The maximum number of entries.")
    ] = 500,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show the entries of one run, or the newest entries of all runs, oldest first."""

    async def _work(opened: Store, actor: Actor) -> list[Entry]:
        from agent_adapter.exec.ledger import entries as entries_of
        from agent_adapter.exec.ledger import newest

        if run is None and actor.within is not None:
            return await newest(opened, actor.within, limit)
        stored = None if run is None else await stored_run_of(opened, run, actor)
        return [] if run and not stored else await entries_of(opened, stored, limit=limit)

    entries = with_actor(store, tenant, _work)
    if run is not None and not entries:
        raise _no_run(run)
    print_list(
        [asdict(entry) for entry in entries],
        ENTRY_COLUMNS,
        map(entry_row, entries),
        empty="the ledger is empty",
        as_json=as_json,
    )


@app.command(epilog="Example: agent-adapter ledger verify")
def verify(
    run: Annotated[str | None, typer.Option("--run", help="Verify only this run.")] = None,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> int:
    """Verify every chain: no entry was changed, removed, reordered or cut off."""
    from agent_adapter.exec.ledger import verify as verify_ledger

    async def _work(opened: Store, actor: Actor) -> Report:
        if run is None:
            whole_store(actor)
            return await verify_ledger(opened)
        stored = await stored_run_of(opened, run, actor)
        if stored is None:
            raise _no_run(run)
        return await verify_ledger(opened, stored)

    with working("checking every chain" if run is None else "checking the chain"):
        report = with_actor(store, tenant, _work)
    if run is not None and report.problems == (f"{run}: no such run",):
        raise _no_run(run)
    if as_json:
        print_json(asdict(report))
    else:
        print_report(report)
    return OK if report.ok else DOUBT


@app.command("in-doubt", epilog="Example: agent-adapter ledger in-doubt")
def in_doubt(tenant: Tenant = None, store: StoreUrl = None, as_json: AsJson = False) -> int:
    """List the writes with unknown outcome; exit code 4 if there are any."""
    from agent_adapter.exec.ledger import in_doubt as doubtful

    calls = with_actor(store, tenant, lambda opened, actor: doubtful(opened, actor.within))
    print_list(
        [{key: call[key] for key in _IN_DOUBT_FIELDS} for call in calls],
        ("call", "tool", "run", "started", "known"),
        (
            (call["call_key"], call["tool"], call["run_id"], when(call["started_at"]), _known(call))
            for call in calls
        ),
        empty="no writes with unknown outcome",
        as_json=as_json,
    )
    return DOUBT if calls else OK


@app.command(epilog="Example: agent-adapter ledger resolve call_0123 --happened")
def resolve(
    call_key: Annotated[
        str,
        typer.Argument(
            metavar="CALL",
            help="The call, call_…, or its beginning.",
            autocompletion=completing("call"),
        ),
    ],
    happened: Annotated[
        bool, typer.Option("--happened", help="The other system has done it.")
    ] = False,
    not_happened: Annotated[
        bool, typer.Option("--not-happened", help="The other system has not done it.")
    ] = False,
    result: Annotated[
        str | None, typer.Option("--result", help="The result of the call, as JSON.")
    ] = None,
    reason: Reason = None,
    reviewer: Reviewer = None,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Record whether a write with unknown outcome happened; if not, it may run again."""
    from agent_adapter.exec.ledger import resolve as settle

    if happened and not_happened:
        raise CommandError(
            "--happened and --not-happened contradict each other: give one", code=USAGE
        )
    if not (happened or not_happened):
        raise CommandError("the outcome is missing: give --happened or --not-happened", code=USAGE)
    value = None if result is None else _result(result, happened)

    async def _work(opened: Store, actor: Actor) -> tuple[str, str]:
        whole = await whole_id(opened, "call", call_key, actor.within)
        await settle(
            opened,
            whole,
            reviewer=actor.reviewer,
            happened=happened,
            result=value,
            reason=reason,
            tenant=actor.within,
        )
        return whole, actor.reviewer

    whole, who = with_actor(store, tenant, _work, role="approver", reviewer=reviewer)
    answer = "happened" if happened else "did not happen"
    kept = {"call_key": whole, "happened": happened, "reviewer": who}
    print_line(kept, f"{whole}: {answer}, says {who}", as_json)


def print_report(report: Report) -> None:
    """Print the report of `verify`, with what a verification cannot see."""
    channels = f", {report.channels} channels" if report.channels else ""
    looked = f"{report.runs} runs{channels}, {report.entries} entries, {report.calls} calls"
    kept = f"{report.payloads} payloads ({report.erased} erased)"
    verdict = "verified" if report.ok else f"NOT verified, {len(report.problems)} problems"
    said = [f"{verdict}: {looked}, {kept}; {report.in_doubt} writes with unknown outcome"]
    if report.trusted_from is not None:
        since = when(report.trusted_from)
        said.append(f"  trusted from {since}, when this version first opened the store")
    if report.pruned_runs or report.pruned_channels:
        gone = f"{report.pruned_runs} runs, the transcripts of {report.pruned_channels} channels"
        said.append(f"  gone by retention, as the ledger says: {gone}")
    said += [f"  {problem}" for problem in report.problems]
    said += [f"  cannot see: {blind}" for blind in report.cannot_see]
    with paged() as screen:
        for line in said:
            print_whole(screen, plain(line))


def _no_run(run: str) -> CommandError:
    return CommandError(f"no run {run} in the ledger: `agent-adapter ledger show` lists all")


def _known(call: Mapping[str, Any]) -> str:
    if call["state"] == "open":
        return "started by a process that died"
    return f"ended {call['ending']} ({call['error_kind'] or 'no error'})"


def _result(text: str, happened: bool) -> Any:
    if not happened:
        raise CommandError("--result needs --happened: omit it", code=USAGE)
    try:
        return json.loads(text)
    except json.JSONDecodeError as exc:
        problem = f"--result is not JSON ({exc.msg} at character {exc.pos})"
        raise CommandError(f"{problem}: quote a text, '\"done\"'", code=USAGE) from None


ENTRY_COLUMNS = ("at", "run", "no", "entry", "tool", "call", "facts")
"""The columns of `entry_row`."""


def entry_row(entry: Entry) -> tuple[object, ...]:
    """A ledger entry as a row of a table."""
    return (
        when(entry.at),
        short(entry.run_id),
        entry.seq,
        entry.kind,
        entry.facts.get("tool", ""),
        entry.call_key or "",
        facts_line(entry.facts),
    )


def facts_line(facts: Mapping[str, Any]) -> str:
    """The main facts of an entry on one line."""
    known = {key: facts[key] for key in _MAIN_FACTS if facts.get(key) not in (None, "", [])}
    return ", ".join(f"{key}: {_fact(value)}" for key, value in known.items())


def _fact(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("id") or json.dumps(value))
    return str(value)
