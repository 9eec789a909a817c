"""What surrounds a call: the tool that started it, or a run scope."""

from __future__ import annotations

import hashlib
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_adapter.core.types import RunLimits

if TYPE_CHECKING:
    from agent_adapter.exec.call import Call

__all__ = ["AROUND", "RunScope", "sub_run_id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScope:
    """Calls inside it that bring no run of their own belong to `run_id`."""

    run_id: str
    thread_id: str | None = None
    principal: str | None = None
    tenant: str = ""
    limits: RunLimits | None = None
    attempt: int = 1


AROUND: ContextVar[Call | RunScope | None] = ContextVar("agent_adapter_around", default=None)
"""The innermost of both; tasks and worker threads started inside inherit it."""


def sub_run_id(call_key: str) -> str:
    """The run that a tool starts: the same again when its call is run again."""
    return "run_" + hashlib.sha256(call_key.encode()).hexdigest()[:32]
