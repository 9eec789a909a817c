"""Output of the commands: rich on a terminal, plain lines in a pipe, JSON on request.

Texts of tools, models and records may contain terminal escapes, markup, or characters that hide or
reorder text. `plain` replaces them with visible escapes before they are printed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_adapter.cli.streams import out

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

_IDS = frozenset(("approval", "call", "channel", "id", "run", "waits for"))
"""Columns that hold an id: never folded, so that it can be selected and copied."""

_NARROWEST = 8
_SHORT = 20
"""Columns of cells up to this length are not folded: times, states, numbers."""


def plain(text: object, *, lines: bool = False) -> str:
    """`text` with invisible characters as escapes; `lines` keeps line ends."""
    from agent_adapter.core.inert import visible

    shown = visible(str(text))
    return shown if lines else shown.replace("\n", "\\n")


def is_terminal() -> bool:
    """Whether a person reads the output; else a program does."""
    return out().isatty()


def console() -> Console:
    """The console of stdout; in a pipe without colours, and nothing is folded."""
    from rich.console import Console

    # Without colours there is no escape sequence at all, not even for bold text.
    colours: Any = None if os.environ.get("NO_COLOR") else "auto"
    return Console(file=out(), color_system=colours, highlight=False, markup=False, emoji=False)


@contextmanager
def paged() -> Iterator[Console]:
    """A console whose output goes through a pager where it is longer than the terminal."""
    from rich.console import Console

    from agent_adapter.cli.pager import show

    if not is_terminal():
        yield Console(file=out(), width=10_000, highlight=False, markup=False, emoji=False)
        return
    screen = console()
    with screen.capture() as captured:
        yield screen
    show(captured.get(), screen.height)


def print_whole(screen: Console, text: str) -> None:
    """Print inert text without folding its lines: a copy of them is whole."""
    screen.print(text, soft_wrap=True)


def print_rows(screen: Console, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows: a table on a terminal, else one line each with tabs between the cells."""
    cells = [[plain(cell) for cell in row] for row in rows]
    if not is_terminal():
        # Not through rich, which makes spaces of tabs.
        for row in cells:
            print_text("\t".join(row))
    elif _least_width(columns, cells) <= screen.width:
        screen.print(_table(columns, cells))
    else:
        _print_blocks(screen, columns, cells)


def print_fields(screen: Console, fields: Iterable[tuple[str, object]]) -> None:
    """Print names with their values: a table on a terminal, else one line each."""
    cells = [(name, plain(value)) for name, value in fields]
    if not is_terminal():
        for name, value in cells:
            print_text(f"{name}:\t{value}")
        return
    width = max((len(name) for name, _ in cells), default=0)
    for name, value in cells:
        print_whole(screen, f"  {name:<{width}}  {value}")


def print_json(value: Any) -> None:
    """Print `value` as ASCII JSON: no invisible character can hide in it."""
    print(json.dumps(value, indent=2, default=str), file=out())


def print_text(text: str) -> None:
    """Print inert text as it is."""
    print(text, file=out(), flush=True)


def print_list(
    values: Sequence[Any],
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    empty: str,
    as_json: bool,
) -> None:
    """Print `rows`, or the line `empty` if there are none; with `--json` the values.

    In a pipe `empty` goes to stderr: a program that counts lines must read none.
    """
    if as_json:
        print_json(values)
    elif values:
        with paged() as screen:
            print_rows(screen, columns, rows)
    else:
        print(plain(empty), file=out() if is_terminal() else sys.stderr)


def print_line(value: Any, line: str, as_json: bool) -> None:
    """Print a line; with `--json` its value."""
    if as_json:
        print_json(value)
    else:
        print_whole(console(), plain(line))


def say_error(kind: str, message: str, *, code: int, as_json: bool = False) -> int:
    """Print an error on stderr, with `--json` on stdout too, and return its exit code."""
    if as_json:
        print_json({"error": {"kind": kind, "message": message}})
    line = "; ".join(part.strip() for part in message.splitlines() if part.strip())
    print(f"agent-adapter: {plain(line)}", file=sys.stderr)
    return code


def when(seconds: float | None) -> str:
    """A time as ISO 8601, in UTC."""
    if seconds is None:
        return "-"
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a status on a terminal while work runs; on stderr, because stdout has the output."""
    from rich.console import Console

    with Console(stderr=True, highlight=False, markup=False).status(f"{what} …"):
        yield


def _is_whole(place: int, column: str, width: int) -> bool:
    """Whether cells of a column are kept on one line; the first one names the row."""
    return place == 0 or column in _IDS or width <= _SHORT


def _width(cells: Sequence[Sequence[str]], place: int) -> int:
    return max((len(row[place]) for row in cells), default=0)


def _least_width(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> int:
    """The width at which every id fits on one line and every other column has some room."""
    widths = [
        max(width, len(column)) if _is_whole(place, column, width) else max(_NARROWEST, len(column))
        for place, column in enumerate(columns)
        for width in (_width(cells, place),)
    ]
    return sum(widths) + 3 * len(columns)


def _table(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(columns):
        width = _width(cells, place)
        if _is_whole(place, column, width):
            grid.add_column(column, no_wrap=True, min_width=max(width, len(column)))
        else:
            grid.add_column(column, overflow="fold")
    for row in cells:
        grid.add_row(*map(Text, row))
    return grid


def _print_blocks(screen: Console, columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """Print each row as lines: what a narrow terminal can show without breaking ids."""
    width = max(map(len, columns))
    for row in cells:
        screen.print(_bold(row[0]), soft_wrap=True)
        for column, cell in zip(columns[1:], row[1:], strict=True):
            if cell not in ("", "-"):
                print_whole(screen, f"  {column:<{width}}  {cell}")


def _bold(text: str) -> RenderableType:
    from rich.text import Text

    return Text(text, style="bold")
