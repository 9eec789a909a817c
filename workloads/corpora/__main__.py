"""`python -m workloads.corpora`: public tools through every dialect and target.

The corpora are downloaded once into a folder that is never committed. Fails where a property or a
reference is lost, a provider's rule is broken, an exception is not one of ours, or a call does not
arrive as it was sent. What a target cannot take is listed with its reason.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workloads.corpora import bfcl, calls, checks, servers
from workloads.corpora.sources import ForeignTool

CACHE = Path(".cache/corpora")
REPORT = Path(".cache/corpora/report.json")
LEAST_SERVER_TOOLS = 230
SEED = 20260323


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the corpora; 0 when all of it holds, else 1."""
    options = _parser().parse_args(arguments)
    # A server that lacks a tool's framework says so at length; the report has what matters.
    logging.getLogger("agent_adapter").setLevel(logging.ERROR)
    options.cache.mkdir(parents=True, exist_ok=True)
    cache = options.cache.resolve()
    found, failed = servers.tools(cache)
    functions = bfcl.tools(bfcl.fetched(cache))
    counts = Counter(tool.corpus.partition("/")[0] for tool in [*found, *functions])
    short = list(_shortages(counts, failed))
    tools = [*found, *functions]
    if options.sample:
        tools = random.Random(SEED).sample(tools, min(options.sample, len(tools)))  # noqa: S311
    findings = checks.Findings()
    cases = list(_checked(tools, findings))
    reports = [asyncio.run(_called(target, cases)) for target in options.target or calls.targets()]
    report: dict[str, Any] = {
        "tools": {"bfcl": counts["bfcl"], "mcp": counts["mcp"], "run": len(tools)},
        "servers": dict(Counter(tool.corpus for tool in found)),
        "shortages": short,
        "findings": asdict(findings),
        "targets": [each.to_json() for each in reports],
    }
    options.report.write_text(json.dumps(report, ensure_ascii=False, indent=1))
    problems = len(short) + findings.problems + sum(each.problems for each in reports)
    for line in _lines(report, problems):
        print(line)
    print(f"report: {options.report}")
    return 1 if problems else 0


async def _called(target: str, cases: list[calls.Case]) -> calls.TargetReport:
    print(f"{target}: {len(cases):,} calls", file=sys.stderr)
    return await calls.call_all(target, cases)


def _checked(tools: list[ForeignTool], findings: checks.Findings) -> Iterator[calls.Case]:
    for tool in tools:
        spec = checks.imported(tool, findings)
        arguments = None if spec is None else checks.check(tool, spec, findings)
        if spec is not None and arguments is not None:
            yield tool.place, spec, arguments


def _shortages(counts: Counter[str], failed: dict[str, str]) -> Iterator[str]:
    """What is missing of the corpora, which a green report must not hide."""
    if counts["bfcl"] != bfcl.EXPECTED:
        yield f"BFCL has {counts['bfcl']} functions, not {bfcl.EXPECTED}"
    if counts["mcp"] < LEAST_SERVER_TOOLS:
        yield f"the MCP servers have {counts['mcp']} tools, not {LEAST_SERVER_TOOLS}"
    for server, reason in failed.items():
        yield f"the MCP server {server} did not answer: {reason}"


def _lines(report: dict[str, Any], problems: int) -> Iterator[str]:
    tools, findings = report["tools"], report["findings"]
    yield f"{tools['bfcl']:,} BFCL functions, {tools['mcp']} MCP tools; {tools['run']:,} run"
    yield (
        f"emitted {findings['emitted']:,} schemas: {len(findings['lost'])} lost properties, "
        f"{len(findings['breaches'])} breaches of providers' rules, {len(findings['raw'])} raw "
        f"exceptions; {len(findings['quarantined'])} not imported, "
        f"{len(findings['strict'])} not strict"
    )
    yield (
        f"expected calls: {findings['accepted_calls']:,} accepted, "
        f"{len(findings['contradictions'])} contradict their own schema, "
        f"{len(findings['disagreements'])} wrongly refused"
    )
    yield (
        f"{len(findings['impossible'])} tools that no arguments fit, "
        f"{len(findings['examples'])} without an example"
    )
    for each in report["targets"]:
        yield (
            f"{each['target']:>14}: {each['called']:,} called, {len(each['quarantined'])} "
            f"quarantined, {len(each['refused'])} refused, {len(each['changed'])} changed, "
            f"{len(each['raw'])} raw exceptions, {each['seconds']} s"
        )
    yield from (f"missing: {text}" for text in report["shortages"])
    yield f"{problems} problems"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m workloads.corpora", description=__doc__)
    parser.add_argument("--cache", type=Path, default=CACHE, help="where downloads are kept")
    parser.add_argument("--report", type=Path, default=REPORT, help="the JSON report")
    parser.add_argument("--sample", type=int, help="run only so many tools, chosen by a fixed seed")
    parser.add_argument("--target", action="append", choices=calls.targets(), help="only this one")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
