"""`agent-adapter integrations`: installed frameworks, and how to install the others."""

from __future__ import annotations

from dataclasses import asdict

import typer

from agent_adapter.cli.options import AsJson
from agent_adapter.cli.output import print_list

app = typer.Typer()


@app.command("integrations", epilog="Example: agent-adapter integrations --json")
def command(as_json: AsJson = False) -> None:
    """List the integrations, their versions, and the command that installs a missing one."""
    from agent_adapter.integrations.installed import integration_states

    states = [asdict(line) for line in integration_states()]
    columns = ("name", "state", "installed", "supported", "note")
    rows = ([row[column] or "-" for column in columns] for row in states)
    print_list(states, columns, rows, empty="no integrations", as_json=as_json)
