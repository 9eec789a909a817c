"""Gemini's API: declarations, calls and answers in the SDK's types."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from agent_adapter.core.schema.providers import gemini
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.ids import new_id
from agent_adapter.integrations.wires.calls import Answer, ProviderCall, adapted, field

__all__ = ["calls_of", "declaration_of", "part_of", "tools_of"]


def declaration_of(spec: ToolSpec) -> Any:
    """The tool as a `FunctionDeclaration`, its schema as JSON Schema."""
    return _types().FunctionDeclaration(
        name=spec.name,
        description=spec.description,
        parameters_json_schema=adapted(spec, gemini),
    )


def tools_of(specs: Iterable[ToolSpec]) -> list[Any]:
    """All tools in one `Tool`; an empty list without any."""
    declarations = [declaration_of(spec) for spec in specs]
    return [_types().Tool(function_declarations=declarations)] if declarations else []


def calls_of(response: Any) -> list[ProviderCall]:
    """The function calls of a response's first candidate, or of one `Content`.

    Most backends give no ids: such a call is named by its response and its place in it.
    """
    candidates = field(response, "candidates")
    content = field(candidates[0], "content") if candidates else response
    found = [call for part in field(content, "parts") or () if (call := _call_in(part))]
    origin = field(response, "response_id")
    return [
        ProviderCall(
            call_id=field(call, "id") or _made_up(origin, place),
            native_id=field(call, "id"),
            name=field(call, "name") or "",
            arguments=field(call, "args"),
        )
        for place, call in enumerate(found)
    ]


def part_of(answer: Answer) -> Any:
    """The `FunctionResponse` part that answers a call, with its id only where it had one."""
    types = _types()
    key = "error" if answer.is_error else "output"
    response = types.FunctionResponse(
        id=answer.call.native_id, name=answer.call.name, response={key: answer.data}
    )
    return types.Part(function_response=response)


def _call_in(part: Any) -> Any:
    return field(part, "function_call") or field(part, "functionCall")


def _made_up(origin: Any, place: int) -> str:
    return f"{origin}:{place}" if origin else new_id("call")


@cache
def _types() -> Any:
    from google.genai import types

    return types
