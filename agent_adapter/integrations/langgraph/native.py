"""A graph's own tools in a channel's round: each call of a `ToolNode` runs under its policy."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from agent_adapter.core.errors import (
    MODEL_VISIBLE_ERRORS,
    ApprovalPending,
    IntegrationError,
    ToolError,
    ToolFailed,
)
from agent_adapter.core.native import NativeTool, NativeTools
from agent_adapter.core.ports import TurnView
from agent_adapter.core.tool import SPEC_ATTRIBUTE, ToolSpec
from agent_adapter.integrations.langchain_core.calls import native_of
from agent_adapter.integrations.langchain_core.export import shown
from agent_adapter.integrations.langchain_core.gate import until_decided
from agent_adapter.integrations.langchain_core.locate import locate

_WHOLE = "langchain_message"

Execute = Callable[[Any], Awaitable[Any]]
"""LangGraph's own execution of a `ToolCallRequest`."""


def native_tools(graph: Any) -> NativeTools:
    """The tools of the graph's `ToolNode`s, those of its subgraphs included.

    Not complete without one: what a node calls by itself cannot be seen.
    """
    found: dict[str, NativeTool] = {}
    nodes = list(_tool_nodes(graph))
    for node in nodes:
        for name, tool in node.tools_by_name.items():
            if getattr(tool, SPEC_ATTRIBUTE, None) is None:
                found[name] = NativeTool(function=_function_of(tool), description=tool.description)
    return NativeTools(tools=found, complete=bool(nodes))


def governed(graph: Any, turn: TurnView) -> Any:
    """A copy of the graph for this round, whose tool nodes run their tools in the turn."""
    from langgraph.prebuilt import ToolNode

    calls = _Calls(turn, native_tools(graph))

    def of_runnable(bound: Any) -> Any:
        if isinstance(bound, ToolNode):
            return calls.around(bound)
        if _is_graph(bound):
            return of_graph(bound)
        if hasattr(bound, "steps"):
            sequence = copy.copy(bound)
            sequence.steps = [of_runnable(step) for step in bound.steps]
            return sequence
        return bound

    def of_graph(inner: Any) -> Any:
        nodes = {}
        for name, node in inner.nodes.items():
            bound = of_runnable(node.bound)
            nodes[name] = node if bound is node.bound else node.copy({"bound": bound})
        changed = copy.copy(inner)
        changed.nodes = nodes
        return changed

    return of_graph(graph)


def _is_graph(bound: Any) -> bool:
    from langgraph.pregel import Pregel

    return isinstance(bound, Pregel)


def _tool_nodes(graph: Any) -> Iterator[Any]:
    from langgraph.prebuilt import ToolNode

    left = [node.bound for node in graph.nodes.values()]
    while left:
        bound = left.pop()
        if isinstance(bound, ToolNode):
            yield bound
        elif _is_graph(bound):
            left += [node.bound for node in bound.nodes.values()]
        else:
            left += list(getattr(bound, "steps", ()))


def _function_of(tool: Any) -> Any:
    return getattr(tool, "coroutine", None) or getattr(tool, "func", None)


@dataclass(slots=True)
class _NativeCall:
    """A native call under way, and what came out of it."""

    execute: Execute
    request: Any
    outcome: Any = None
    value: Any = None
    failed: bool = False
    raised: Exception | None = None


_UNDER_WAY: ContextVar[_NativeCall] = ContextVar("agent_adapter_langgraph_native_call")


