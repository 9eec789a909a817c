"""The `BaseTool` that LangChain and LangGraph are given, and what happens in one call of it."""

from __future__ import annotations

import asyncio
import copy
import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn

from agent_adapter.core.answers import answer_text, told
from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    MODEL_VISIBLE_ERRORS,
    AgentAdapterError,
    ApprovalPending,
    ToolArgsIncomplete,
    ToolArgsInvalid,
    ToolFailed,
)
from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.result_parts import artifact_of, parts_of
from agent_adapter.core.tool import SPEC_ATTRIBUTE, ToolSpec
from agent_adapter.exec.executor import Executor
from agent_adapter.exec.gate import Gate
from agent_adapter.integrations.langchain_core.calls import GRANTED, Native, native_of
from agent_adapter.integrations.langchain_core.content import blocks_of
from agent_adapter.integrations.langchain_core.gate import until_decided
from agent_adapter.integrations.langchain_core.locate import locate
from agent_adapter.integrations.langchain_core.roots import watch_roots

RUNTIME = "agent_adapter_runtime"
"""The argument in which LangGraph hands over a call's `ToolRuntime`; no model can fill it."""

READS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("langchain_core.messages", ("ToolMessage",)),
    ("langchain_core.runnables", ("RunnableConfig",)),
    ("langchain_core.tools", ("BaseTool", "BaseTool._to_args_and_kwargs", "ToolException")),
    ("langgraph.errors", ("GraphBubbleUp",)),
    ("langgraph.prebuilt", ("ToolNode", "ToolRuntime")),
    ("langgraph.types", ("interrupt",)),
)
"""Every name of LangChain's core and of LangGraph that the bridge reads."""


def bridge_tool(
    target: str,
    spec: ToolSpec,
    runner: ToolRunner,
    gate: Gate | None = None,
    *,
    allow_edits: bool = False,
) -> Any:
    """The native tool of `spec`; `gate` asks its port first, where the confirm rule says so."""
    watch_roots()
    asks = gate if spec.confirm is not False else None
    attempt = _attempt(target, spec, runner, asks, allow_edits)
    tool = _bridge_class()(
        name=spec.name, description=spec.description, args_schema=spec.json_schema()
    )
    tool._enter = _entry(spec, attempt)
    tool._spec = spec
    return tool


def shown(error: Exception) -> str:
    """What a model reads of an error: kind and message, and no text of foreign code."""
    return answer_text(error=error)


_Attempt = Callable[[Any, Native], Awaitable[Any]]
_Entry = Callable[..., Awaitable[Any]]


def _attempt(
    target: str, spec: ToolSpec, runner: ToolRunner, gate: Gate | None, allow_edits: bool
) -> _Attempt:
    """One try of a call: its gate, then the executor."""
    from langchain_core.messages.tool import ToolOutputMixin

    run_spec = runner.run_spec
    # Looking for an earlier run of the call costs a question to the store; reading again is free.
    again = spec.effects != "read" or spec.confirm is not False

    def noted(value: Any, ctx: ToolContext) -> Any:
        # A command, or a message made by hand: LangGraph reads them itself.
        return value if isinstance(value, ToolOutputMixin) else told(value, ctx.edited)

    async def attempt(args: Any, native: Native) -> Any:
        if not isinstance(args, Mapping):
            raise ToolArgsInvalid(spec.name, ["(arguments): not a JSON object"])
        if native.cut_off is not None and not isinstance(runner, Executor):
            raise ToolArgsIncomplete(spec.name, native.cut_off)  # another runner might run it
        ctx = native.context(target, replays=again)
        ctx.approval, native.token = native.token, None
        if gate is None or ctx.approval is not None:
            return noted(await run_spec(spec, args, ctx, call_id=native.call_id), ctx)
        asking = native.context(target)
        grant = await gate.ask(spec, copy.deepcopy(args), asking, edits_allowed=allow_edits)
        ctx.approval = grant.token
        try:
            return noted(await run_spec(spec, args, ctx, call_id=native.call_id), ctx)
        finally:
            grant.drop()

    return attempt


