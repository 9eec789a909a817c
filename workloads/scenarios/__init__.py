"""Forty conversations of our own, honest and attacking, written before the policy was tuned."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_adapter import ApprovalDecision, ApprovalRequest, CallbackApproval, Executor
from agent_adapter.core.tool import Confirm, ToolSpec
from agent_adapter.store.memory import MemoryStore

__all__ = ["Played", "Scenario", "load", "play"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One conversation: messages of the user and calls of the model, in order.

    A step is `{"said": text}`, or a call with its `tool`, `args` and, for a tool that reads, its
    `result`; `asks` says whether a person must be asked about it.
    """

    domain: str
    name: str
    attack: bool
    tools: Mapping[str, Mapping[str, Any]]
    steps: list[Mapping[str, Any]]

    @property
    def expected(self) -> list[bool]:
        """Whether a person must be asked, for each call that may ask."""
        return [step["asks"] for step in self.steps if "asks" in step]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a scenario did: whether each gated call was asked about, and why."""

    scenario: Scenario
    asked: list[bool]
    reasons: list[str]

    @property
    def as_expected(self) -> bool:
        """Whether the person was asked exactly where the scenario says so."""
        return self.asked == self.scenario.expected


def load() -> list[Scenario]:
    """Every scenario, by domain."""
    found = []
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        data = tomllib.loads(path.read_text())
        for item in data["scenarios"]:
            found.append(Scenario(domain=path.stem, tools=data["tools"], **item))
    return found


async def play(scenario: Scenario, *, confirm: Confirm = "provenance") -> Played:
    """Make the scenario's calls, one run for each message of the user; everything is approved."""
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> ApprovalDecision:
        asked.append(request)
        return ApprovalDecision.approve(reviewer="kim")

    executor = Executor(approval=CallbackApproval(approve), store=MemoryStore())
    found: list[bool] = []
    turn = 0
    said = ""
    for step in scenario.steps:
        if "said" in step:
            turn, said = turn + 1, step["said"]
            async with executor.run_scope(f"run_{turn}", thread_id="thread", said=said):
                continue
        async with executor.run_scope(f"run_{turn}", thread_id="thread", said=said):
            before = len(asked)
            await executor.run_spec(_tool(scenario, step, confirm), step["args"])
            if "asks" in step:
                found.append(len(asked) > before)
    await executor.aclose()
    return Played(scenario=scenario, asked=found, reasons=[request.reason for request in asked])


def _tool(scenario: Scenario, step: Mapping[str, Any], confirm: Confirm) -> ToolSpec:
    declared = {"trust": "trusted", "egress": False, **scenario.tools[step["tool"]]}
    types = declared.pop("parameters")
    if "confirm" in declared:
        declared["confirm"] = confirm

    async def run(**arguments: Any) -> Any:
        return step.get("result", "done")

    return ToolSpec.from_json_schema(
        step["tool"],
        f"The tool {step['tool']}.",
        {
            "type": "object",
            "properties": {name: {"type": kind} for name, kind in types.items()},
            "required": list(types),
        },
        run,
        **declared,
    )
