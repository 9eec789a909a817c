"""`agent-adapter verify`: the same as `agent-adapter ledger verify`."""

from __future__ import annotations

import typer

from agent_adapter.cli.ledger import verify

app = typer.Typer()
app.command("verify", epilog="Example: agent-adapter verify")(verify)
