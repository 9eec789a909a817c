"""Hooks and guards: the user's code around every call. A failure or a time-out blocks the call."""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import Mapping
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import GuardrailBlocked
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.call import Call
from agent_adapter.exec.masking import unmasked
from agent_adapter.exec.threads import rules
from agent_adapter.exec.timing import within

HOOK_SECONDS = 10.0
"""The seconds after which a hook counts as hanging."""


class HookView:
    """A hook's view of a call: the tool, its own copy of the arguments, the context."""

    __slots__ = ("arguments", "ctx", "spec")

    def __init__(self, spec: ToolSpec, arguments: dict[str, Any], ctx: ToolContext) -> None:
        self.spec = spec
        self.arguments = arguments
        self.ctx = ctx


async def before(call: Call, hooks: tuple[Any, ...]) -> None:
    """Run the hooks in order; returned arguments are validated again."""
    for hook in hooks:
        changed = await _guarded(call, hook, HookView(call.spec, call.arguments, call.ctx))
        if changed is None:
            continue
        if not isinstance(changed, Mapping):
            raise GuardrailBlocked(f"a hook gave {type(changed).__name__} in place of arguments")
        call.rebind(call.spec.arguments.validate(call.spec.name, unmasked(call, changed)))


async def after(call: Call, hooks: tuple[Any, ...], value: Any) -> Any:
    """The value after the hooks, which run in reverse order."""
    for hook in reversed(hooks):
        value = await _guarded(call, hook, HookView(call.spec, call.arguments, call.ctx), value)
    return value


async def _guarded(call: Call, hook: Any, *given: Any) -> Any:
    context = contextvars.copy_context()
    try:
        answer = await within(HOOK_SECONDS, _answer(hook, *given), context=context)
    except GuardrailBlocked:
        raise
    except TimeoutError:
        raise GuardrailBlocked(f"a guard of {call.spec.name} did not answer in time") from None
    except Exception as exc:
        name = type(exc).__name__
        raise GuardrailBlocked(f"a guard of {call.spec.name} failed ({name})") from exc
    # Context variables that a hook sets are set for the tool too.
    for variable, value in context.items():
        if variable.get(None) is not value:
            variable.set(value)
    return answer


async def _answer(hook: Any, *given: Any) -> Any:
    if inspect.iscoroutinefunction(hook):
        return await hook(*given)
    # In a worker thread: a sync hook that hangs must not block the event loop.
    answer = await rules.run(lambda: hook(*given))
    return await answer if inspect.isawaitable(answer) else answer
