"""One Agno call between its pause and its run: what the model sent, and the approval it holds."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_adapter.core.context import ToolContext
    from agent_adapter.core.tool import ToolSpec
    from agent_adapter.exec.gate import Grant

__all__ = ["CallKey", "Held", "TokenBook", "as_sent", "rewritable", "rewritten"]

CallKey = tuple[str | None, str | None]
"""Run id and call id."""


class Held:
    """One approval between a pause and the call it was given for."""

    __slots__ = ("args", "grant", "native", "spec")

    def __init__(
        self, spec: ToolSpec, native: Mapping[str, Any], args: Mapping[str, Any], grant: Grant
    ) -> None:
        self.spec = spec
        self.native = text_of(native)
        self.args = args
        self.grant = grant


class TokenBook:
    """One-use tokens by (run id, call id); the oldest are dropped beyond `size` calls."""

    def __init__(self, size: int = 10_000) -> None:
        self.size = size
        self.held: OrderedDict[CallKey, list[Held]] = OrderedDict()

    def put(self, key: CallKey, held: Held) -> None:
        """Keep `held` for the call `key`."""
        self.held.setdefault(key, []).append(held)
        while len(self.held) > self.size:
            for oldest in self.held.popitem(last=False)[1]:
                oldest.grant.drop()

    def take(self, ctx: ToolContext, spec: ToolSpec, native: Mapping[str, Any]) -> Held | None:
        """The approval of exactly this call, once; models reuse call ids, so arguments count."""
        key = (ctx.run_id, ctx.call_id)
        waiting = self.held.get(key)
        if not waiting:
            return None
        text = text_of(native)
        for index, held in enumerate(waiting):
            if held.spec is spec and held.native == text:
                del waiting[index]
                if not waiting:
                    del self.held[key]
                return held
        return None


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
