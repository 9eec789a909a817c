"""`agent-adapter db`: upgrade, back up and prune a store."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_adapter.cli.exit_codes import USAGE, CommandError
from agent_adapter.cli.options import (
    AsJson,
    Reason,
    Reviewer,
    StoreUrl,
    reviewer_name,
    with_store,
)
from agent_adapter.cli.output import print_line, print_list, working

if TYPE_CHECKING:
    from agent_adapter.store.base import Store
    from agent_adapter.store.retention import HoldKind, Retention

app = typer.Typer(name="db", help="Upgrade, back up and prune a store; say what it keeps.")

_KEPT = ("runs", "payloads", "channels", "audit")
_NO_POLICY = "everything is kept for ever: `agent-adapter db retention --runs 90d` sets a policy"
_Age = Annotated[str | None, typer.Option(metavar="AGE", help="90d, 12w, 36h, 30m or keep.")]
_OfTenant = Annotated[str, typer.Option("--tenant", help="The conversation's tenant.")]
_Held = Annotated[str, typer.Argument(metavar="KIND", help="run, conversation or tenant.")]
_HoldName = Annotated[str, typer.Argument(metavar="NAME", help="Its id or name.")]

_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@app.command(epilog="Example: agent-adapter db backup state-monday.db")
def backup(
    to: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The new file; it must not exist.", show_default=False),
    ],
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Write a consistent copy of the store and its key to a new file, while the store is in use."""
    from agent_adapter.exec.upkeep import back_up

    with working("copying"):
        written = with_store(store, lambda opened: back_up(opened, to))
    copied = {"backup": str(written), "bytes": written.stat().st_size}
    print_line(copied, f"written: {written}", as_json)


