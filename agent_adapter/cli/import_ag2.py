"""`agent-adapter import-ag2`: take over a store of AG2's network."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_adapter.cli.options import AsJson, StoreUrl, with_store
from agent_adapter.cli.output import print_line, working

if TYPE_CHECKING:
    from agent_adapter.network.compat.importing import Imported
    from agent_adapter.store.base import Store

app = typer.Typer()


@app.command("import-ag2", epilog="Example: agent-adapter import-ag2 ./hub-data --store hub.db")
def import_ag2(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The folder of the DiskKnowledgeStore.", show_default=False
        ),
    ],
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Copy participants, channels and the audit log of AG2's network into a store, once.

    What the store has already is left as it is, so that the command may be repeated. Nothing is
    written if a file of DIR cannot be read. Stop the hub of the store first, and AG2's, too.
    """
    with working("importing"):
        done = with_store(store, lambda opened: _run(opened, folder), new=True)
    said = (
        f"imported: {done.agents} participants, {done.channels} channels with {done.envelopes} "
        f"envelopes, {done.audit_records} audit records; {done.known} were there before"
    )
    if done.tasks_left_out:
        said += f"; {done.tasks_left_out} tasks are left out"
    print_line(asdict(done), said, as_json)


async def _run(store: Store, folder: Path) -> Imported:
    from agent_adapter.network.compat.importing import import_ag2 as take_over
    from agent_adapter.network.hub.hub import Hub

    async with await Hub.open(store, ttl_sweep_interval=0, expectation_sweep_interval=0) as hub:
        return await take_over(hub, folder)
