"""The surroundings of a call: a run scope, or the call whose tool makes it."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import AgentAdapterError, ApprovalPending, ToolInDoubt, ToolInFlight
from agent_adapter.core.ports import PreparedCall
from agent_adapter.core.types import RunLimits
from agent_adapter.store.base import Operation, Store
from agent_adapter.store.keys import conversation_key, run_key, run_scope_of


class PlacedCall(Protocol):
    """The parts of a new call that a run scope fills in."""

    ctx: ToolContext
    scope: RunScope | None
    limits: RunLimits | None


class Surroundings(Protocol):
    """The possible surroundings of a new call."""

    def run_scope(self) -> RunScope | None:
        """The innermost run scope, also from inside a tool that runs in it."""

    def place(self, call: Any) -> None:
        """Set the run of a new call, and what it inherits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScope:
    """Calls inside it without a run of their own belong to `run_id`.

    With `overrides` all calls do, whatever run they bring; native ids then go to `ctx.extras`.
    `said` are the messages of the user that it answers; with `overrides` a framework's own do not
    count. `extras` are added to each context, `guards` are hooks (`after(call, result)`) that every
    result passes, `blocked` collects the `ApprovalPending` and `ToolInDoubt` errors of the calls.
    `replayed` is called for each call that gets a recorded outcome: call, `call_key` and value.
    `fence(store)` is awaited before an intent is written: it raises if the caller may not write any
    more, or returns the check that the intent's transaction in `store` repeats.
    """

    run_id: str
    thread_id: str | None = None
    principal: str | None = None
    tenant: str = ""
    limits: RunLimits | None = None
    attempt: int = 1
    said: tuple[str, ...] = ()
    overrides: bool = False
    extras: Mapping[str, Any] = field(default_factory=dict)
    guards: tuple[Any, ...] = ()
    blocked: list[AgentAdapterError] = field(default_factory=list)
    replayed: Callable[[PreparedCall, str, Any], None] | None = None
    fence: Callable[[Store], Awaitable[Operation[str | None] | None]] | None = None

    def run_scope(self) -> RunScope:
        """This scope."""
        return self

    def conversation(self) -> str:
        """The key of the scope's conversation: its thread, or else its run."""
        if self.thread_id is not None:
            return conversation_key(self.tenant, self.thread_id)
        return run_scope_of(run_key(self.tenant, self.run_id))

    def place(self, call: PlacedCall) -> None:
        """Set this run for the call, unless it has one of its own."""
        ctx = call.ctx
        call.scope = self
        if ctx.run_id is not None and self.overrides:
            native = {"native_run_id": ctx.run_id, "native_thread_id": ctx.thread_id}
            ctx.extras.update(native)
            ctx.run_id = ctx.thread_id = None
            ctx.forget_identity()
        found = ctx.found_identity
        if found is not None and found.run is None:
            ctx.identity = replace(
                found,
                run=self.run_id,
                conversation=found.conversation or self.thread_id,
                attempt=max(found.attempt, self.attempt),
            )
        if ctx.run_id is None:
            ctx.run_id = self.run_id
            ctx.attempt = max(ctx.attempt, self.attempt)
        if self.overrides:
            ctx.said = None  # a framework inside shows its agent what others said as the user's
        ctx.extras.update(self.extras)
        ctx.thread_id = ctx.thread_id or self.thread_id
        ctx.principal = ctx.principal or self.principal
        ctx.tenant = ctx.tenant or self.tenant
        call.limits = self.limits or call.limits


current_scope: ContextVar[Surroundings | None] = ContextVar("agent_adapter_scope", default=None)
"""The innermost surroundings; tasks and worker threads started inside inherit them."""


def current_run_scope() -> RunScope | None:
    """The innermost run scope."""
    around = current_scope.get()
    return around.run_scope() if around is not None else None


def inside_a_tool() -> bool:
    """Whether a tool of an executor is running here, and not merely a run scope around it."""
    around = current_scope.get()
    return around is not None and not isinstance(around, RunScope)


WAITS = (ApprovalPending, ToolInFlight, ToolInDoubt)
"""Errors of a call that waits for a person or for another call: its caller may continue later."""


def notice(error: BaseException) -> None:
    """Tell the run scope around that a call waits for a person."""
    if isinstance(error, (ApprovalPending, ToolInDoubt)):
        scope = current_run_scope()
        if scope is not None:
            scope.blocked.append(error)


def sub_run_id(call_key: str) -> str:
    """The run that a tool's own calls belong to: the same again when its call runs again."""
    return "run_" + hashlib.sha256(call_key.encode()).hexdigest()[:32]
