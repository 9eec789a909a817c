"""The program: the table of its commands, and the exit code of each error."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer

from agent_adapter.cli.exit_codes import FAILED, OK, USAGE, CommandError, code_of, fix_of
from agent_adapter.cli.output import say_error
from agent_adapter.cli.streams import restored_stdout
from agent_adapter.cli.strict import make_strict
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
    "notify",
    "db",
    "integrations",
    "import_ag2",
)
"""The modules of this package that define a command or a group of commands as `app`."""

DEBUG = "--debug"
"""Anywhere in a command line before `--`: print the traceback of an error."""

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
    app.add_typer(make_strict(import_module(f"agent_adapter.cli.{_name}").app))


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
    debug: bool = typer.Option(
        False, DEBUG, help="Print the traceback of an error; may stand anywhere in the line."
    ),
) -> None:
    del version, debug


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code. An error is one line on stderr.

    Without `argv` it is the process's own command line, and stdout stays with the command until
    the process ends.
    """
    if argv is None:
        return _run(sys.argv[1:])
    with restored_stdout():
        return _run(list(argv))


def _run(typed: list[str]) -> int:
    args, debug = _without_debug(typed)
    try:
        code = app(args=args or ["--help"], prog_name="agent-adapter", standalone_mode=False)
    except BrokenPipeError:
        return _reader_left()
    except SystemExit as exc:  # click answers shell completion this way
        return exc.code if isinstance(exc.code, int) else OK
    except (Exception, KeyboardInterrupt) as exc:
        if debug:
            traceback.print_exc()
        return _say(exc, as_json="--json" in args, debug=debug)
    return code if isinstance(code, int) else OK


def _without_debug(typed: list[str]) -> tuple[list[str], bool]:
    end = typed.index("--") if "--" in typed else len(typed)
    args = [each for place, each in enumerate(typed) if each != DEBUG or place > end]
    return args, len(args) != len(typed)


def _say(exc: BaseException, *, as_json: bool, debug: bool) -> int:
    """Print an error on one line; its exit code."""
    kind, code, said = "aborted", FAILED, "aborted at the terminal"
    if isinstance(exc, typer.TyperException):
        kind, code = "usage", USAGE
        said = f"{exc.format_message()} (see {_command_of(exc)} --help)"
    elif isinstance(exc, CommandError):
        kind, code, said = exc.kind, exc.code, exc.message
    elif isinstance(exc, AgentAdapterError):
        kind, code = exc.kind, code_of(exc)
        said = "; ".join(filter(None, (str(exc), fix_of(exc))))
    elif not isinstance(exc, (typer.Abort, KeyboardInterrupt)):
        kind = "unexpected"
        said = f"unexpected {type(exc).__name__}: {exc}" + (
            "" if debug else f"; run it again with {DEBUG} for the traceback"
        )
    return say_error(kind, said, code=code, as_json=as_json)


def _command_of(exc: Any) -> str:
    """The command whose help explains a usage error."""
    ctx = getattr(exc, "ctx", None)
    return "agent-adapter" if ctx is None else str(ctx.command_path)


def _reader_left() -> int:
    """The reader of a pipe has gone (`… | head`): nothing more to say, also not at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return OK
