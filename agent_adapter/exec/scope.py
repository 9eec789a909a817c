"""What surrounds a call: the tool that started it, or a run scope."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_adapter.core.errors import AgentAdapterError, ApprovalPending, ToolInDoubt
from agent_adapter.core.types import RunLimits

if TYPE_CHECKING:
    from agent_adapter.exec.call import Call

__all__ = ["RunScope", "current_scope", "notice", "scope_of", "sub_run_id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScope:
    """Calls inside it that bring no run of their own belong to `run_id`.

    With `overrides` all calls do, whatever run they bring; native ids then go to `ctx.extras`.
    `extras` are added to each context, `guards` are hooks (`after(call, result)`) that every result
    passes, `blocked` collects the `ApprovalPending` and `ToolInDoubt` that calls met, `replayed` is
    told of each call that was answered with a recorded outcome: call, `call_key` and value.
    """

    run_id: str
    thread_id: str | None = None
    principal: str | None = None
    tenant: str = ""
    limits: RunLimits | None = None
    attempt: int = 1
    overrides: bool = False
    extras: Mapping[str, Any] = field(default_factory=dict)
    guards: tuple[Any, ...] = ()
    blocked: list[AgentAdapterError] = field(default_factory=list)
    replayed: Callable[[Call, str, Any], None] | None = None


current_scope: ContextVar[Call | RunScope | None] = ContextVar("agent_adapter_around", default=None)
"""The innermost of both; tasks and worker threads started inside inherit it."""


def scope_of(around: Call | RunScope | None) -> RunScope | None:
    """The run scope around, also from inside a tool that runs in it."""
    return around if around is None or isinstance(around, RunScope) else around.scope


def notice(error: BaseException) -> None:
    """Tell the scope around that a call waits for a person."""
    if isinstance(error, (ApprovalPending, ToolInDoubt)):
        scope = scope_of(current_scope.get())
        if scope is not None:
            scope.blocked.append(error)


def sub_run_id(call_key: str) -> str:
    """The run that a tool starts: the same again when its call is run again."""
    return "run_" + hashlib.sha256(call_key.encode()).hexdigest()[:32]
