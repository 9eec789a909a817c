"""Why a model stopped, in one vocabulary for every provider."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

FinishReason = Literal[
    "stop",
    "calls",
    "length",
    "content-filter",
    "refusal",
    "malformed-call",
    "pause",
    "unknown",
]
"""`stop` and `calls` are normal ends.

`length` is a token limit that cut the answer off, `content-filter` text that the provider withheld,
`refusal` a model that declined, `malformed-call` a call that the provider could not parse, `pause`
a provider that wants to be asked again. `unknown` is any other word, or a stream without one.
"""

Status = Literal["done", "cut-off", "refused"]
"""What a finish makes of an answer without calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Why one response ended; `said` is the provider's own word, `None` where it gave none."""

    reason: FinishReason
    said: str | None = None

    @property
    def status(self) -> Status:
        """Whether the answer is whole."""
        if self.reason == "refusal":
            return "refused"
        return "done" if self.reason in ("stop", "calls", "pause") else "cut-off"

    def covers(self, arguments: Any) -> bool:
        """Whether a call of this response is known to be whole.

        A response that was cut off vouches for none of its calls: servers do not agree on the
        order in which they send parallel ones. After an unknown word the arguments themselves must
        show it: JSON text of an object is not valid without its end.
        """
        if self.reason in ("stop", "calls"):
            return True
        return self.reason == "unknown" and isinstance(arguments, str) and is_object(arguments)


WHOLE = Stopped(reason="stop")
"""A message of a conversation: it does not say why its response ended."""


def stopped(words: Mapping[str, FinishReason], said: Any) -> Stopped:
    """The reason that a provider's word stands for."""
    text = said if isinstance(said, str) else getattr(said, "value", None)
    if not text:
        return Stopped(reason="unknown")
    return Stopped(reason=words.get(text.lower(), "unknown"), said=text)


# The words, of whatever provider, for an answer that was ended before the model did.
_CUT_OFF = frozenset(
    {
        *("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"),
        *("model_length", "max_len", "max_prompt", "max_context", "guardrail_intervened"),
        *("content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content"),
        *("spii", "malformed_function_call", "incomplete"),
    }
)


def cut_off(said: Any) -> str | None:
    """`said`, where it is some provider's word for an answer that lacks its end.

    For frameworks that hand the provider's word on without saying which provider it was.
    """
    return said if isinstance(said, str) and said.lower() in _CUT_OFF else None


def is_object(text: str) -> bool:
    """Whether `text` is one whole JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