@dataclass(slots=True, eq=False)
class _Calls:
    """The calls of a round's tool nodes."""

    turn: TurnView
    own: NativeTools
    _nodes: dict[int, Any] = field(default_factory=dict)

    def around(self, node: Any) -> Any:
        """A copy of a tool node; what its own wrapper executes runs in the turn."""
        found = self._nodes.get(id(node))
        if found is None:
            if not hasattr(node, "_awrap_tool_call"):
                raise IntegrationError(
                    "this LangGraph has no wrapper of tool calls, so the graph's own tools cannot "
                    "run in a channel's turn; update langgraph-prebuilt, or export the tools"
                )
            found = self._nodes[id(node)] = copy.copy(node)
            found._awrap_tool_call = self._wrapper(node._wrap_tool_call, node._awrap_tool_call)
            # The runnable keeps its function bound to the node that it was made for.
            found.afunc = found._afunc
        return found

    def _wrapper(self, blocking: Any, wrapper: Any) -> Any:
        async def run(request: Any, execute: Execute) -> Any:
            async def inner(changed: Any) -> Any:
                return await self._run(changed, execute)

            if wrapper is not None:
                return await wrapper(request, inner)
            if blocking is None:
                return await inner(request)
            loop = asyncio.get_running_loop()

            def wait(changed: Any) -> Any:
                return asyncio.run_coroutine_threadsafe(inner(changed), loop).result()

            return await asyncio.to_thread(blocking, request, wait)

        return run

    async def _run(self, request: Any, execute: Execute) -> Any:
        """One call: an exported tool as it is, any other through the turn's executor."""
        tool, call = request.tool, request.tool_call
        if tool is None or getattr(tool, SPEC_ATTRIBUTE, None) is not None:
            return await execute(request)
        spec = self.turn.native.spec(
            call["name"], self.own.find(call["name"]), _run_native, noun="LangChain"
        )
        under_way = _NativeCall(execute, request)
        token = _UNDER_WAY.set(under_way)
        try:
            return await self._governed(spec, under_way)
        finally:
            _UNDER_WAY.reset(token)

    async def _governed(self, spec: ToolSpec, under_way: _NativeCall) -> Any:
        request = under_way.request
        args: Mapping[str, Any] = request.tool_call["args"]
        native = native_of(request.tool_call["id"], request.runtime)
        await locate(native, spec.name, args)

        async def attempt() -> Any:
            ctx = native.context("langgraph")
            return await self.turn.executor.run_spec(spec, args, ctx, call_id=native.call_id)

        try:
            value = await until_decided(native, spec.name, attempt)
        except ApprovalPending:
            raise
        except Exception as exc:
            if under_way.raised is not None:
                raise under_way.raised from None  # LangGraph's own control flow, or a tool's error
            if under_way.failed:
                return under_way.outcome
            if isinstance(exc, MODEL_VISIBLE_ERRORS):
                return _message(request, shown(exc), status="error")
            raise
        if under_way.outcome is not None and value is under_way.value:
            return under_way.outcome
        return _given(request, value)


async def _run_native(**arguments: Any) -> Any:
    from langchain_core.messages import ToolMessage

    under_way = _UNDER_WAY.get(None)
    if under_way is None:
        raise ToolError("this tool runs only inside a round of its graph")
    request = under_way.request
    under_way.raised, under_way.failed = None, False
    if arguments != request.tool_call["args"]:  # a hook or a reviewer changed them
        request = request.override(tool_call={**request.tool_call, "args": arguments})
    try:
        outcome = await under_way.execute(request)
    except Exception as exc:
        under_way.raised = exc
        raise
    under_way.outcome = outcome
    if not isinstance(outcome, ToolMessage):
        under_way.value = outcome  # a command: handed out now, and made again by a repeated round
    elif outcome.status == "error":
        under_way.failed = True
        raise ToolFailed(f"{request.tool_call['name']} failed")
    elif outcome.artifact is None and isinstance(outcome.content, str):
        under_way.value = outcome.content
    else:
        kept = {"content": outcome.content, "artifact": outcome.artifact}
        under_way.value = {_WHOLE: kept}
    return under_way.value


def _given(request: Any, value: Any) -> Any:
    """The message for a value that comes from the ledger or from a hook."""
    if isinstance(value, dict) and set(value) == {_WHOLE}:
        kept = value[_WHOLE]
        return _message(request, kept["content"], artifact=kept["artifact"])
    if isinstance(value, str):
        return _message(request, value)
    from langchain_core.messages.tool import ToolOutputMixin

    if isinstance(value, ToolOutputMixin):
        return value
    from agent_adapter.core.answers import answer_text

    return _message(request, answer_text(value))


def _message(request: Any, content: Any, **more: Any) -> Any:
    from langchain_core.messages import ToolMessage

    call = request.tool_call
    return ToolMessage(content, tool_call_id=call["id"], name=call["name"], **more)
