"""Foreign tools that take one dictionary of arguments, as specs."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from agent_adapter.core.policy import fitting_name
from agent_adapter.core.tool import ToolSpec

__all__ = ["imported", "jsonable"]


def imported(
    name: str, description: str | None, schema: Mapping[str, Any], run: Callable[[Any], Any]
) -> ToolSpec:
    """A spec whose calls give their checked arguments to `run`, as one dictionary.

    Untrusted and sending data out, as every foreign tool. What `run` raises is the executor's to
    hide. A sync `run` goes to a worker thread.
    """
    call = run if inspect.iscoroutinefunction(run) else getattr(run, "__call__", run)  # noqa: B004

    async def asynchronous(**arguments: Any) -> Any:
        return jsonable(await run(arguments))

    def synchronous(**arguments: Any) -> Any:
        return jsonable(run(arguments))

    fn = asynchronous if inspect.iscoroutinefunction(call) else synchronous
    text = description.strip() if description else ""
    return ToolSpec.from_json_schema(fitting_name(name), text or f"The tool {name}.", schema, fn)


def jsonable(value: Any) -> Any:
    """A foreign result as JSON values: its models dumped, its iterators read."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, (list, tuple, set, frozenset)) or inspect.isgenerator(value):
        return [jsonable(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return json.loads(_plain(value))


def _plain(value: Any) -> str:
    from agent_adapter.core.results import plain_result

    return plain_result(value)
