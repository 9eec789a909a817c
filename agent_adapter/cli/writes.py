"""`agent-adapter writes`: stop and allow all writes of a store."""

from __future__ import annotations

import typer

from agent_adapter.cli.exit_codes import OK
from agent_adapter.cli.options import AsJson, Reason, Reviewer, StoreUrl, reviewer_name, with_store
from agent_adapter.cli.output import console, plain, print_json

app = typer.Typer(name="writes", help="Stop and allow all writes of a store.")


@app.command(epilog='Example: agent-adapter writes stop --reason "wrong prices"')
def stop(
    reason: Reason = None,
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> int:
    """Refuse every write that has not started, in every process that uses the store."""
    from agent_adapter.exec.upkeep import stop_writes

    who = reviewer_name(reviewer)
    with_store(store, lambda opened: stop_writes(opened, by=who, reason=reason or ""))
    _say(reason or "", as_json)
    return OK


@app.command(epilog="Example: agent-adapter writes allow")
def allow(reviewer: Reviewer = None, store: StoreUrl = None, as_json: AsJson = False) -> int:
    """Allow writes again."""
    from agent_adapter.exec.upkeep import allow_writes

    who = reviewer_name(reviewer)
    with_store(store, lambda opened: allow_writes(opened, by=who))
    _say(None, as_json)
    return OK


@app.command(epilog="Example: agent-adapter writes status")
def status(store: StoreUrl = None, as_json: AsJson = False) -> int:
    """Show whether writes are stopped, and the reason."""
    from agent_adapter.exec.upkeep import stopped

    _say(with_store(store, stopped), as_json)
    return OK


def _say(why: str | None, as_json: bool) -> None:
    if as_json:
        print_json({"stopped": why is not None, "reason": why or None})
    elif why is None:
        console().print("writes are allowed")
    else:
        console().print(plain(f"writes are stopped: {why or 'no reason given'}"), soft_wrap=True)
