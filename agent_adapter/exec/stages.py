"""Before a call: limits → validate → guard → attributes (cost, once key) → ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agent_adapter.core.errors import (
    RunLimitExceeded,
    RunUnknown,
    ToolArgsIncomplete,
    ToolDefinitionError,
)
from agent_adapter.core.types import RunLimits, checked_cost
from agent_adapter.exec import hooks
from agent_adapter.exec.approval.confirm import confirm_reason
from agent_adapter.exec.call import Call
from agent_adapter.exec.replay import limit_text
from agent_adapter.store import limits


async def prepare(
    call: Call, given: Mapping[str, Any], *, guard: bool = True, ask: bool = True
) -> None:
    """Bind `given` to the call; a new call, a gate's call, an edit and a resumed call all pass.

    A reviewer's edit does not `ask` again; a resumed call was asked about and was guarded before
    its record was written, so neither runs again.
    """
    if call.ctx.incomplete is not None:  # before anything is counted, looked up or asked
        raise ToolArgsIncomplete(call.spec.name, call.ctx.incomplete)
    # The order is a security property: what a guard changed is what is priced, shown and run.
    if ask and call.limits is not None:
        await _admit(call, call.limits)
    spec = call.spec
    if spec.json_text or spec.arguments.may_be_slow:
        values = await spec.validated(given)
    else:
        values = spec.arguments.validate(spec.name, given)
    if call.values is None:
        call.values = values
    else:
        call.rebind(values)
    # After validation: a guard sees the values that run; arguments that it replaces are validated.
    if guard and call.plan.before:
        await hooks.before(call, call.plan.before)
    if call.spec.cost is not None or call.spec.once_key is not None:
        call_attributes(call)
    # Last: the person sees the final arguments, and `confirm` judges these.
    if ask and call.spec.confirm is not False and call.decision is None:
        call.asked = await confirm_reason(call)


async def _admit(call: Call, allowed: RunLimits) -> None:
    """Raise `RunLimitExceeded` for a limit that is passed already; `begin_call` reserves later."""
    if not call.run_is_known:
        raise RunUnknown(
            f"{call.spec.name}: RunLimits are kept per run, and no run is known here; "
            "surround the call with `async with executor.run_scope(run_id):`"
        )
    over: str | None = None
    if allowed.max_depth is not None and call.depth > allowed.max_depth:
        over = "max_depth"
    elif call.ctx.attempt == 1 and not call.ctx.reexecutes and call.position_key is None:
        root, tool = call.root_run_id, call.spec.name
        over = await call.runtime.store.read(
            lambda tx: limits.exceeded(tx, root, tool, 0.0, allowed)
        )
    if over is not None:
        raise RunLimitExceeded(f"{call.spec.name}: {limit_text(call, over)}", limit=over)


def call_attributes(call: Call) -> None:
    """Set `call.cost` and `call.once_key` from copies of the arguments.

    Raises `ToolDefinitionError` unless the cost is a finite number from 0 and the key a text.
    """
    spec = call.spec
    if spec.cost is not None:
        value = _computed(call, "cost", spec.cost) if callable(spec.cost) else spec.cost
        call.cost = checked_cost(value, f"tool {spec.name!r}")
    if spec.once_key is not None:
        key = _computed(call, "once_key", spec.once_key)
        if type(key) is not str or key == "":
            raise ToolDefinitionError(f"tool {spec.name!r}: once_key gave {key!r}, not a text")
        call.once_key = key


def _computed(call: Call, field: str, rule: Callable[[Any], Any]) -> Any:
    try:
        return rule(call.arguments)
    except Exception as exc:
        name = type(exc).__name__
        raise ToolDefinitionError(
            f"tool {call.spec.name!r}: {field} raised {name} for these arguments"
        ) from exc
