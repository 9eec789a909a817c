"""`python -m benchmarks`: every benchmark, side by side, in one run."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from pathlib import Path

from rich.console import Console

from benchmarks.machine import describe
from benchmarks.report import as_json, show
from benchmarks.row import Row, Skipped

BENCHMARKS = {
    "P1": "benchmarks.p1_bare_call",
    "P2": "benchmarks.p2_frameworks",
    "P3": "benchmarks.p3_governance",
    "P4": "benchmarks.p4_durable",
    "P5": "benchmarks.p5_accept",
    "P6": "benchmarks.p6_import",
    "P7": "benchmarks.p7_equal_calls",
}
RESULTS = Path(__file__).with_name("results.json")

Run = Callable[[Path, int], Awaitable[Sequence[Row | Skipped]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; 1 with `--strict` when a goal is missed, else 0."""
    options = _parser().parse_args(arguments)
    chosen = options.only or list(BENCHMARKS)
    # Not in the system's temporary folder: that may lie in memory, where fsync is free.
    scratch = Path.cwd() / ".cache"
    scratch.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=scratch) as name:
        folder = Path(name)
        machine = describe(folder)
        rows = asyncio.run(_run(chosen, folder, options.rounds))
    report = as_json(machine, rows)
    options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if options.json:
        print(json.dumps(report))
    else:
        width = None if sys.stdout.isatty() else 120
        console = Console(record=options.svg is not None, width=width)
        show(console, machine, rows)
        if options.svg is not None:
            console.save_svg(str(options.svg), title="agent-adapter benchmarks")
        console.print(f"written to {options.output}")
    missed = any(isinstance(row, Row) and row.verdict == "missed" for row in rows)
    return 1 if options.strict and missed else 0


async def _run(chosen: Sequence[str], folder: Path, rounds: int) -> list[Row | Skipped]:
    rows: list[Row | Skipped] = []
    for name in chosen:
        print(f"{name} …", file=sys.stderr)
        run: Run = import_module(BENCHMARKS[name]).run
        rows.extend(await run(folder, rounds))
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(BENCHMARKS), help="run this one")
    parser.add_argument("--rounds", type=_positive, default=40, help="batches per contender (40)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--output", type=Path, default=RESULTS, help=f"JSON file ({RESULTS.name})")
    parser.add_argument("--svg", type=Path, help="also draw the report into this SVG file")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a goal is missed")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
