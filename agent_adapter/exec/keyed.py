"""`Executor.run(call_id=…)` with an explicit run: here alone an id of the caller's is a key."""

from __future__ import annotations

from dataclasses import replace

from agent_adapter.core.context import ToolContext
from agent_adapter.core.identity import Identity, Reentry
from agent_adapter.exec.scope import RunScope, current_scope

_KEY = "call_id"


def name_by_key(ctx: ToolContext, call_id: str) -> None:
    """Let `call_id` be the call's position, where its run is named by the context or a scope.

    Without a run nothing could be found again, and inside a tool calls are told apart by arrival:
    there the id stays what it is for a framework, a name that may repeat.
    """
    found = ctx.found_identity
    if found is not None and found.position is not None:
        return
    around = current_scope.get()
    named = ctx.run_id if found is None else found.run
    if named is None and not isinstance(around, RunScope):
        return
    if found is None:
        # Where a scope names the run it fills in run and conversation itself.
        found = Identity(run=named, conversation=ctx.thread_id, attempt=ctx.attempt)
    ctx.identity = replace(found, position=(_KEY, call_id), reentry=Reentry.RESUMED)


def is_keyed(ctx: ToolContext) -> bool:
    """Whether the call's position is a key of its caller's."""
    position = ctx.position
    return position is not None and len(position) == 2 and position[0] == _KEY
