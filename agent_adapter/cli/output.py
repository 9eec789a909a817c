"""Output of the commands: rich on a terminal, plain in a pipe, JSON on request.

Texts of tools, models and records may contain terminal escapes, markup, or characters that hide or
reorder text. `plain` replaces them with visible escapes before they are printed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


_ID_WIDTH = 36


def plain(text: object, *, lines: bool = False) -> str:
    """`text` with invisible characters as escapes; `lines` keeps line ends."""
    from agent_adapter.core.inert import visible

    shown = visible(str(text))
    return shown if lines else shown.replace("\n", "\\n")


def console() -> Console:
    """The console of stdout; without colours and at a fixed width in a pipe."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 160
    return Console(width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> Table:
    """A table; long cells are folded, not cut."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    cells = [[plain(cell) for cell in row] for row in rows]
    # The first column names the row: whatever the others hold, a common id in it is not folded.
    named = min(_ID_WIDTH, max((len(row[0]) for row in cells), default=0))
    for position, column in enumerate(columns):
        grid.add_column(column, overflow="fold", min_width=0 if position else named)
    for row in cells:
        grid.add_row(*map(Text, row))
    return grid


def print_json(value: Any) -> None:
    """Print `value` as ASCII JSON: no invisible character can hide in it."""
    print(json.dumps(value, indent=2, default=str))


def print_list(
    values: Sequence[Any],
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    empty: str,
    as_json: bool,
) -> None:
    """Print `rows` as a table, or the line `empty` if there are none; with `--json` the values."""
    if as_json:
        print_json(values)
    elif values:
        console().print(table(columns, rows))
    else:
        console().print(empty)


def print_line(value: Any, line: str, as_json: bool) -> None:
    """Print a line; with `--json` its value."""
    if as_json:
        print_json(value)
    else:
        console().print(plain(line), soft_wrap=True)


def say_error(kind: str, message: str, *, code: int, as_json: bool = False) -> int:
    """Print an error on stderr, with `--json` on stdout too, and return its exit code."""
    if as_json:
        print_json({"error": {"kind": kind, "message": message}})
    line = "; ".join(part.strip() for part in message.splitlines() if part.strip())
    print(f"agent-adapter: {plain(line)}", file=sys.stderr)
    return code


def when(seconds: float | None) -> str:
    """A time in UTC."""
    if seconds is None:
        return "-"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + "Z"


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a status on a terminal while work runs; on stderr, because stdout has the output."""
    from rich.console import Console

    with Console(stderr=True, highlight=False, markup=False).status(f"{what} …"):
        yield
