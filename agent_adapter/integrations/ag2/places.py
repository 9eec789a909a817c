"""Which call an AG2 event is: the ask that runs, and the event's number on its stream.

AG2's events have no ids and compare equal by value, so each is stamped when it is sent. AG2 hands
tools a copy of the event, which carries the stamp along; its own writing of events leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agent_adapter.core.identity import Identity
from agent_adapter.exec.ids import new_id
from agent_adapter.integrations.wires.finish import cut_off

if TYPE_CHECKING:
    from ag2.annotations import Context
    from ag2.events import ToolCallEvent

_PLACE = "_agent_adapter_place"
_CALL_ID = "_agent_adapter_call_id"
_SAID = "_agent_adapter_said"
_CUT_OFF = "_agent_adapter_cut_off"

# AG2 opens one exit stack for each ask and hands it to every tool.
_ASKS: WeakKeyDictionary[ExitStack[Any] | AsyncExitStack[Any], str] = WeakKeyDictionary()


def enter_ask(stack: ExitStack[Any] | AsyncExitStack[Any], context: Context) -> None:
    """Number the calls that are sent on the stream until `stack` closes; once for all tools."""
    if stack in _ASKS:
        return
    from ag2.events import ModelRequest, ModelResponse, ToolCallEvent

    stream = str(context.stream.id)
    run = _ASKS[stack] = f"{stream}:{new_id('ask')}"
    sent = 0

    async def stamp(event: Any) -> None:
        nonlocal sent
        sent += 1
        # An event that is sent again, in this ask or a later one, is the call that it was.
        vars(event).setdefault(_PLACE, (stream, run, sent))

    async def mark(response: Any) -> None:
        why = cut_off(response.finish_reason)
        if why is not None:
            for call in response.tool_calls.calls:
                vars(call)[_CUT_OFF] = why

    # AG2 puts what others have queued before what the user asks, in the same request.
    queued: int | None = sum(len(request.parts) for request in context.pending_messages)

    async def hear(request: Any) -> None:
        nonlocal queued
        if queued is not None:
            vars(request).setdefault(_SAID, _texts(request.parts[queued:]))
            queued = None  # later requests of the ask are not the user's

    stack.enter_context(context.stream.where(ModelRequest).sub_scope(hear))
    stack.enter_context(context.stream.where(ModelResponse).sub_scope(mark))
    # AG2 serves subscribers in the order in which they came: this one before the tools.
    stack.enter_context(context.stream.where(ToolCallEvent).sub_scope(stamp))


async def said_on(context: Context) -> list[str]:
    """What the user asked on the stream, as far as this process heard it."""
    events = await context.stream.history.get_events()
    return [text for event in events for text in vars(event).get(_SAID, ())]


def _texts(parts: Iterable[Any]) -> tuple[str, ...]:
    from ag2.events import TextInput

    return tuple(part.content for part in parts if isinstance(part, TextInput))


def identity_of(event: ToolCallEvent, stream_id: str) -> Identity:
    """Which call `event` is; one that no ask sent on this stream is told apart by arrival."""
    place: tuple[str, str, int] | None = vars(event).get(_PLACE)
    if place is None or place[0] != stream_id:
        return Identity(run=stream_id, conversation=stream_id)
    return Identity(run=place[1], conversation=stream_id, position=(place[2],))


def why_cut_off(event: ToolCallEvent) -> str | None:
    """Why the response that made the call was ended early, in the provider's word."""
    why: str | None = vars(event).get(_CUT_OFF)
    return why


def call_id_of(event: ToolCallEvent) -> str:
    """The event's id; where the model gave none, one that the gate and the tool both see."""
    if event.id:
        return event.id
    made: str = vars(event).setdefault(_CALL_ID, new_id("call"))
    return made
