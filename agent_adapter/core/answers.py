"""The text that a model reads about the end of a call, the same in every integration.

| ending | what it says |
|---|---|
| approved with edits | the arguments that ran, and that a person changed them; then the result |
| denied, expired, withdrawn | which of the three, the reviewer's reason, not to ask again |
| pending | that a person is asked, and that nothing has run |
| in doubt | that it may have happened, and not to repeat it |
| withheld by a guard | that the call ran and its result is withheld |
| cut off | that it was not run, and to send the whole call again |
| recorded | only the recorded result |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent_adapter.core.content import Text
from agent_adapter.core.errors import (
    MODEL_VISIBLE_ERRORS,
    AgentAdapterError,
    ApprovalDenied,
    ApprovalPending,
    ToolFailed,
    ToolInDoubt,
    ToolNotFound,
)
from agent_adapter.core.result_parts import holds_content
from agent_adapter.core.results import plain_result
from agent_adapter.core.routing import Finish, Handoff

_READABLE = (*MODEL_VISIBLE_ERRORS, ApprovalPending, ToolNotFound)

_ADVICE: tuple[tuple[type[AgentAdapterError], str], ...] = (
    (ApprovalDenied, "it did not run; do not ask for it again in this run"),
    (ToolInDoubt, "it may have happened: do not repeat it"),
)
"""What a model must know about an error besides its message."""

_CHANGED = "a person changed the arguments of this call"


def told(value: Any, edited: Mapping[str, Any] | None) -> Any:
    """The value, with the arguments that a person changed, if any (`ctx.edited`).

    JSON becomes `{"note", "arguments", "result"}`; parts get one more part in front. A value that
    routes a turn is unchanged.
    """
    if edited is None or isinstance(value, (Handoff, Finish)):
        return value
    if holds_content(value):
        note = Text(f"{_CHANGED}; it ran with {_json(edited)}")
        return [note, *(value if isinstance(value, (list, tuple)) else (value,))]
    note_of = f"{_CHANGED}; it ran with these"
    return {"note": note_of, "arguments": dict(edited), "result": json.loads(plain_result(value))}


def model_visible_error(exc: BaseException) -> dict[str, Any]:
    """`{"error": {"kind", "message"}}` for a model; a foreign exception shows only its class."""
    if isinstance(exc, AgentAdapterError):
        return {"error": {"kind": exc.kind, "message": _message(exc)}}
    return {"error": {"kind": ToolFailed.kind, "message": type(exc).__name__}}


def answer_data(value: Any = None, error: BaseException | None = None) -> Any:
    """The value as JSON values, or `{"error": {"kind", "message"}}`.

    The message of an error that is for the program, or of foreign code, is its class name alone:
    its text may hold what a model must not see.
    """
    if error is None:
        return json.loads(plain_result(value))
    if isinstance(error, _READABLE):
        return model_visible_error(error)
    kind = error.kind if isinstance(error, AgentAdapterError) else ToolFailed.kind
    return {"error": {"kind": kind, "message": type(error).__name__}}


def answer_text(value: Any = None, error: BaseException | None = None) -> str:
    """`answer_data` as JSON text."""
    if error is None:
        return plain_result(value)
    return _json(answer_data(error=error))


def _message(error: AgentAdapterError) -> str:
    parts = [str(error)]
    parts += [advice for kind, advice in _ADVICE if isinstance(error, kind)]
    if error.edited is not None:
        parts.append(f"{_CHANGED}; it was made with {_json(error.edited)}")
    return "; ".join(parts)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
