"""`agent-adapter writes`: stop and allow all writes of a store."""

from __future__ import annotations

import os

import typer

from agent_adapter.cli.options import AsJson, Reason, Reviewer, StoreUrl, reviewer_name, with_store
from agent_adapter.cli.output import print_line

app = typer.Typer(name="writes", help="Stop and allow all writes of a store.")


@app.command(epilog='Example: agent-adapter writes stop --reason "wrong prices"')
def stop(
    reason: Reason = None,
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Refuse every write that has not started, in every process that uses the store."""
    from agent_adapter.exec.upkeep import stop_writes
    from agent_adapter.store.opening import STORE_VARIABLE

    who = reviewer_name(reviewer)
    # A named store that does not exist is a mistake: its programs would go on writing elsewhere.
    new = store is None and STORE_VARIABLE not in os.environ
    with_store(store, lambda opened: stop_writes(opened, by=who, reason=reason or ""), new=new)
    _say(reason or "", as_json)


@app.command(epilog="Example: agent-adapter writes allow")
def allow(reviewer: Reviewer = None, store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Allow writes again."""
    from agent_adapter.exec.upkeep import allow_writes

    who = reviewer_name(reviewer)
    with_store(store, lambda opened: allow_writes(opened, by=who))
    _say(None, as_json)


@app.command(epilog="Example: agent-adapter writes status")
def status(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Show whether writes are stopped, and the reason."""
    from agent_adapter.exec.upkeep import stopped

    _say(with_store(store, stopped), as_json)


def _say(why: str | None, as_json: bool) -> None:
    said = "allowed" if why is None else f"stopped: {why or 'no reason given'}"
    print_line({"stopped": why is not None, "reason": why or None}, f"writes are {said}", as_json)
