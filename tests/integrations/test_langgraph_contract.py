"""LangGraph passes the contract kit, with the kit's runner and with the real executor."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("langgraph")

from langchain_core.utils.function_calling import convert_to_openai_tool

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec.executor import Executor
from agent_adapter.integrations.langgraph import langgraph_tool, langgraph_tools

from ..fakes.approval import FakeApproval
from . import _langgraph_graph as graphs
from ._langchain_model import untitled
from .kit import contract_tests

pytestmark = pytest.mark.contract


@dataclass(frozen=True, slots=True)
class _Paused:
    """The graph, and its checkpointer's content: serialised checkpoints by thread."""

    graph: Any
    saver: Any
    stored: Any
    thread: str = "t1"


class LangGraphHarness:
    """Drives real graphs with one `ToolNode` for all calls; the gate in the tool asks the port."""

    name = "langgraph"
    edits_supported = False
    approval = "native"
    native_uses_port = True
    checks = frozenset({"C9", "C10", "C11", "C12", "C13", "C14", "C15"})

    def __init__(self) -> None:
        self._port = FakeApproval()

    def approval_port(self) -> FakeApproval:
        """The port behind the gate."""
        return self._port

    def export(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """The tool with its gate."""
        return langgraph_tool(spec, executor=executor, approval=self._port)

    def export_all(self, registry: Any, executor: ToolRunner) -> Any:
        """Every tool for LangGraph."""
        return langgraph_tools(registry, executor=executor, approval=self._port)

    async def call(self, native: Any, args: dict[str, Any], *, call_id: str) -> Any:
        """One run of a graph with one call; its tool message."""
        return (await self.call_many(native, [(call_id, args)]))[0]

    async def call_many(self, native: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
        """One run whose first model turn makes several calls."""
        graph = graphs.graph_of([native], [(i, native.name, args) for i, args in calls])
        answers = graphs.answers(await graphs.run(graph))
        return [answers[call_id] for call_id, _ in calls]

    async def paused(self, native: Any, args: dict[str, Any], *, call_id: str) -> _Paused:
        """A thread that was interrupted."""
        saver = graphs.saver()
        graph = graphs.graph_of([native], [(call_id, native.name, args)], saver=saver)
        output = await graphs.run(graph, graphs.thread())
        assert output["__interrupt__"], output
        return _Paused(graph, saver, _content(saver))

    async def tampered(self, native: Any, state: _Paused, kind: str) -> _Paused:
        """What `update_state`, or access to the checkpointer's tables, can change."""
        if kind == "run":
            return _Paused(state.graph, state.saver, _moved(state.stored), "t2")
        changes = {
            "arguments": {"args": {"a": 9, "b": 9}},
            "call-id": {"id": "call_other"},
            "approved": {},  # the answer is in what it is resumed with
        }
        await graphs.rewrite_calls(state.graph, graphs.thread(), **changes[kind])
        return _Paused(state.graph, state.saver, _content(state.saver))

    async def resumed(self, native: Any, state: _Paused) -> Any:
        """The thread from its stored checkpoints on, with an answer as a client sends it."""
        for name, part in copy.deepcopy(state.stored).items():
            held = getattr(state.saver, name)
            held.clear()
            held.update(part)
        answer = {"decisions": [{"type": "approve"}], "approved": True}
        return await state.graph.ainvoke(graphs.resume(answer), graphs.thread(state.thread))

    def value(self, raw: Any) -> Any:
        """Results are JSON text."""
        return json.loads(raw.content)

    def is_error(self, raw: Any) -> bool:
        """A tool message says whether it is one."""
        return getattr(raw, "status", None) == "error"

    def shown(self, raw: Any) -> Any:
        """The content of the tool message."""
        return raw.content

    async def approve_flow(
        self, native: Any, args: dict[str, Any], decision: ApprovalDecision
    ) -> Any:
        """One call; the gate asks by itself."""
        return await self.call(native, args, call_id="call_langgraph_approval")

    def describe(self, native: Any) -> tuple[str, str, dict[str, Any]]:
        """What LangChain's clients send."""
        function = convert_to_openai_tool(native)["function"]
        return function["name"], function["description"], function["parameters"]

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        """LangChain inlines references and drops every title."""
        return untitled(spec)


def _content(saver: Any) -> Any:
    return {name: copy.deepcopy(dict(getattr(saver, name))) for name in _TABLES}


_TABLES = ("storage", "writes", "blobs")


def _moved(stored: Any) -> Any:
    """The tables with thread t1's rows as thread t2's."""
    moved = copy.deepcopy(stored)
    moved["storage"]["t2"] = moved["storage"].pop("t1")
    for name in ("writes", "blobs"):
        moved[name] = {("t2", *key[1:]): value for key, value in moved[name].items()}
    return moved


_TESTS = (
    *contract_tests(LangGraphHarness),
    *contract_tests(LangGraphHarness, runner_factory=Executor),
)
globals().update((item.__name__, item) for item in _TESTS)
