"""A real AG2 agent with AG2's own scripted model: what it called, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ag2 import Agent
from ag2.events import DataInput, TextInput, ToolCallEvent, ToolErrorEvent, ToolResultsEvent
from ag2.testing import TestConfig
from fast_depends.pydantic import PydanticSerializer


def call_event(name: str, arguments: Any = None, *, call_id: str = "call_1") -> ToolCallEvent:
    """A tool call as a model sends it; text is taken as it stands."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return ToolCallEvent(name, id=call_id, arguments=text)


async def ask(tools: Iterable[Any], *turns: Any, **options: Any) -> Any:
    """The reply of an agent whose model plays `turns` and then says "done"."""
    config = TestConfig(*turns, "done", raise_tool_errors=False)
    return await Agent("shop", config=config, tools=list(tools), **options).ask("go")


async def results(reply: Any) -> dict[str, Any]:
    """The tool results of a reply by call id, in the order they came in."""
    events = await reply.history.get_events()
    batches = [event for event in events if isinstance(event, ToolResultsEvent)]
    return {result.parent_id: result for batch in batches for result in batch.results}


async def run(tools: Iterable[Any], *calls: ToolCallEvent, **options: Any) -> dict[str, Any]:
    """The results of one turn that makes `calls` in parallel, by call id."""
    return await results(await ask(tools, list(calls), **options))


def value(result: Any) -> Any:
    """The value in a result event."""
    part = result.result.parts[0]
    return part.content if isinstance(part, TextInput) else part.data


def shown(result: Any) -> str:
    """The text that AG2's provider clients make of a result event."""
    part = result.result.parts[0]
    if isinstance(part, DataInput):
        encoded: bytes = PydanticSerializer().encode(part.data)
        return encoded.decode()
    return str(part.content)


def error_of(result: Any) -> dict[str, str]:
    """`{"kind", "message"}` as the model reads it of an error event."""
    assert isinstance(result, ToolErrorEvent), result
    error: dict[str, str] = json.loads(shown(result))["error"]
    return error
