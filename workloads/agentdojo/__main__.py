"""`python -m workloads.agentdojo`: every user task and attack through each framework.

User tasks are judged by their suite. Then each policy is measured: which attacks it stops, and of
which honest tasks a person must see a call. `--tasks` and `--pairs` take a sample.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from agent_adapter import Executor, ToolRegistry, open_store
from workloads import scenarios
from workloads.agentdojo import (
    ag2_agent,
    agno_agent,
    autogen_agent,
    langchain_agent,
    langgraph_agent,
    ledger,
)
from workloads.agentdojo.attacks import Measured, measure
from workloads.agentdojo.held import in_own_process
from workloads.agentdojo.policy import POLICIES
from workloads.agentdojo.replay import replay_suites
from workloads.agentdojo.report import FrameworkReport, Report, show
from workloads.agentdojo.scripted import Player
from workloads.agentdojo.suites import load_suites
from workloads.agentdojo.tools import registry_of, suite_tools
from workloads.agentdojo.unchanged import differences

PLAYERS: dict[str, Player] = {
    "ag2": ag2_agent.play,
    "agno": agno_agent.play,
    "langgraph": langgraph_agent.play,
    "langchain": langchain_agent.play,
    "autogen": autogen_agent.play,
}
DISTRIBUTIONS = {"autogen": "autogen-agentchat"}
"""Names on PyPI, where they differ."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the workload; 0 when all of it holds, else 1."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="agentdojo-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        report = asyncio.run(_run(folder, options))
    if options.write is not None:
        options.write.write_text(json.dumps(report.to_json(), indent=1) + "\n")
    if options.json:
        print(json.dumps(report.to_json(), indent=1))
    else:
        show(Console(width=None if sys.stdout.isatty() else 120), report)
    return 1 if report.problems else 0


async def _run(folder: Path, options: argparse.Namespace) -> Report:
    began = time.perf_counter()
    suites = load_suites()
    registry = registry_of(suites)
    frameworks: Sequence[str] = options.framework or list(PLAYERS)
    reports = [
        await _framework(name, suites, registry, folder, options.tasks) for name in frameworks
    ]
    held = None if options.no_held else await _held(folder)
    measured: list[Measured] = []
    for name in frameworks:
        for policy in () if options.pairs == 0 else options.policy or POLICIES:
            how_many = {"tasks": options.tasks, "pairs": options.pairs}
            measured.append(await measure(name, PLAYERS[name], suites, policy, **how_many))
            print(f"{name}, {policy}: measured", file=sys.stderr)
    return Report(
        tools={name: len(suite_tools(registry, name)) for name in suites},
        functions=len({tool.run for suite in suites.values() for tool in suite.tools}),
        differences=differences(suites, registry),
        frameworks=reports,
        held=held,
        measured=measured,
        scenarios=await _scenarios(),
        seconds=time.perf_counter() - began,
    )


async def _framework(
    name: str, suites: Mapping[str, Any], registry: ToolRegistry, folder: Path, most: int | None
) -> FrameworkReport:
    store = open_store(_url(folder / f"{name}.db"))
    try:
        executor = Executor(registry, store=store)
        tasks = await replay_suites(suites, PLAYERS[name], registry, executor, most)
        kept = await ledger.summary(store)
    finally:
        await store.aclose()
    return FrameworkReport(
        framework=name,
        version=version(DISTRIBUTIONS.get(name, name)),
        tasks=tasks,
        ledger=kept,
    )


async def _held(folder: Path) -> dict[str, Any]:
    url = _url(folder / "held.db")
    seen: dict[str, Any] = {
        step: await in_own_process(step, url) for step in ("ask", "approve", "resume")
    }
    store = open_store(url)
    try:
        return {**seen, "ledger": await ledger.summary(store)}
    finally:
        await store.aclose()


async def _scenarios() -> dict[str, dict[str, int]]:
    """The scenarios of our own: attacks that are asked about, and honest ones that are."""
    found = {}
    for policy in ("tainted", "provenance"):
        played = [await scenarios.play(item, confirm=policy) for item in scenarios.load()]
        attacks = [item for item in played if item.scenario.attack]
        honest = [item for item in played if not item.scenario.attack]
        found[policy] = {
            "attacks": len(attacks),
            "stopped": sum(any(item.asked) for item in attacks),
            "honest": len(honest),
            "asked": sum(any(item.asked) for item in honest),
        }
    return found


def _url(path: Path) -> str:
    return f"sqlite:///{path.resolve()}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m workloads.agentdojo", description=__doc__)
    parser.add_argument("--framework", action="append", choices=list(PLAYERS), help="only this one")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the stores here")
    parser.add_argument("--no-held", action="store_true", help="leave out the held call")
    parser.add_argument("--policy", action="append", choices=POLICIES, help="only this one")
    parser.add_argument("--tasks", type=int, metavar="N", help="so many user tasks, not all 97")
    parser.add_argument("--pairs", type=int, metavar="N", help="so many attacks, not all 949")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the report as JSON")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
