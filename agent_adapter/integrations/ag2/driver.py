"""One round of an AG2 agent in a channel: its own history and prompt, its tools in the turn."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from agent_adapter.core.errors import ApprovalPending, ToolError
from agent_adapter.core.native import NativeTool, NativeTools
from agent_adapter.core.ports import TurnView
from agent_adapter.core.tool import ToolSpec
from agent_adapter.flow.reply import Reply
from agent_adapter.flow.routing import RoundCall
from agent_adapter.integrations.ag2.calls import arguments_of, bind
from agent_adapter.integrations.ag2.export import ag2_tool
from agent_adapter.integrations.ag2.results import (
    event_of,
    failure,
    routing_of,
    value_of,
    waiting,
)
from agent_adapter.integrations.base import is_instance_of

if TYPE_CHECKING:
    from ag2.annotations import Context
    from ag2.events import BaseEvent, ToolCallEvent


# The keys under which AG2's own channel parameters look for their values.
_CHANNEL = "ag2.network.channel"
_STATE = "ag2.network.channel_state"
_CLIENT = "ag2.network.agent_client"
_HUB = "ag2.network.hub"

_OURS = "agent_adapter:"


def drives(agent: Any) -> bool:
    """Whether `agent` is an `ag2.Agent`, told by its class without importing AG2."""
    return is_instance_of(agent, "ag2.agent", "Agent")


def native_tools(agent: Any) -> NativeTools:
    """The agent's function tools, those of its toolkits included.

    Not complete with tools of other kinds: a remote toolkit lists its own while the agent runs.
    """
    from ag2.tools.types import FunctionTool

    found: dict[str, NativeTool] = {}
    complete = True
    left = [*agent.tools, *getattr(agent, "_additional_tools", ())]
    while left:
        tool = left.pop()
        if isinstance(tool, FunctionTool):
            if tool.source.startswith(_OURS):
                continue  # an exported tool has its policy in its spec
            found[tool.name] = NativeTool(
                function=tool.model.call, description=tool.schema.function.description
            )
        else:
            inside = getattr(tool, "tools", ())
            complete = complete and bool(inside)
            left += inside
    return NativeTools(tools=found, complete=complete)


async def drive(agent: Any, turn: TurnView) -> Reply:
    """Ask the agent about the turn's message, after the channel as it sees it."""
    from ag2.stream import MemoryStream

    stream = MemoryStream()
    history = _history(turn.messages)
    if history:
        await stream.history.storage.set_history(stream.id, history)
    watch = _Round(turn, native_tools(agent))
    with _tasks_told(turn, stream):
        reply = await agent.ask(
            turn.input_text,
            stream=stream,
            dependencies={
                _CHANNEL: turn.channel,
                _CLIENT: turn.agent_client,
                _HUB: turn.hub_client,
                _STATE: turn.state(),
            },
            tools=[_native(tool, turn) for tool in turn.tools],
            middleware=(watch.middleware,),
        )
    return Reply(reply.body or "", watch.calls(await stream.history.get_events()))


@contextmanager
def _tasks_told(turn: TurnView, stream: Any) -> Iterator[None]:
    """Tell the hub of the agent's own tasks while the round runs."""
    make = getattr(turn.agent_client, "task_mirror", None)
    if make is None:
        yield
        return
    mirror = make(turn.channel_id)
    told = mirror.attach(stream)
    try:
        yield
    finally:
        mirror.detach(stream, told)


def _history(messages: Sequence[Any]) -> list[BaseEvent]:
    from ag2.compact import CompactionSummary
    from ag2.events import ModelMessage, ModelRequest, TextInput

    events: list[BaseEvent] = []
    for message in messages:
        if message.summary:
            events.append(CompactionSummary(summary=message.text, event_count=0))
        elif message.own:
            events.append(ModelMessage(message.text))
        else:
            events.append(ModelRequest([TextInput(message.text)]))
    return events


def _native(tool: Any, turn: TurnView) -> Any:
    return ag2_tool(tool, executor=turn.executor) if isinstance(tool, ToolSpec) else tool


