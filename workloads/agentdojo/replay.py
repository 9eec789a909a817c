"""Every user task's ground truth, replayed through a framework and judged by the suite."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from agent_adapter import Executor, ToolRegistry
from agent_adapter.core.tool import ToolSpec
from workloads.agentdojo.environment import bound_environment
from workloads.agentdojo.scripted import Call, Played, Player, Script
from workloads.agentdojo.suites import trace_call
from workloads.agentdojo.tools import suite_tools, tool_name

__all__ = ["TaskResult", "World", "judge", "open_world", "replay_suites", "script_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A task's environment, and a copy of it from before anything was done."""

    before: Any
    now: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """How one task went: `problem` is empty when the suite's own checker passed it.

    `expected` is how many calls its ground truth has, `calls` how many the framework made.
    """

    suite: str
    task: str
    passed: bool
    expected: int
    calls: int
    seconds: float
    problem: str


def open_world(suite: Any, task: Any) -> World:
    """The suite's default environment, prepared for `task`."""
    environment = task.init_environment(_default_environment(suite).model_copy(deep=True))
    return World(before=environment.model_copy(deep=True), now=environment)


@cache
def _default_environment(suite: Any) -> Any:
    """Loaded once: reading its YAML takes longer than a task. Every world is a deep copy."""
    return suite.load_and_inject_default_environment({})


def script_of(suite_name: str, task: Any, world: World) -> Script:
    """The task's ground truth as what a model says."""
    truth = task.ground_truth(world.before.model_copy(deep=True))
    calls = [
        Call(
            id=f"call_{number}",
            tool=tool_name(suite_name, call.function),
            arguments=dict(call.args),
        )
        for number, call in enumerate(truth, start=1)
    ]
    return Script(prompt=task.PROMPT, calls=calls, output=task.GROUND_TRUTH_OUTPUT)


def judge(suite_name: str, task: Any, world: World, played: Played) -> bool:
    """Whether the suite's own checker accepts what the agent did and said."""
    prefix = tool_name(suite_name, "")
    traces = [
        trace_call(call.tool.removeprefix(prefix), call.arguments, call.id) for call in played.calls
    ]
    verdict = task.utility_from_traces(played.output, world.before, world.now, traces)
    if verdict is None:
        verdict = task.utility(played.output, world.before, world.now)
    return bool(verdict)


async def replay_task(
    suite_name: str,
    suite: Any,
    task: Any,
    play: Player,
    specs: Sequence[ToolSpec],
    executor: Executor,
) -> TaskResult:
    """One task in a fresh environment; an exception is a task that did not pass."""
    world = open_world(suite, task)
    script = script_of(suite_name, task, world)
    began = time.perf_counter()
    try:
        with bound_environment(world.now):
            played = await play(script, specs, executor)
        seconds = time.perf_counter() - began
        passed, calls = judge(suite_name, task, world, played), len(played.calls)
        problem = _problem(script, played, passed)
    except Exception as exc:  # the table has to name every task that failed
        seconds = time.perf_counter() - began
        passed, calls, problem = False, 0, f"{type(exc).__name__}: {exc}"
    return TaskResult(
        suite=suite_name,
        task=task.ID,
        passed=passed and not problem,
        expected=len(script.calls),
        calls=calls,
        seconds=seconds,
        problem=problem,
    )


def _problem(script: Script, played: Played, passed: bool) -> str:
    if played.errors:
        return "; ".join(played.errors)
    if len(played.calls) != len(script.calls):
        return f"{len(played.calls)} calls were made of {len(script.calls)}"
    return "" if passed else "the suite's checker refused the result"


async def replay_suites(
    suites: Mapping[str, Any], play: Player, registry: ToolRegistry, executor: Executor
) -> list[TaskResult]:
    """Every user task of every suite, one after the other."""
    results = []
    for suite_name, suite in suites.items():
        specs = suite_tools(registry, suite_name)
        for task in suite.user_tasks.values():
            results.append(await replay_task(suite_name, suite, task, play, specs, executor))
    return results
