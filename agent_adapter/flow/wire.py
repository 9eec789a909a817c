"""`json_copy`: copies JSON values and refuses anything else."""

from __future__ import annotations

import math
from typing import Any

from agent_adapter.core.errors import AgentAdapterError, WorkflowGraphError

_DEEPEST = 100


def json_copy(
    value: Any, where: str, error: type[AgentAdapterError] = WorkflowGraphError, depth: int = 0
) -> Any:
    """A copy of `value` as JSON, tuples as lists; raises `error`, naming `where`, for other values.

    Also refused are NaN, infinity, keys that are not strings and more than 100 levels of nesting.
    """
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if depth >= _DEEPEST:
        raise error(f"{where} is nested more than {_DEEPEST} levels deep")
    if isinstance(value, (list, tuple)):
        return [json_copy(item, where, error, depth + 1) for item in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise error(f"{where} has a key that is not text; JSON objects have text keys only")
        return {key: json_copy(item, where, error, depth + 1) for key, item in value.items()}
    raise error(f"{where} holds {value!r:.80}, which JSON cannot carry")
