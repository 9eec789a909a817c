"""Random schemas through import, every dialect and a call."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

import agent_adapter as aa
from agent_adapter.core.schema.dialects import breaches, inlined
from agent_adapter.core.schema.examples import example
from agent_adapter.core.schema.keywords import ANNOTATIONS, subschemas
from agent_adapter.core.schema.openai_strict import openai_strict
from agent_adapter.core.schema.providers import DIALECTS
from workloads.corpora.checks import paths

from ...sampling import sample
from ._random_schemas import Maker

pytestmark = pytest.mark.anyio

CASES = sample("random schemas", quick=200, full=10_000)
CHUNK = 200
STALL_SECONDS = 0.1
"""The most CPU time that one step may take of the event loop."""

T = TypeVar("T")


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    """A collection of the whole process's garbage would be counted as the step's own time."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def give_back(**arguments: Any) -> dict[str, Any]:
    """Gives back what it took."""
    return arguments


class Watch:
    """Counts CPU time of this thread, where an event loop would stand."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self, what: str, work: Callable[[], T]) -> T:
        """What `work` gives; fails where it took too long."""
        began = time.thread_time()
        try:
            return work()
        finally:
            taken = time.thread_time() - began
            assert taken < STALL_SECONDS, f"seed {self._seed}: {what} took {taken:.3f} s"


async def through(seed: int, executor: aa.Executor) -> bool:
    """One schema through everything; whether it is a tool's."""
    maker = Maker(seed)
    schema = maker.tool_schema()
    before, watch = json.dumps(schema), Watch(seed)
    try:
        spec = watch(
            "import", lambda: aa.ToolSpec.from_json_schema("tool", "A text.", schema, give_back)
        )
    except aa.ToolDefinitionError as exc:
        assert "tool 'tool'" in str(exc), seed
        return False
    finally:
        assert json.dumps(schema) == before, seed
    neutral = spec.json_schema()
    own = {path for path in paths(neutral) if path[0] not in ("[]", "*")}  # an object's
    for dialect in DIALECTS.values():
        text, shown = watch(dialect.name, lambda d=dialect: d.tool("A text.", neutral))  # type: ignore[misc]
        assert not breaches(dialect.limits, "tool", text, shown), (seed, shown)
        if dialect.name != "gemini" or not _is_hard(neutral):
            assert not own - set(paths(json.loads(json.dumps(shown)))), (seed, dialect.name)
    for refusing in (openai_strict, inlined):
        try:
            watch(refusing.__name__, lambda r=refusing: r(neutral))  # type: ignore[misc]
        except ValueError as exc:
            assert str(exc), seed
    made = watch("example", lambda: example(spec.arguments.schema))
    for arguments in (made, maker.arguments(schema), maker.arguments(schema)):
        await _called(executor, spec, arguments, watch, seed)
    return True


def _is_hard(schema: dict[str, Any]) -> bool:
    """Whether it has intersections, which Gemini lacks: their parts may contradict each other."""
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        if "allOf" in node or ("$ref" in node and node.keys() - ANNOTATIONS - {"$ref"}):
            return True
        waiting += [part for _, part in subschemas(node)]
    return False


async def _called(
    executor: aa.Executor, spec: aa.ToolSpec, arguments: Any, watch: Watch, seed: int
) -> None:
    """Checked in time, and either refused in our own words or run with what was sent."""
    try:
        checked = watch("check", lambda: spec.validate(arguments))
    except aa.ToolArgsInvalid as refused:
        assert refused.problems and len(str(refused)) < 20_000, seed
        with pytest.raises(aa.ToolArgsInvalid):
            await executor.run_spec(spec, arguments)
        return
    assert await executor.run_spec(spec, arguments) == checked, seed
    assert watch("read back", lambda: spec.validate(json.loads(spec.dump(checked)))) == checked


@pytest.mark.parametrize("first", range(0, CASES, CHUNK))
async def test_random_schema_is_a_tool_or_is_refused(first: int) -> None:
    """No raw exception and no stall of 100 ms: import, every dialect, an example, calls."""
    executor = aa.Executor(store=aa.open_store("memory://"))
    await through(-1, executor)  # what is imported and compiled once
    tools = [await through(seed, executor) for seed in range(first, min(first + CHUNK, CASES))]
    await executor.aclose()
    assert sum(tools) > len(tools) // 5