def _entry(spec: ToolSpec, attempt: _Attempt) -> _Entry:
    """The tool's own step: its result as JSON text, its errors as LangChain's."""
    from langchain_core.messages.tool import ToolOutputMixin
    from langchain_core.tools import ToolException
    from langgraph.errors import GraphBubbleUp

    def refuse(error: Exception) -> NoReturn:
        if isinstance(error.__cause__, GraphBubbleUp):
            raise error.__cause__  # the tool's own interrupt, or a command to its parent graph
        raise ToolException(shown(error)) from error

    async def enter(call: tuple[Any, str | None], config: Any, *, alone: bool) -> Any:
        args, call_id = call
        runtime = None
        if isinstance(args, dict) and getattr(args.get(RUNTIME), "execution_info", None):
            args = dict(args)
            runtime = args.pop(RUNTIME)
        granted = GRANTED.get()
        native = granted.take(spec, call_id, args) if granted is not None else None
        if native is None:
            native = native_of(call_id, runtime, config)
            await locate(native, spec.name, args, blocking=alone)
        try:
            value = await until_decided(
                native, spec.name, lambda: attempt(args, native), alone=alone
            )
        except (GraphBubbleUp, ApprovalPending):
            raise
        except MODEL_VISIBLE_ERRORS as exc:
            refuse(exc)
        except AgentAdapterError:
            raise
        except Exception as exc:
            refuse(ToolFailed(f"{spec.name} failed: {type(exc).__name__}"))
        # A command, or a message made by hand: LangGraph reads them itself.
        return value if isinstance(value, ToolOutputMixin) else _output(spec, call_id, value)

    return enter


def _output(spec: ToolSpec, call_id: str | None, value: Any) -> Any:
    """JSON text, or the standard blocks of a value that holds more than JSON."""
    from langchain_core.messages.tool import ToolMessage

    parts = parts_of(value)
    if not parts:
        return answer_text(value)
    blocks: Any = blocks_of(parts)
    if call_id is None:
        return blocks
    # LangChain itself would make text of a list with a block that it does not know.
    artifact = artifact_of(value)
    return ToolMessage(blocks, tool_call_id=call_id, name=spec.name, artifact=artifact)


@functools.cache
def _bridge_class() -> Any:
    """The `BaseTool` whose entry is ours, so that LangChain neither drops nor coerces arguments."""
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool
    from langgraph.prebuilt import ToolRuntime
    from pydantic import PrivateAttr

    async def injected(**arguments: Any) -> None:
        """Only its annotations are read: LangGraph injects what they name."""

    injected.__annotations__ = {RUNTIME: ToolRuntime}
    hints = {"call": Any, "config": RunnableConfig}

    class BridgeTool(BaseTool):
        """An exported tool; every argument name reaches the executor as the model sent it."""

        handle_tool_error: Any = True
        _enter: Any = PrivateAttr(default=None)
        _spec: Any = PrivateAttr(default=None)

        @property
        def coroutine(self) -> Any:
            """A function that wants the runtime of the call, for `ToolNode` to see."""
            return injected

        @functools.cached_property
        def _injected_args_keys(self) -> frozenset[str]:
            return frozenset({RUNTIME})

        def _to_args_and_kwargs(
            self, tool_input: Any, tool_call_id: str | None
        ) -> tuple[tuple[Any, ...], dict[str, Any]]:
            return (), {"call": (tool_input, tool_call_id)}

        async def _arun(self, call: Any, config: Any) -> Any:
            return await self._enter(call, config, alone=False)

        def _run(self, call: Any, config: Any) -> Any:
            return _blocking(self._enter(call, config, alone=True))

    setattr(BridgeTool, SPEC_ATTRIBUTE, property(lambda self: self._spec))
    for method in (BridgeTool._arun, BridgeTool._run):
        method.__annotations__ = hints  # LangChain looks for the configuration by its type
    return BridgeTool


def _blocking(coroutine: Any) -> Any:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    coroutine.close()
    raise AgentAdapterError(
        "a sync call of a tool cannot run inside an event loop: use ainvoke() there"
    )
