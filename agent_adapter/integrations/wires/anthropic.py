"""Anthropic's Messages API: tools, calls and answers in the form in which they travel."""

from __future__ import annotations

from typing import Any

from agent_adapter.core.schema.providers import anthropic
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.wires.calls import Answer, ProviderCall, adapted, field

__all__ = ["calls_of", "result_of", "tool_of"]


def tool_of(spec: ToolSpec) -> dict[str, Any]:
    """The tool as the API takes it."""
    return {
        "name": spec.name,
        "description": spec.description,
        "input_schema": adapted(spec, anthropic),
    }


def calls_of(message: Any) -> list[ProviderCall]:
    """The `tool_use` blocks of a message or of its JSON form."""
    content = field(message, "content")
    if not isinstance(content, list):
        return []
    return [
        ProviderCall(
            call_id=field(block, "id"),
            native_id=field(block, "id"),
            name=field(block, "name"),
            arguments=field(block, "input"),
        )
        for block in content
        if field(block, "type") == "tool_use"
    ]


def result_of(answer: Answer) -> dict[str, Any]:
    """The `tool_result` block that answers a call."""
    return {
        "type": "tool_result",
        "tool_use_id": answer.call.native_id,
        "content": answer.text,
        "is_error": answer.is_error,
    }
