"""`agent-adapter writes`: the switch that stops every write of a store."""

from __future__ import annotations

import typer

from agent_adapter.cli.exit_codes import OK
from agent_adapter.cli.options import AsJson, Reason, Reviewer, StoreUrl, reviewer_name, with_store
from agent_adapter.cli.output import console, plain, print_json

__all__ = ["app"]

app = typer.Typer(help="Stop every write of a store, and let them run again.")


@app.command(epilog='Example: agent-adapter writes stop --reason "wrong prices"')
def stop(
    reason: Reason = None,
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> int:
    """Refuse every write that has not begun, in every process that uses the store."""
    from agent_adapter.exec.upkeep import stop_writes

    who = reviewer_name(reviewer)
    with_store(store, lambda opened: stop_writes(opened, by=who, reason=reason or ""))
    _say(reason or "", as_json)
    return OK


@app.command(epilog="Example: agent-adapter writes allow")
def allow(reviewer: Reviewer = None, store: StoreUrl = None, as_json: AsJson = False) -> int:
    """Let writes run again."""
    from agent_adapter.exec.upkeep import allow_writes

    who = reviewer_name(reviewer)
    with_store(store, lambda opened: allow_writes(opened, by=who))
    _say(None, as_json)
    return OK


@app.command(epilog="Example: agent-adapter writes status")
def status(store: StoreUrl = None, as_json: AsJson = False) -> int:
    """Say whether writes are stopped, and why."""
    from agent_adapter.exec.upkeep import stopped

    _say(with_store(store, stopped), as_json)
    return OK


def _say(why: str | None, as_json: bool) -> None:
    if as_json:
        print_json({"stopped": why is not None, "reason": why or None})
    elif why is None:
        console().print("writes may run")
    else:
        console().print(plain(f"writes are stopped: {why or 'no reason given'}"), soft_wrap=True)
