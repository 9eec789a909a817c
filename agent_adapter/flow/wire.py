"""Foreign JSON: objects read by models, and copies of JSON values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from agent_adapter.core.errors import AgentAdapterError, WorkflowGraphError
from agent_adapter.core.records import StrictModel

_DEEPEST = 100

_EXPECTED = {
    "dict_type": "an object",
    "model_type": "an object",
    "list_type": "a list",
    "string_type": "text",
}


M = TypeVar("M", bound=StrictModel)


def read_graph_object(model: type[M], data: Any, whole: str, hint: str = "") -> M:
    """`data` as `model`; `WorkflowGraphError` names each wrong field and the known ones."""
    try:
        return model.model_validate(dict(data) if isinstance(data, Mapping) else data)
    except ValidationError as exc:
        known = f"its fields are {', '.join(model.model_fields)}"
        lines = [*wire_problems(exc, whole), known, *([hint] if hint else [])]
        raise WorkflowGraphError("; ".join(lines)) from None


def wire_problems(error: ValidationError, whole: str) -> list[str]:
    """One line for each problem of a foreign object, which `whole` names."""
    lines = []
    for item in error.errors(include_url=False):
        place = ".".join(map(str, item["loc"]))
        if item["type"] == "missing":
            lines.append(f"{whole} lacks {place}")
        elif item["type"] == "extra_forbidden":
            lines.append(f"{whole} has the unknown {place:.200}")
        elif item["type"] in _EXPECTED:
            expected, found = _EXPECTED[item["type"]], type(item["input"]).__name__
            lines.append(f"{place or whole} is {expected}, not {found}")
        else:
            lines.append(f"{place or whole}: {item['msg']:.300}")
    return lines


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
