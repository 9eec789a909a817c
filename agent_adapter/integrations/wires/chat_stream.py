"""A chat message put together from the pieces of a stream.

Servers that speak OpenAI's API differ in what they send: an `index` of 0 for every parallel call or
none at all, a name once or in every chunk, an id once, always or never, `null` for any field, and
fields of their own that must come back in the next request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_adapter.integrations.wires.calls import member
from agent_adapter.integrations.wires.finish import is_object

# Fields of other servers that come in pieces of text; of any further one the last value counts.
_TEXTS = frozenset({"reasoning_content", "reasoning", "reasoning_text", "thinking"})


@dataclass(slots=True)
class StreamedMessage:
    """The message so far; `finish` is the provider's reason for its end, once it came.

    `id` and `created` are the response's.
    """

    texts: dict[str, str] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    finish: str | None = None
    id: str | None = None
    created: int | None = None
    _current: dict[Any, dict[str, Any]] = field(default_factory=dict)

    def add(self, choice: Any) -> Iterator[str]:
        """Take one choice of a chunk; the pieces of text in it, for whoever listens."""
        self.finish = choice.finish_reason or self.finish
        delta = choice.delta
        if delta is None:
            return
        for name in ("content", "refusal"):
            piece = getattr(delta, name, None)
            if piece:
                self.texts[name] = self.texts.get(name, "") + piece
                yield piece
        for call in delta.tool_calls or ():
            if call is not None:
                self._add_call(call)
        _merge(self.more, delta.model_extra or {})

    def whole(self) -> dict[str, Any]:
        """The message as a request takes it."""
        message = {"role": "assistant", "content": None, **self.texts, **self.more}
        return message | ({"tool_calls": self.calls} if self.calls else {})

    def _add_call(self, delta: Any) -> None:
        index, function = delta.index, delta.function
        name = member(function, "name") or ""
        arguments = _text(member(function, "arguments"))
        call = self._current.get(index)
        if call is None or _begins_another(call, delta.id, name, arguments):
            call = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            self._current[index] = call
            self.calls.append(call)
        call["id"] = delta.id or call["id"]
        told = call["function"]
        told["name"] = _name(told["name"], name)
        told["arguments"] += arguments
        _merge(call, delta.model_extra or {})
        _merge(told, getattr(function, "model_extra", None) or {})


def _begins_another(call: Mapping[str, Any], id: str | None, name: str, arguments: str) -> bool:
    """Whether a piece under the index of `call` belongs to a further call.

    Without ids only the shape tells: a name and an opening brace after arguments that are whole.
    """
    if id and call["id"]:
        return bool(id != call["id"])
    begins = bool(name) and arguments.lstrip().startswith("{")
    return begins and is_object(call["function"]["arguments"])


def _name(known: str, piece: str) -> str:
    """The name with a piece more; a server that repeats the name in each chunk adds nothing."""
    return piece if piece.startswith(known) else known if piece == "" else known + piece


def _text(arguments: Any) -> str:
    """Arguments as text; some servers send them as an object, whole."""
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _merge(into: dict[str, Any], pieces: Mapping[str, Any]) -> None:
    for name, piece in pieces.items():
        if piece is None:
            continue
        known = into.get(name)
        if isinstance(known, str) and isinstance(piece, str) and name in _TEXTS:
            into[name] = known + piece
        elif isinstance(known, list) and isinstance(piece, Iterable) and not isinstance(piece, str):
            into[name] = [*known, *piece]
        else:
            into[name] = piece
