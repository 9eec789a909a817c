"""What an Agno function call says of a call: its ids, and the arguments as the model sent them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agent_adapter.core.context import ToolContext
from agent_adapter.exec.ids import new_id

if TYPE_CHECKING:
    from agno.tools.function import FunctionCall


def bind(call: FunctionCall) -> ToolContext:
    """A context for one call, with a new id where Agno has none."""
    return ToolContext(call.call_id or new_id("call"), *run_of(call), bound_by="agno")


def said_to(agent: Any, messages: Iterable[Any] | None) -> list[str]:
    """What the user wrote to an agent; to a member of a team its leader writes."""
    if getattr(agent, "team_id", None) is not None:
        return []
    texts = (m.content for m in messages or () if m.role == "user" and isinstance(m.content, str))
    return [_ADDED.split(text, maxsplit=1)[0] for text in texts]


_ADDED = re.compile(r"\n\n(?:Use the following references|<additional context>|<references>)")
"""How what Agno adds to a message of the user begins: documents, and what the program knows."""


def run_of(call: Any) -> tuple[str | None, str | None]:
    """The ids of the agent's run and session; `None` for a call outside of a run."""
    run = getattr(getattr(call, "function", None), "_run_context", None)
    return (None, None) if run is None else (run.run_id, run.session_id)


def text_of(value: Any) -> str:
    """Text that tells 1, 1.0, true and "1" apart, and does not tell the order of keys."""
    return json.dumps(value, sort_keys=True, default=repr)


def rewritable(native: Mapping[str, Any]) -> bool:
    """Whether Agno may have made some of these arguments out of text."""
    return any(value is None or value is True or value is False for value in native.values())


def as_sent(
    native: Mapping[str, Any], call_id: str | None, tool: str, messages: Iterable[Any] | None
) -> Mapping[str, Any]:
    """The arguments as the model wrote them, where its message still shows them.

    Agno turns the texts "none", "null", "true" and "false" into None and booleans, whatever the
    schema says (agno-agi/agno#10459); what it made of the message must be what it hands over.
    """
    if not rewritable(native):
        return native
    for message in reversed(list(messages or ())):
        sent = [
            raw
            for call in message.tool_calls or ()
            if call.get("id") == call_id
            and (raw := _arguments_of(call, tool)) is not None
            and text_of(rewritten(raw)) == text_of(native)
        ]
        if sent:
            alike = all(text_of(raw) == text_of(sent[0]) for raw in sent)
            return sent[0] if alike else native
    return native


def _arguments_of(call: Mapping[str, Any], tool: str) -> dict[str, Any] | None:
    function = call.get("function") or {}
    if function.get("name") != tool:
        return None
    try:
        raw = json.loads(function.get("arguments") or "{}")
    except (ValueError, TypeError, RecursionError):
        return None
    return raw if isinstance(raw, dict) else None


_REWRITES: Mapping[str, bool | None] = {"none": None, "null": None, "true": True, "false": False}


def rewritten(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What Agno makes of arguments before it calls a function."""
    return {
        key: _REWRITES.get(value.strip().lower(), value) if isinstance(value, str) else value
        for key, value in raw.items()
    }