@app.command(epilog="Example: agent-adapter db copy state.db postgresql://agents@db/agents")
def copy(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="The URL or path of a store.", show_default=False)
    ],
    to: Annotated[
        str, typer.Argument(metavar="TO", help="The URL of an empty one.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Copy a store to another back end, with its key, and verify both sides."""
    from agent_adapter.exec.copying import copy_store

    with working("copying"):
        done = with_store(source, lambda opened: copy_store(opened, to))
    print_line(
        asdict(done),
        f"copied: {done.rows} rows; {done.runs} runs and {done.entries} entries verify",
        as_json,
    )


@app.command(epilog="Example: agent-adapter db upgrade")
def upgrade(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Upgrade a store to the newest schema, as opening it does.

    A file of an older version is also rewritten once, so that it can shrink later. Older versions
    of this library cannot open it afterwards: back it up first.
    """
    with working("upgrading"):
        before, after = with_store(store, _revisions, new=True)
    if before == after:
        said = f"the schema is the newest: {after}"
    elif before is None:
        said = f"a new store, with the newest schema: {after}"
    else:
        said = f"the schema was {before}, it is now {after}"
    print_line({"before": before, "after": after}, said, as_json)


async def _revisions(store: Store) -> tuple[str | None, str]:
    from agent_adapter.store.sql.revisions import HEAD
    from agent_adapter.store.sqlite import SqliteStore
    from agent_adapter.store.sqlite.space import compact

    if not hasattr(store, "schema_found"):
        raise CommandError(f"{store.url} has no schema that this command could upgrade")
    await store.flush()
    if not isinstance(store, SqliteStore):
        return store.schema_found, HEAD  # opening it was enough
    if not await asyncio.to_thread(compact, store.path):
        raise CommandError(f"{store.url} is in use, so it was not rewritten: try again later")
    return store.schema_found, HEAD


@app.command(epilog="Example: agent-adapter db prune --older-than 90d")
def prune(
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="AGE",
            help="Delete runs of this age: 90d, 12w, 36h, 30m; default: by `db retention`.",
        ),
    ] = None,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Count what would go, delete nothing.")
    ] = False,
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Delete what is older than it has to be kept, and give the space back.

    Kept are runs with an open approval or a write with unknown outcome, and what is held.
    """
    from agent_adapter.exec import retention, upkeep

    who = reviewer_name(reviewer)
    if older_than is not None:
        before = time.time() - _age(older_than, "--older-than").total_seconds()
        with working("looking for old runs"):
            runs = with_store(
                store, lambda opened: upkeep.prune(opened, before=before, by=who, dry=dry)
            )
        said = f"{runs} runs {'would be ' if dry else ''}deleted"
        print_line({"runs": runs, "deleted": not dry}, said, as_json)
        return
    with working("looking for what is old"):
        found = with_store(store, lambda opened: retention.apply(opened, by=who, dry=dry))
    rows = [(tenant or "(none)", *asdict(each).values()) for tenant, each in found.items()]
    data = [{"tenant": name, **asdict(each), "deleted": not dry} for name, each in found.items()]
    print_list(data, ("tenant", *_KEPT), rows, empty=_NO_POLICY, as_json=as_json)


@app.command(epilog="Example: agent-adapter db retention --runs 90d --payloads 30d")
def retention(
    tenant: Annotated[str, typer.Option("--tenant", help="Whose records; default: of none.")] = "",
    runs: _Age = None,
    payloads: _Age = None,
    channels: _Age = None,
    audit: _Age = None,
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show how long records are kept; with ages, set it for one tenant (`keep`: for ever)."""
    from agent_adapter.exec import retention as kept
    from agent_adapter.store import Retention

    given = {"runs": runs, "payloads": payloads, "channels": channels, "audit": audit}
    ages = {name: _kept_for(age, name) for name, age in given.items() if age is not None}
    who = reviewer_name(reviewer)

    async def work(opened: Store) -> dict[str, Retention]:
        found = await kept.policies(opened)
        if ages:
            wanted = replace(found.get(tenant, Retention()), **ages)
            await kept.set_retention(opened, {tenant: wanted}, by=who)
            found = await kept.policies(opened)
        return found

    found = with_store(store, work, new=bool(ages))
    data: list[dict[str, object]] = []
    rows: list[tuple[str, ...]] = []
    for name, each in found.items():
        said: dict[str, timedelta | None] = asdict(each)
        seconds = {kind: age and age.total_seconds() for kind, age in said.items()}
        data.append({"tenant": name, **seconds})
        rows.append((name or "(none)", *map(_shown, said.values())))
    print_list(data, ("tenant", *_KEPT), rows, empty=_NO_POLICY, as_json=as_json)


@app.command(epilog="Example: agent-adapter db hold tenant acme --reason 'case 17'")
def hold(
    kind: _Held,
    name: _HoldName,
    tenant: _OfTenant = "",
    reason: Reason = None,
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Keep a run, a conversation (or channel) or a tenant whatever its age, until released."""
    from agent_adapter.exec import retention as kept

    who, what = reviewer_name(reviewer), _hold_kind(kind)
    with_store(
        store,
        lambda opened: kept.hold(opened, what, name, tenant=tenant, by=who, reason=reason or ""),
    )
    print_line({"held": name, "kind": what, "by": who}, f"{what} {name} is held", as_json)


@app.command(epilog="Example: agent-adapter db release tenant acme")
def release(
    kind: _Held,
    name: _HoldName,
    tenant: _OfTenant = "",
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """End a hold."""
    from agent_adapter.exec import retention as kept

    who, what = reviewer_name(reviewer), _hold_kind(kind)
    with_store(store, lambda opened: kept.release(opened, what, name, tenant=tenant, by=who))
    print_line({"released": name, "kind": what, "by": who}, f"{what} {name} is released", as_json)


@app.command(epilog="Example: agent-adapter db holds")
def holds(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """List what is held."""
    from agent_adapter.exec import retention as kept

    found = with_store(store, kept.holds)
    rows = [(each.kind, each.name, each.tenant, each.by, each.reason) for each in found]
    columns = ("kind", "name", "tenant", "by", "reason")
    shown = [asdict(each) for each in found]
    print_list(shown, columns, rows, empty="nothing is held", as_json=as_json)


def _hold_kind(written: str) -> HoldKind:
    kinds: tuple[HoldKind, ...] = ("run", "conversation", "tenant")
    for kind in kinds:
        if written == kind:
            return kind
    raise CommandError(f"{written!r} cannot be held: run, conversation or tenant", code=USAGE)


def _kept_for(written: str, name: str) -> timedelta | None:
    return None if written == "keep" else _age(written, f"--{name}")


def _shown(age: timedelta | None) -> str:
    return "for ever" if age is None else str(age)


def _age(written: str, option: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,6})([mhdw])", written.strip())
    if found is None:
        problem = f"{option} {written!r} is not an age"
        raise CommandError(f"{problem}: write 90d, 12w, 36h or 30m", code=USAGE)
    return timedelta(seconds=int(found[1]) * float(_SECONDS[found[2]]))
