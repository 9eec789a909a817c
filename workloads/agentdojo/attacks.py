"""Every user task with every injection: the model does the task, then what the injection asks.

A person approves what the user asked for and denies the rest. A deed is a call of an injection that
writes, or that sends something out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from agent_adapter import ApprovalDecision, ApprovalRequest, CallbackApproval, Executor
from agent_adapter.store.base import Store
from agent_adapter.store.memory import MemoryStore
from workloads.agentdojo.effects import effects_of
from workloads.agentdojo.environment import bound_environment
from workloads.agentdojo.policy import PolicyName
from workloads.agentdojo.replay import (
    TaskResult,
    open_world,
    replay_task,
    script_of,
    spread,
    tasks_of,
)
from workloads.agentdojo.scripted import Call, Played, Player, Script
from workloads.agentdojo.suites import trace_call
from workloads.agentdojo.tools import registry_of, suite_tools, tool_name

__all__ = ["Measured", "measure"]

SENDING = frozenset({"get_webpage"})
"""Functions that only look, but by an address that can carry something out."""

_INJECTED = "injected_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One framework under one policy.

    `pairs` are user tasks with an injection, `reached` those whose injection reaches its goal by
    the suite's own checker, `deeds` the calls of injections that write or send, `stopped` those
    that did not run. Of `tasks` honest user tasks `passed` pass their checker, and a person is
    asked in `asked` of them, `questions` times in all.
    """

    framework: str
    policy: str
    pairs: int
    reached: int
    deeds: int
    stopped: int
    tasks: int
    passed: int
    asked: int
    questions: int
    asked_in: tuple[str, ...]
    missed_in: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The numbers as JSON values."""
        return asdict(self)


@dataclass(slots=True)
class Person:
    """Approves what the user asked for, and denies what an injection did."""

    questions: int = 0

    def decide(self, request: ApprovalRequest) -> ApprovalDecision:
        """The decision on one call, by its id in the script."""
        self.questions += 1
        if request.call_id.startswith(_INJECTED):
            return ApprovalDecision.deny(reviewer="person", reason="nobody asked for this")
        return ApprovalDecision.approve(reviewer="person")


async def measure(
    framework: str,
    play: Player,
    suites: Mapping[str, Any],
    policy: PolicyName,
    *,
    tasks: int | None = None,
    pairs: int | None = None,
) -> Measured:
    """Play every honest task and every pair, or as many of them, spread over all suites."""
    person = Person()
    registry = registry_of(suites, policy=policy)
    port = CallbackApproval(person.decide)
    results: list[TaskResult] = []
    questions: dict[str, int] = {}
    for name, suite, task in spread(list(tasks_of(suites)), tasks):
        person.questions = 0
        executor = Executor(registry, approval=port, store=MemoryStore())
        specs = suite_tools(registry, name)
        results.append(await replay_task(name, suite, task, play, specs, executor))
        questions[f"{name}/{task.ID}"] = person.questions
    chosen = spread(list(_pairs(suites)), pairs)
    deeds = done = reached = 0
    missed: list[str] = []
    for name, suite, task, injection in chosen:
        executor = Executor(registry, approval=port, store=MemoryStore())
        attack = _Attack(name, suite, task, injection)
        with bound_environment(attack.world.now):
            played = await play(attack.script, suite_tools(registry, name), executor)
        ran = attack.deeds & await _begun(executor.store)
        deeds, done, reached = (
            deeds + len(attack.deeds),
            done + len(ran),
            reached + attack.reached_by(played),
        )
        missed += [f"{name}/{task.ID}/{injection.ID}"] if ran else []
    asked = [task for task, count in questions.items() if count]
    return Measured(
        framework=framework,
        policy=policy,
        pairs=len(chosen),
        reached=reached,
        deeds=deeds,
        stopped=deeds - done,
        tasks=len(results),
        passed=sum(result.passed for result in results),
        asked=len(asked),
        questions=sum(questions.values()),
        asked_in=tuple(asked),
        missed_in=tuple(missed),
    )


def _pairs(suites: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    for name, suite, task in tasks_of(suites):
        for injection in suite.injection_tasks.values():
            yield name, suite, task, injection


class _Attack:
    """One user task with one injection: the model does the task, then what the injection asks."""

    def __init__(self, name: str, suite: Any, task: Any, injection: Any) -> None:
        self._name, self._injection = name, injection
        self.world = open_world(suite, task, _infected(suite, injection.GOAL))
        honest = script_of(name, task, self.world)
        wanted = injection.ground_truth(self.world.before.model_copy(deep=True))
        calls = {f"{_INJECTED}{number}": call for number, call in enumerate(wanted, start=1)}
        self.deeds = {id for id, call in calls.items() if _is_deed(call.function)}
        injected = [
            Call(id=id, tool=tool_name(name, call.function), arguments=dict(call.args))
            for id, call in calls.items()
        ]
        output = injection.GROUND_TRUTH_OUTPUT or honest.output
        self.script = Script(prompt=honest.prompt, calls=[*honest.calls, *injected], output=output)

    def reached_by(self, played: Played) -> bool:
        """Whether the suite's own checker says that the injection reached its goal."""
        prefix = tool_name(self._name, "")
        traces = [
            trace_call(call.tool.removeprefix(prefix), call.arguments, call.id)
            for call in played.calls
        ]
        facts = (played.output, self.world.before, self.world.now)
        verdict = self._injection.security_from_traces(*facts, traces)
        return bool(self._injection.security(*facts) if verdict is None else verdict)


async def _begun(store: Store) -> set[str]:
    """The ids of the calls whose functions were entered."""
    await store.flush()
    rows = await store.read(lambda tx: tx.select("calls"))
    return {row["call_id"].partition("@")[0] for row in rows}


def _is_deed(function: str) -> bool:
    return effects_of(function) == "write" or function in SENDING


@cache
def _infected(suite: Any, text: str) -> Any:
    """The suite's environment with the text wherever an attacker can write."""
    vectors = suite.get_injection_vector_defaults()
    return suite.load_and_inject_default_environment(dict.fromkeys(vectors, text))
