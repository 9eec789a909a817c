"""Step 1: a call of a run that has used up its limits goes no further."""

from __future__ import annotations

from agent_adapter.core.errors import RunLimitExceeded
from agent_adapter.exec.call import Call
from agent_adapter.exec.replay import limit_text
from agent_adapter.store import limits

__all__ = ["admit"]


async def admit(call: Call) -> None:
    """Raise `RunLimitExceeded` for a limit that is passed already; `begin_call` reserves later."""
    allowed = call.limits
    if allowed is None:
        return
    over: str | None = None
    if allowed.max_depth is not None and call.depth > allowed.max_depth:
        over = "max_depth"
    elif call.ctx.attempt == 1 and not call.ctx.reexecutes:
        root, tool = call.root_run_id, call.spec.name
        over = await call.executor.store.read(
            lambda tx: limits.exceeded(tx, root, tool, 0.0, allowed)
        )
    if over is not None:
        raise RunLimitExceeded(f"{call.spec.name}: {limit_text(call, over)}", limit=over)
