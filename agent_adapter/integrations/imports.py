"""Foreign tools that take one dictionary of arguments, as specs."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from agent_adapter.core.content import Json, Media, Text
from agent_adapter.core.errors import ToolFailed
from agent_adapter.core.names import fitting_name
from agent_adapter.core.result_parts import holds_content
from agent_adapter.core.results import plain_result
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.blocks import value_of_blocks


def imported(
    native_name: str,
    description: str | None,
    schema: Mapping[str, Any],
    run: Callable[[Any], Any],
    *,
    shown: tuple[type[Exception], ...] = (),
    name: str | None = None,
    **policy: Any,
) -> ToolSpec:
    """A spec whose calls give their checked arguments to `run`, as one dictionary.

    Untrusted and egress unless `policy` says otherwise. The text of `shown` was written for a model
    by the tool's author; what else `run` raises is the executor's to hide. A sync `run` goes to a
    worker thread.
    """
    call = run if inspect.iscoroutinefunction(run) else getattr(run, "__call__", run)  # noqa: B004

    async def asynchronous(**arguments: Any) -> Any:
        try:
            return value_of_blocks(jsonable(await run(arguments)))
        except shown as exc:  # no promise that nothing happened
            raise ToolFailed(str(exc)) from exc

    def synchronous(**arguments: Any) -> Any:
        try:
            return value_of_blocks(jsonable(run(arguments)))
        except shown as exc:
            raise ToolFailed(str(exc)) from exc

    fn = asynchronous if inspect.iscoroutinefunction(call) else synchronous
    text = description.strip() if description else ""
    chosen = name if name is not None else fitting_name(native_name)
    text = text or f"The tool {native_name}."
    return ToolSpec.from_json_schema(chosen, text, schema, fn, **policy)


def jsonable(value: Any) -> Any:
    """A foreign result as JSON values and parts: its models dumped, its iterators read."""
    if isinstance(value, (Text, Json, Media)) or (type(value) is bytes and holds_content(value)):
        return value
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, (list, tuple, set, frozenset)) or inspect.isgenerator(value):
        return [jsonable(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return json.loads(plain_result(value))
