"""The program: the table of its commands, and the exit code of each error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from agent_adapter.cli.exit_codes import FAILED, OK, USAGE, CommandError, code_of, fix_of
from agent_adapter.cli.output import say_error
from agent_adapter.core.errors import AgentAdapterError

COMMANDS = (
    "demo",
    "serve",
    "tools",
    "approvals",
    "runs",
    "ledger",
    "verify",
    "channels",
    "graph",
    "mcp",
    "writes",
    "tokens",
    "people",
    "keys",
    "db",
    "integrations",
    "import_ag2",
)
"""The modules of this package that define a command or a group of commands as `app`."""

app = typer.Typer(
    name="agent-adapter",
    help="Tools written once, governed in every agent framework.\n\n"
    "Exit codes: 0 done · 1 failed or refused · 2 invalid command line · 3 a person must decide"
    " · 4 the outcome of a write is unknown, or the ledger does not verify.",
    epilog="Example: agent-adapter demo",
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name in COMMANDS:
    # An app without a name adds its command to the top level.
    app.add_typer(import_module(f"agent_adapter.cli.{_name}").app)


def _version(shown: bool) -> None:
    if shown:
        import agent_adapter

        typer.echo(f"agent-adapter {agent_adapter.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    del version


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code. An error is one line on stderr, no traceback."""
    args = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in args
    try:
        code = app(args=args or ["--help"], prog_name="agent-adapter", standalone_mode=False)
    except typer.TyperException as exc:
        message = f"{exc.format_message()} (see agent-adapter --help)"
        return say_error("usage", message, code=USAGE, as_json=as_json)
    except SystemExit as exc:  # click answers shell completion this way
        return exc.code if isinstance(exc.code, int) else OK
    except typer.Abort:
        return say_error("aborted", "aborted at the terminal", code=FAILED, as_json=as_json)
    except CommandError as exc:
        return say_error(exc.kind, exc.message, code=exc.code, as_json=as_json)
    except AgentAdapterError as exc:
        said = "; ".join(filter(None, (str(exc), fix_of(exc))))
        return say_error(exc.kind, said, code=code_of(exc), as_json=as_json)
    return code if isinstance(code, int) else OK
