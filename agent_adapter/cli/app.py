"""The program: its commands, and what becomes of an error."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from agent_adapter.cli import (
    approvals,
    channels,
    db,
    demo,
    graph,
    integrations,
    keys,
    ledger,
    mcp,
    runs,
    serve,
    tokens,
    tools,
    writes,
)
from agent_adapter.cli.exit_codes import FAILED, OK, USAGE, CommandError, code_of, fix_of
from agent_adapter.cli.output import say_error
from agent_adapter.core.errors import AgentAdapterError

__all__ = ["app", "run"]

app = typer.Typer(
    name="agent-adapter",
    help="Tools written once, governed in every agent framework.\n\n"
    "Exit codes: 0 done · 1 failed or refused · 2 wrong command line · 3 a person has to decide"
    " · 4 a write is in doubt or the ledger does not verify.",
    epilog="Example: agent-adapter demo",
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", epilog="Example: agent-adapter demo --keep ./demo")(demo.command)
app.command("serve", epilog="Example: agent-adapter serve --registry shop:registry")(serve.command)
app.add_typer(tools.app, name="tools")
app.add_typer(approvals.app, name="approvals")
app.add_typer(runs.app, name="runs")
app.add_typer(ledger.app, name="ledger")
app.command("verify", epilog="Example: agent-adapter verify")(ledger.verify)
app.add_typer(channels.app, name="channels")
app.add_typer(graph.app, name="graph")
app.add_typer(mcp.app, name="mcp")
app.add_typer(writes.app, name="writes")
app.add_typer(tokens.app, name="tokens")
app.add_typer(keys.app, name="keys")
app.add_typer(db.app, name="db")
app.command("integrations", epilog="Example: agent-adapter integrations --json")(
    integrations.command
)


def _version(shown: bool) -> None:
    if shown:
        import agent_adapter

        typer.echo(f"agent-adapter {agent_adapter.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and leave."
    ),
) -> None:
    del version


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command line; its exit code. An error is one line on stderr, never a traceback."""
    args = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in args
    try:
        code = app(args=args or ["--help"], prog_name="agent-adapter", standalone_mode=False)
    except typer.TyperException as exc:
        message = f"{exc.format_message()} (agent-adapter --help shows how)"
        return say_error("usage", message, code=USAGE, as_json=as_json)
    except SystemExit as exc:  # how the shell's completion is answered
        return exc.code if isinstance(exc.code, int) else OK
    except typer.Abort:
        return say_error("aborted", "stopped at the terminal", code=FAILED, as_json=as_json)
    except CommandError as exc:
        return say_error(exc.kind, exc.message, code=exc.code, as_json=as_json)
    except AgentAdapterError as exc:
        said = "; ".join(filter(None, (str(exc), fix_of(exc))))
        return say_error(exc.kind, said, code=code_of(exc), as_json=as_json)
    return code if isinstance(code, int) else OK
