"""The report as tables, bars and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.measure import Sample
from benchmarks.row import Row, Skipped

__all__ = ["as_json", "show"]

BAR = 40
STYLES = {"met": "green", "missed": "red", "info": "dim", "skipped": "yellow"}


def as_json(machine: dict[str, Any], rows: Sequence[Row | Skipped]) -> dict[str, Any]:
    """The whole report as JSON values."""
    return {"version": 1, "machine": machine, "rows": [row.to_json() for row in rows]}


def show(console: Console, machine: dict[str, Any], rows: Sequence[Row | Skipped]) -> None:
    """Print the machine, the table and the chart."""
    packages = ", ".join(f"{name} {found}" for name, found in machine["packages"].items() if found)
    console.print(
        f"{machine['cores']} cores, {machine['processor'] or machine['machine']}, load "
        f"{machine['load']}, {machine['system']}, Python {machine['python']}, SQLite "
        f"{machine['sqlite']}, fsync {_time(machine['fsync_seconds'])}"
    )
    console.print(packages, style="dim")
    console.print(_table(rows))
    for row in rows:
        if isinstance(row, Row) and row.note != "ratio":
            _chart(console, row)
    for note in dict.fromkeys(r.note for r in rows if isinstance(r, Row) and r.note):
        if note != "ratio":
            console.print(f"note: {note}", style="dim")


def _table(rows: Sequence[Row | Skipped]) -> Table:
    table = Table(title="Side by side: medians (quartiles)")
    for name in ("", "what", "ours", "against", "ratio", "goal", "verdict"):
        left = name in ("", "what", "verdict")
        table.add_column(name, justify="left" if left else "right", no_wrap=name != "what")
    for row in rows:
        verdict = Text("skipped" if isinstance(row, Skipped) else row.verdict)
        verdict.stylize(STYLES[verdict.plain])
        if isinstance(row, Skipped):
            table.add_row(row.id, f"{row.what}: {row.reason}", *[""] * 4, verdict)
        else:
            table.add_row(
                row.id,
                row.what,
                _cell(row, row.ours),
                _cell(row, row.against),
                f"{row.ratio:.2f}x",
                row.goal,
                verdict,
            )
    return table


def _cell(row: Row, sample: Sample) -> str:
    if row.note == "ratio":
        return f"{sample.median:.2f}x"
    low, high = sample.quartiles
    if row.per_second:
        return f"{_rate(sample.median)} ({_rate(high)} … {_rate(low)})"
    return f"{_time(sample.median)} ({_time(low)} … {_time(high)})"


def _chart(console: Console, row: Row) -> None:
    console.print(f"{row.id} {row.what}", style="bold")
    values = [
        (s.name, 1 / s.median if row.per_second else s.median) for s in (row.ours, row.against)
    ]
    longest = max(value for _, value in values)
    for style, (name, value) in zip(("cyan", "magenta"), values, strict=True):
        bar = "█" * max(1, round(BAR * value / longest))
        shown = f"{value:,.0f}/s" if row.per_second else _time(value)
        console.print(Text(f"  {name:<28}"), Text(f"{bar:<{BAR}}", style=style), shown)


def _time(seconds: float) -> str:
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _rate(seconds: float) -> str:
    return f"{1 / seconds:,.0f}/s"
