"""Every user task's ground truth, replayed through a framework and judged by the suite."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from agent_adapter import Executor, ToolRegistry
from agent_adapter.core.tool import ToolSpec
from workloads.agentdojo.environment import bound_environment
from workloads.agentdojo.scripted import Call, Played, Player, Script
from workloads.agentdojo.suites import trace_call
from workloads.agentdojo.tools import suite_tools, tool_name

__all__ = [
    "TaskResult",
    "World",
    "judge",
    "open_world",
    "replay_suites",
    "script_of",
    "spread",
    "tasks_of",
]


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


def open_world(suite: Any, task: Any, given: Any = None) -> World:
    """The suite's default environment, or the `given` one, prepared for `task`."""
    found = _default_environment(suite) if given is None else given
    environment = task.init_environment(found.model_copy(deep=True))
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
    suites: Mapping[str, Any],
    play: Player,
    registry: ToolRegistry,
    executor: Executor,
    most: int | None = None,
) -> list[TaskResult]:
    """Every user task of every suite, one after the other; or `most` of them, spread over all."""
    return [
        await replay_task(name, suite, task, play, suite_tools(registry, name), executor)
        for name, suite, task in spread(list(tasks_of(suites)), most)
    ]


def tasks_of(suites: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Each suite's name, the suite, and each of its user tasks."""
    for name, suite in suites.items():
        for task in suite.user_tasks.values():
            yield name, suite, task


def spread(found: list[Any], most: int | None) -> list[Any]:
    """At most so many of the items, at equal distances."""
    if most is None or most >= len(found):
        return found
    return [found[number * len(found) // most] for number in range(most)]
