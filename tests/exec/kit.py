"""The contract of a guard: what a hook's `after` gives, given to it again, stays as it is.

A result is kept as the guards of its making let it through, and passes the guards again whenever it
is handed out: from the cache, to a call that shared the execution, replayed or resumed. A guard
that adds a line each time would add another one each time. Call `check_guard` for your own hooks.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Iterable
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import GuardrailBlocked
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.hooks import HookView


def check_guard(
    hook: Any, spec: ToolSpec, results: Iterable[Any], arguments: dict[str, Any] | None = None
) -> None:
    """`AssertionError` for the first of `results` that the hook's `after` changes twice."""
    for result in results:
        once = _through(hook, spec, result, arguments)
        if once is _WITHHELD:
            continue
        twice = _through(hook, spec, copy.deepcopy(once), arguments)
        assert twice is not _WITHHELD, (
            f"{type(hook).__name__}.after lets {result!r} through as {once!r}, and withholds that"
        )
        assert twice == once, (
            f"{type(hook).__name__}.after is not idempotent: it makes {result!r} into {once!r},"
            f" and that into {twice!r}"
        )


def _through(hook: Any, spec: ToolSpec, result: Any, arguments: dict[str, Any] | None) -> Any:
    view = HookView(spec, dict(arguments or {}), ToolContext(call_id="c", run_id="r"))

    async def guarded() -> Any:
        given = hook.after(view, copy.deepcopy(result))
        return await given if inspect.isawaitable(given) else given

    try:
        return asyncio.run(guarded())
    except GuardrailBlocked:
        return _WITHHELD


_WITHHELD = object()
