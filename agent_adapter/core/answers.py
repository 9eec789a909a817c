"""What a model reads of how a call ended, the same in every integration."""

from __future__ import annotations

import json
from typing import Any

from agent_adapter.core.errors import (
    MODEL_VISIBLE_ERRORS,
    AgentAdapterError,
    ApprovalPending,
    ToolFailed,
    ToolNotFound,
    model_visible_error,
)
from agent_adapter.core.results import plain_result

_READABLE = (*MODEL_VISIBLE_ERRORS, ApprovalPending, ToolNotFound)


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
    return json.dumps(answer_data(error=error), ensure_ascii=False)
