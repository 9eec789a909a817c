"""Writes the reference of the command line into its page: `python -m tests.cli._reference`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from agent_adapter.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
MARK = "<!-- The rest is written by `python -m tests.cli._reference`. -->\n"


def leaves(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that name it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name), command


def reference() -> str:
    """The reference: each command with its arguments and options."""
    program = typer.main.get_command(app)
    return "\n".join(_command(" ".join(path), each) for path, each in leaves(program))


def _command(name: str, command: Any) -> str:
    shown = " ".join(_usage(each) for each in command.params if each.param_type_name == "argument")
    lines = [f"### {name}\n", f"`agent-adapter {name}{' ' if shown else ''}{shown}`\n"]
    lines += [" ".join(inspect.cleandoc(command.help or "").split()) + "\n"]
    rows = [_row(each) for each in command.params if _is_own(each)]
    if rows:
        lines += ["| option | meaning |\n|---|---|", *rows, ""]
    return "\n".join(lines)


def _usage(param: Any) -> str:
    return str(param.metavar or param.name.upper())


def _is_own(param: Any) -> bool:
    return param.param_type_name == "argument" or "--help" not in param.opts


def _row(param: Any) -> str:
    if param.param_type_name == "argument":
        return f"| `{_usage(param)}` | {_text(param.help)} |"
    names = ", ".join(sorted([*param.opts, *param.secondary_opts], key=len))
    value = "" if param.is_flag else f" {param.metavar or param.name.upper().strip('_')}"
    return f"| `{names}{value}` | {_text(param.help)} |"


def _text(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def main() -> None:
    """Write the page."""
    PAGE.write_text(PAGE.read_text().partition(MARK)[0] + MARK + "\n" + reference())


if __name__ == "__main__":
    main()
