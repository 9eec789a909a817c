"""What a call costs and, where it is made once over all runs, under which key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_adapter.core.errors import ToolDefinitionError
from agent_adapter.core.types import checked_cost
from agent_adapter.exec.call import Call

__all__ = ["call_attributes"]


def call_attributes(call: Call) -> None:
    """Set `call.cost` and `call.once_key` from copies of the arguments.

    Raises `ToolDefinitionError` for a cost that is not a finite number from 0 and a key that is no
    text.
    """
    spec = call.spec
    if spec.cost is not None:
        value = _worked_out(call, "cost", spec.cost) if callable(spec.cost) else spec.cost
        call.cost = checked_cost(value, f"tool {spec.name!r}")
    if spec.once_key is not None:
        key = _worked_out(call, "once_key", spec.once_key)
        if type(key) is not str or key == "":
            raise ToolDefinitionError(f"tool {spec.name!r}: once_key gave {key!r}, not a text")
        call.once_key = key


def _worked_out(call: Call, field: str, rule: Callable[[Any], Any]) -> Any:
    try:
        return rule(call.arguments)
    except Exception as exc:
        name = type(exc).__name__
        raise ToolDefinitionError(
            f"tool {call.spec.name!r}: {field} raised {name} for these arguments"
        ) from exc
