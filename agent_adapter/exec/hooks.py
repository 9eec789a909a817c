"""Hooks and guards: the user's code around every call. A failure or a time-out blocks the call."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import GuardrailBlocked
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.call import Call
from agent_adapter.exec.masking import unmasked
from agent_adapter.exec.threads import pool

HOOK_SECONDS = 10.0
"""How long one hook may take before it counts as hanging."""


class HookView:
    """What a hook sees of a call: the tool, its own copy of the arguments, the context."""

    __slots__ = ("arguments", "ctx", "spec")

    def __init__(self, spec: ToolSpec, arguments: dict[str, Any], ctx: ToolContext) -> None:
        self.spec = spec
        self.arguments = arguments
        self.ctx = ctx


async def before(call: Call, hooks: tuple[Any, ...]) -> None:
    """Run the hooks in order; arguments that one gives back are validated again."""
    for hook in hooks:
        changed = await _guarded(call, hook, HookView(call.spec, call.arguments, call.ctx))
        if changed is None:
            continue
        if not isinstance(changed, Mapping):
            raise GuardrailBlocked(f"a hook gave {type(changed).__name__} in place of arguments")
        call.rebind(call.spec.arguments.validate(call.spec.name, unmasked(call, changed)))


async def after(call: Call, hooks: tuple[Any, ...], value: Any) -> Any:
    """The value as the hooks, last first, hand it out."""
    for hook in reversed(hooks):
        value = await _guarded(call, hook, HookView(call.spec, call.arguments, call.ctx), value)
    return value


async def _guarded(call: Call, hook: Any, *given: Any) -> Any:
    try:
        async with asyncio.timeout(HOOK_SECONDS):
            if inspect.iscoroutinefunction(hook):
                answer = await hook(*given)
            else:
                # In a worker thread: a sync hook that hangs must not block the event loop.
                answer = await pool.run(lambda: hook(*given))
                answer = await answer if inspect.isawaitable(answer) else answer
    except GuardrailBlocked:
        raise
    except TimeoutError:
        raise GuardrailBlocked(f"a guard of {call.spec.name} did not answer in time") from None
    except Exception as exc:
        name = type(exc).__name__
        raise GuardrailBlocked(f"a guard of {call.spec.name} failed ({name})") from exc
    return answer