class _Round:
    """The tool calls of one round, as they end."""

    def __init__(self, turn: TurnView, own: NativeTools) -> None:
        self._turn = turn
        self._own = own
        self._ended: list[tuple[str, RoundCall]] = []

    def middleware(self, event: BaseEvent, context: Context) -> Any:
        """AG2's factory of the layer next to the tools."""
        return _layer_class()(event, context, self)

    async def run(self, call_next: Any, event: ToolCallEvent, context: Context) -> Any:
        """One call: ours as it is, any other through the turn's executor."""
        # Folded at the moment of the call, with what earlier calls of the round have changed.
        context.dependencies[_STATE] = self._turn.state()
        if (event.source or "").startswith(_OURS):
            outcome = await call_next(event, context)
        else:
            native = _NativeCall(call_next, event, context)
            outcome = await _governed(self._turn.executor, self._spec_of(event), native)
        self._ended.append((event.id, _round_call(event, outcome)))
        return outcome

    def _spec_of(self, event: ToolCallEvent) -> ToolSpec:
        own_function = (event.source or "").startswith("function:")
        return self._turn.native.spec(
            event.name,
            self._own.find(event.name),
            _run_native,
            noun="AG2",
            trust="trusted" if own_function else "untrusted",
        )

    def calls(self, events: Iterable[BaseEvent]) -> list[RoundCall]:
        """The calls in the model's order; models reuse ids, so each record is used once."""
        from ag2.events import ToolCallsEvent

        left, ordered = list(self._ended), []
        for event in events:
            if not isinstance(event, ToolCallsEvent):
                message = getattr(event, "tool_calls", None)
                event = message if isinstance(message, ToolCallsEvent) else event
            if not isinstance(event, ToolCallsEvent):
                continue
            for call in event.calls:
                found = next((item for item in left if item[0] == call.id), None)
                if found is not None:
                    left.remove(found)
                    ordered.append(found[1])
        return [*ordered, *(item[1] for item in left)]


@cache
def _layer_class() -> Any:
    from ag2.middleware import BaseMiddleware

    class RoundLayer(BaseMiddleware):
        """Hands every tool call of the round to its `_Round`."""

        def __init__(self, event: BaseEvent, context: Context, watch: _Round) -> None:
            super().__init__(event, context)
            self._watch = watch

        async def on_tool_execution(
            self, call_next: Any, event: ToolCallEvent, context: Context
        ) -> Any:
            """Run the call in the turn."""
            return await self._watch.run(call_next, event, context)

    return RoundLayer


@dataclass(slots=True)
class _NativeCall:
    """A native call under way, and what came out of it."""

    call_next: Any
    event: ToolCallEvent
    context: Context
    outcome: Any = None
    value: Any = None
    failed: bool = False
    passing: BaseException | None = None


_UNDER_WAY: ContextVar[_NativeCall] = ContextVar("agent_adapter_ag2_native_call")


async def _governed(executor: Any, spec: ToolSpec, native: _NativeCall) -> Any:
    """Run a native tool's call through the executor, under its policy."""
    event = native.event
    token = _UNDER_WAY.set(native)
    try:
        args = arguments_of(spec, event)
        ctx = bind(event, str(native.context.stream.id))
        value = await executor.run_spec(spec, args, ctx, call_id=ctx.call_id)
    except ApprovalPending as exc:
        return waiting(event, exc)
    except Exception as exc:
        if native.passing is not None:
            raise native.passing from None
        # What the native tool raised is shown to the model as AG2 shows it; what a guard raised
        # afterwards takes the place of the tool's result.
        return native.outcome if native.failed else failure(event, exc)
    finally:
        _UNDER_WAY.reset(token)
    if native.outcome is not None and value is native.value:
        return native.outcome
    return event_of(event, value)


async def _run_native(**arguments: Any) -> Any:
    from ag2.events import ToolErrorEvent
    from ag2.exceptions import HumanInputError

    native = _UNDER_WAY.get(None)
    if native is None:
        raise ToolError("this tool runs only inside a round of its AG2 agent")
    event = _with_arguments(native.event, arguments)
    native.failed = False
    try:
        outcome = await native.call_next(event, native.context)
    except HumanInputError as exc:
        native.passing = exc
        raise
    native.outcome = outcome
    if isinstance(outcome, ToolErrorEvent):
        native.failed = True
        raise _refused(outcome.error) or outcome.error
    result = getattr(outcome, "result", None)
    native.value = outcome if result is None else value_of(result)
    return native.value


def _refused(error: Exception) -> ToolError | None:
    """An error of AG2's own argument check: the function was not entered."""
    if type(error).__module__.partition(".")[0] in ("fast_depends", "pydantic_core"):
        return ToolError(f"invalid arguments: {error}")
    return None


def _with_arguments(event: ToolCallEvent, arguments: Mapping[str, Any]) -> ToolCallEvent:
    """The event itself, or a copy where a hook or a reviewer changed the arguments."""
    if event.serialized_arguments == arguments:
        return event
    changed = copy.copy(event)
    changed.arguments = json.dumps(arguments, ensure_ascii=False)
    changed._serialized_arguments = None
    return changed


def _round_call(event: ToolCallEvent, outcome: Any) -> RoundCall:
    from ag2.events import ToolErrorEvent

    try:
        arguments = event.serialized_arguments
    except (ValueError, TypeError, RecursionError):
        arguments = None
    ok = not isinstance(outcome, ToolErrorEvent)
    parts = getattr(getattr(outcome, "result", None), "parts", ())
    data = [getattr(part, "data", None) for part in parts]
    routing = [found for item in data if (found := routing_of(item)) is not None]
    return RoundCall(
        tool=event.name,
        ok=ok,
        result=routing,
        arguments=arguments if isinstance(arguments, dict) else None,
    )
