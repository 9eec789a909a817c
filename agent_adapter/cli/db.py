"""`agent-adapter db`: upgrade, back up and prune a store."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_adapter.cli.exit_codes import USAGE, CommandError
from agent_adapter.cli.options import AsJson, Reviewer, StoreUrl, reviewer_name, with_store
from agent_adapter.cli.output import print_line, working

if TYPE_CHECKING:
    from agent_adapter.store.base import Store

app = typer.Typer(name="db", help="Upgrade, back up and prune a store.")

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


@app.command(epilog="Example: agent-adapter db upgrade")
def upgrade(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Upgrade a store to the newest schema, as opening it does.

    Older versions of this library cannot open it afterwards: back it up first.
    """
    with working("upgrading"):
        before, after = with_store(store, _revisions)
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

    if not isinstance(store, SqliteStore):
        raise CommandError(f"{store.url} has no schema: only a sqlite:/// store is upgraded")
    return store.schema_found, HEAD


@app.command(epilog="Example: agent-adapter db prune --older-than 90d")
def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="90d, 12w, 36h or 30m.")
    ],
    dry: Annotated[bool, typer.Option("--dry-run", help="Count the runs, delete nothing.")] = False,
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Delete old runs, except those with an open approval or a write with unknown outcome."""
    from agent_adapter.exec.upkeep import prune as delete

    before = time.time() - _age(older_than)
    who = reviewer_name(reviewer)
    with working("looking for old runs"):
        runs = with_store(store, lambda opened: delete(opened, before=before, by=who, dry=dry))
    said = f"{runs} runs {'would be ' if dry else ''}deleted"
    print_line({"runs": runs, "deleted": not dry}, said, as_json)


def _age(written: str) -> float:
    found = re.fullmatch(r"(\d{1,6})([mhdw])", written.strip())
    if found is None:
        problem = f"--older-than {written!r} is not an age"
        raise CommandError(f"{problem}: write 90d, 12w, 36h or 30m", code=USAGE)
    return int(found[1]) * float(_SECONDS[found[2]])
