"""`agent-adapter runs`: list runs, show one as a timeline, follow the ledger."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_adapter.cli.acting import Actor, Tenant, stored_run_of, with_actor
from agent_adapter.cli.completing import completing
from agent_adapter.cli.exit_codes import CommandError
from agent_adapter.cli.ledger import facts_line
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
    print_text,
    print_whole,
    when,
)
from agent_adapter.cli.polling import Seconds, poll, print_json_line
from agent_adapter.cli.prefixes import whole_id

if TYPE_CHECKING:
    from rich.console import Console

    from agent_adapter.exec.ledger import Entry
    from agent_adapter.store.base import Store, Transaction
    from agent_adapter.store.queries import CallReport, RunLine

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

_PAGE_SIZE = 1000
_ALL = 10_000_000
_LATE_SECONDS = 2.0


class Ending(StrEnum):
    """How a call ended, for `list --ending`."""

    OK = "ok"
    NO_EFFECT = "no-effect"
    UNKNOWN = "unknown"
    ABORTED = "aborted"
    FAILED = "failed"


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


@app.command("list", epilog="Example: agent-adapter runs list --tool refund")
def list_(
    tool: Annotated[str | None, typer.Option("--tool", help="Runs that called this tool.")] = None,
    principal: Annotated[
        str | None, typer.Option("--principal", help="Runs on behalf of this principal.")
    ] = None,
    ending: Annotated[
        Ending | None, typer.Option("--ending", help="Runs with a call that ended like this.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="The maximum number of runs.")] = 50,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""

    async def _work(opened: Store, actor: Actor) -> list[RunLine]:
        from agent_adapter.store.queries import runs

        how = None if ending is None else ending.value
        found: list[RunLine] = await _read(
            opened,
            lambda tx: runs(
                tx, actor.tenant, limit=limit, tool=tool, principal=principal, ending=how
            )[0],
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

    async def _work(opened: Store, actor: Actor) -> list[CallReport] | None:
        whole = await whole_id(opened, "run", run, actor.tenant)
        found: list[CallReport] | None = await _read(
            opened, lambda tx: _reports(tx, whole, actor.tenant, limit)
        )
        return found

    reports = with_actor(store, tenant, _work)
    if reports is None:
        raise _no_run(run)
    calls = [_call_facts(report) for report in reports]
    if as_json:
        print_json({"run_id": run, "calls": calls})
        return
    with paged() as screen:
        if not calls:
            print_whole(screen, plain(f"{run}: no calls; see `agent-adapter ledger show {run}`"))
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


class LedgerFollower:
    """Prints the entries that were written since its last poll."""

    def __init__(
        self, run: str | None, lines: int, as_json: bool, page_size: int = _PAGE_SIZE
    ) -> None:
        self._run = run
        self._lines = lines
        self._as_json = as_json
        self._page_size = page_size
        self._began = False
        self._within: str | None = None
        self._seen: dict[str, int] = {}
        self._since = 0.0

    async def look(self, store: Store, actor: Actor | None = None) -> bool:
        """Print what is new of the actor's tenant; `False`, since a ledger has no end."""
        self._within = None if actor is None else actor.within
        if self._began:
            await self._print_of(store, await self._fresh(store))
            return False
        from agent_adapter.exec.ledger import entries, newest

        if actor is not None and self._run is not None:
            self._run = await stored_run_of(store, self._run, actor) or self._run
        if self._run is None and self._within is not None:
            old = await newest(store, self._within, max(self._lines, 1))
        else:
            old = await entries(store, self._run, limit=_ALL if self._run else max(self._lines, 1))
        if not await self._is_shown(store):
            old = []
        if self._run is not None and not old:
            raise _no_run(self._run)
        self._print(old[len(old) - min(self._lines, len(old)) :])
        self._since = old[-1].at if old else time.time()
        self._note(old)
        last = self._since
        fresh = [entry for entry in await self._fresh(store) if entry.at > last]
        await self._print_of(store, fresh)
        self._began = True
        return False

    async def _is_shown(self, store: Store) -> bool:
        run, within = self._run, self._within
        if run is None or within is None:
            return True
        from agent_adapter.store.queries import run_line

        return await store.read(lambda tx: run_line(tx, run, within)) is not None

    async def _print_of(self, store: Store, entries: Sequence[Entry]) -> None:
        from agent_adapter.exec.ledger import of_tenant

        within = self._within
        self._print(entries if within is None else await of_tenant(store, entries, within))

    async def _fresh(self, store: Store) -> list[Entry]:
        """The entries since the last poll, which count as seen from now on."""
        from agent_adapter.exec.ledger import entries

        fresh: list[Entry] = []
        # Clocks and commits of other processes may be late: read a little further back.
        since, limit = self._since - _LATE_SECONDS, self._page_size
        while True:
            found = await entries(store, self._run, limit=limit, since=since)
            fresh += [entry for entry in found if entry.seq > self._seen.get(entry.run_id, 0)]
            self._note(found)
            if len(found) < limit:
                return fresh
            if found[-1].at > since:
                since = found[-1].at
            else:
                limit *= 2  # more entries of one time than the limit: paging by time cannot advance

    def _note(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._seen[entry.run_id] = max(entry.seq, self._seen.get(entry.run_id, 0))
            self._since = max(self._since, entry.at)

    def _print(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if self._as_json:
                print_json_line(asdict(entry))
                continue
            head = f"{when(entry.at)} {entry.run_id} {entry.seq:>4} {entry.kind}"
            parts = (
                head,
                entry.facts.get("tool") or "",
                entry.call_key or "",
                facts_line(entry.facts),
            )
            print_text(plain(" ".join(filter(None, parts))))


def _reports(tx: Transaction, run: str, tenant: str, limit: int) -> list[CallReport] | None:
    """The calls of a tenant's run, given its key or its name; `None` for no such run."""
    from agent_adapter.store.queries import call_report, call_rows, stored_run

    stored = stored_run(tx, run, tenant)
    if stored is None:
        return None
    rows = call_rows(tx, stored, tenant, limit=limit).rows
    return [each for row in rows if (each := call_report(tx, row["call_key"], tenant)) is not None]


async def _stored(store: Store, run: str, actor: Actor) -> str:
    """The key of the actor's run."""
    stored = await stored_run_of(store, run, actor)
    if stored is None:
        raise _no_run(run)
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


def _no_run(run: str) -> CommandError:
    return CommandError(f"no run {run}: `agent-adapter runs list` shows all")
