"""One round of an Agno agent in a channel: its own session, its tools in the turn."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_adapter.core.answers import answer_text, told
from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    MODEL_VISIBLE_ERRORS,
    ApprovalPending,
    IntegrationError,
    ToolError,
)
from agent_adapter.core.native import NativeTool, NativeTools
from agent_adapter.core.ports import ApprovalPort, TurnView
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.routing import Finish, Handoff
from agent_adapter.core.tool import SPEC_ATTRIBUTE, ToolSpec
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest
from agent_adapter.flow.reply import Reply
from agent_adapter.flow.routing import RoundCall
from agent_adapter.integrations.agno.calls import text_of
from agent_adapter.integrations.agno.export import EXPORTED, agno_function
from agent_adapter.integrations.agno.gate import resolve_requirements
from agent_adapter.integrations.base import is_instance_of

if TYPE_CHECKING:
    from agno.models.message import Message
    from agno.models.response import ToolExecution
    from agno.run.agent import RunOutput


_Ended = tuple[str, str, Any]
"""Tool, arguments as text, value."""


def drives(agent: Any) -> bool:
    """Whether `agent` is an `agno.agent.Agent`, told by its class without importing Agno."""
    return is_instance_of(agent, "agno.agent.agent", "Agent")


def native_tools(agent: Any) -> NativeTools:
    """The agent's functions, those of its toolkits included.

    Not complete if the agent makes its tools in a run, or a toolkit lists its own only then.
    """
    from agno.tools.function import Function

    if callable(agent.tools):
        return NativeTools(complete=False)
    found: dict[str, NativeTool] = {}
    complete = True
    for tool in agent.tools or ():
        inside = getattr(tool, "functions", None)
        if isinstance(tool, Function):
            functions = [tool]
        elif isinstance(inside, Mapping):
            functions = [*inside.values(), *getattr(tool, "async_functions", {}).values()]
            complete = complete and bool(functions)
        elif callable(tool):
            name = getattr(tool, "__name__", type(tool).__name__)
            found[name] = NativeTool(function=tool, description=inspect.getdoc(tool) or "")
            continue
        else:  # a tool of the provider's, which does not run here
            continue
        for function in functions:
            if not getattr(function.entrypoint, EXPORTED, False):
                found[function.name] = NativeTool(
                    function=function.entrypoint,
                    description=function.description or "",
                    confirm=bool(function.requires_confirmation),
                )
    return NativeTools(tools=found, complete=complete)


async def drive(agent: Any, turn: TurnView) -> Reply:
    """Run the agent on the turn's message, after the channel as it sees it.

    Its session is the channel's; the channel's messages take the place of its stored history.
    Confirmations go to the approval port of the turn's executor. `IntegrationError` where the run
    ends without an answer.
    """
    watch = _Round(turn)
    mine = watch.prepared(agent)
    output = await mine.arun(
        _messages(turn),
        session_id=f"{turn.channel_id}:{turn.agent_name}",
        add_history_to_context=False,
    )
    registry = _exported(mine.tools)
    port: ApprovalPort = turn.executor.approval or _Nobody()
    while output.is_paused:
        _refuse_other_pauses(output)
        await resolve_requirements(output, port, registry)
        output = await mine.acontinue_run(run_response=output)
    return Reply(_body(output), watch.calls(output.tools or ()))


def _messages(turn: TurnView) -> list[Message]:
    from agno.models.message import Message

    seen = [
        Message(role="assistant" if message.own else "user", content=message.text)
        for message in turn.messages
    ]
    return [*seen, Message(role="user", content=turn.input_text)]


def _body(output: RunOutput) -> str:
    status = getattr(output.status, "value", output.status)
    if str(status).lower() in ("error", "cancelled"):
        raise IntegrationError(f"the Agno run {output.run_id} ended as {status}: {output.content}")
    content: Any = output.content
    if content is None or isinstance(content, str):
        return content or ""
    return str(output.get_content_as_string())


def _refuse_other_pauses(output: RunOutput) -> None:
    """A pause that no confirmation ends would be resumed forever."""
    for requirement in output.requirements or ():
        if not requirement.needs_confirmation and not requirement.is_resolved():
            tool = requirement.tool_execution
            raise IntegrationError(
                f"the Agno tool {tool.tool_name if tool else '?'} asks for input or is run "
                "outside of Agno, which a channel's turn cannot do; ask with confirm=True instead"
            )


class _Nobody:
    """The port where an executor has none: it denies."""

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        """Denied."""
        return ApprovalDecision.deny(reviewer="nobody", reason="the hub has no approval port")


class _Round:
    """The tool calls of one round, as they end."""

    def __init__(self, turn: TurnView) -> None:
        self._turn = turn
        self._ended: list[_Ended] = []
        self._ours: frozenset[str] = frozenset()
        self._own = NativeTools()

    def prepared(self, agent: Any) -> Any:
        """A copy of the agent for this round, whose tools run in the turn."""
        _refuse_own_hooks(agent)
        mine = copy.copy(agent)
        added = [
            agno_function(tool, executor=self._turn.executor)
            if isinstance(tool, ToolSpec)
            else tool
            for tool in self._turn.tools
        ]
        if added and callable(agent.tools):
            raise IntegrationError(
                "this Agno agent makes its tools with a function, so the channel cannot add "
                "tools; register it with attach_plugin=False"
            )
        if added:
            mine.tools = [*(agent.tools or ()), *added]
        if isinstance(mine.tools, (list, tuple)):
            mine.tools = [_ungated(tool) for tool in mine.tools]
        self._ours = frozenset(_exported(mine.tools).names())
        self._own = native_tools(agent)
        mine.tool_hooks = [*(agent.tool_hooks or ()), self._hook()]
        return mine

    def calls(self, executions: Iterable[ToolExecution]) -> list[RoundCall]:
        """The run's calls in the model's order, with what they returned."""
        return [self._round_call(execution) for execution in executions]

    def _round_call(self, execution: ToolExecution) -> RoundCall:
        tool, arguments = execution.tool_name or "", execution.tool_args or {}
        value = self._turn.result_of(execution.tool_call_id, tool)
        if tool not in self._ours:
            value = self._native_value(tool, arguments)
        # Agno calls a rejected or failed call of ours ended: its text is the error.
        ok = not execution.tool_call_error and execution.confirmed is not False
        ok = ok and not _is_error(execution.result)
        return RoundCall(tool=tool, ok=ok, result=value, arguments=arguments)

    def _native_value(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        for index, (name, given, value) in enumerate(self._ended):
            if name == tool and given == text_of(arguments):
                del self._ended[index]
                return value
        return None

    def _hook(self) -> Callable[..., Awaitable[Any]]:
        """Agno's tool hook that runs a native call through the turn's executor."""

        async def govern(
            function_name: str, function_call: Callable[..., Any], arguments: dict[str, Any]
        ) -> Any:
            if function_name in self._ours:
                return await _called(function_call, arguments)
            given = text_of(arguments)
            spec = self._turn.native.spec(
                function_name, self._own.find(function_name), _run_native, noun="Agno"
            )
            value = await _governed(self._turn.executor, spec, function_call, arguments)
            self._ended.append((function_name, given, _routing_of(value) or value))
            return value

        return govern


def _ungated(tool: Any) -> Any:
    """A native tool without Agno's own confirmation: the turn's executor asks in its place."""
    from agno.tools.function import Function

    def of_function(function: Any) -> Any:
        if not function.requires_confirmation or getattr(function.entrypoint, EXPORTED, False):
            return function
        mine = function.model_copy(deep=False)
        mine.requires_confirmation = False
        return mine

    if isinstance(tool, Function):
        return of_function(tool)
    if not isinstance(getattr(tool, "functions", None), Mapping):
        return tool
    mine = copy.copy(tool)
    for name in ("functions", "async_functions"):
        inside = {key: of_function(each) for key, each in getattr(tool, name, {}).items()}
        setattr(mine, name, type(tool.functions)(inside))
    return mine


async def _called(function_call: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    given = function_call(**arguments)
    return await given if inspect.isawaitable(given) else given


@dataclass(slots=True)
class _NativeCall:
    function_call: Callable[..., Any]
    value: Any = None
    raised: Exception | None = None


_UNDER_WAY: ContextVar[_NativeCall] = ContextVar("agent_adapter_agno_native_call")


async def _governed(
    executor: Any, spec: ToolSpec, function_call: Callable[..., Any], arguments: Mapping[str, Any]
) -> Any:
    native = _NativeCall(function_call)
    token = _UNDER_WAY.set(native)
    try:
        ctx = ToolContext()
        return told(await executor.run_spec(spec, arguments, ctx), ctx.edited)
    except ApprovalPending:
        raise
    except Exception as exc:
        if native.raised is not None:
            raise native.raised from None  # Agno's own control flow, or what its tool raised
        if isinstance(exc, MODEL_VISIBLE_ERRORS):
            return answer_text(error=exc)
        raise
    finally:
        _UNDER_WAY.reset(token)


async def _run_native(**arguments: Any) -> Any:
    native = _UNDER_WAY.get(None)
    if native is None:
        raise ToolError("this tool runs only inside a round of its Agno agent")
    native.raised = None
    try:
        value = await _called(native.function_call, arguments)
    except Exception as exc:
        native.raised = exc
        raise
    native.value = value
    return value


def _exported(tools: Any) -> ToolRegistry:
    """The tools of ours among an agent's, for the pauses they make."""
    registry = ToolRegistry()
    for tool in tools if isinstance(tools, list) else ():
        entrypoint = getattr(tool, "entrypoint", None)
        if getattr(entrypoint, EXPORTED, False):
            registry.add(getattr(entrypoint, SPEC_ATTRIBUTE))
    return registry


def _refuse_own_hooks(agent: Any) -> None:
    """Agno lets an agent's hooks replace a tool's own; a hook that guards must not vanish."""
    if agent.tool_hooks is not None:
        return
    for tool in agent.tools if isinstance(agent.tools, list) else ():
        parts = getattr(tool, "functions", None) or {}
        for function in (tool, *parts.values()):
            if getattr(function, "tool_hooks", None):
                raise IntegrationError(
                    f"the Agno tool {function.name} has tool_hooks of its own, which a channel "
                    "cannot keep; give them to the agent: Agent(tool_hooks=[…])"
                )


def _is_error(result: Any) -> bool:
    return isinstance(result, str) and result.startswith('{"error": {"kind"')


def _routing_of(value: Any) -> Handoff | Finish | None:
    return value if isinstance(value, (Handoff, Finish)) else None
