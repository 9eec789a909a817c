"""`agent-adapter integrations`: installed frameworks, and how to install the others."""

from __future__ import annotations

from dataclasses import asdict

import typer

from agent_adapter.cli.exit_codes import OK
from agent_adapter.cli.options import AsJson
from agent_adapter.cli.output import console, print_json, table

app = typer.Typer()


@app.command("integrations", epilog="Example: agent-adapter integrations --json")
def command(as_json: AsJson = False) -> int:
    """List the integrations, their versions, and the command that installs a missing one."""
    from agent_adapter.integrations.installed import integration_states

    rows = [asdict(line) for line in integration_states()]
    if as_json:
        print_json(rows)
        return OK
    columns = ("name", "state", "installed", "supported", "note")
    console().print(table(columns, [[row[column] or "-" for column in columns] for row in rows]))
    return OK
