"""Protocols that two rooms share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from agent_adapter.core.context import ToolContext
    from agent_adapter.core.tool import ToolSpec
    from agent_adapter.core.types import ApprovalDecision, ApprovalRequest

__all__ = ["ApprovalPort", "Clock", "Hook", "HookCall", "NewId", "ToolRunner"]

Clock = Callable[[], float]
"""Seconds since the epoch."""

NewId = Callable[[str], str]
"""`new_id("run")` gives `run_…`, never the same twice."""


@runtime_checkable
class ToolRunner(Protocol):
    """Runs one call of one tool; the executor is one, so is the contract kit's fake."""

    async def run_spec(
        self,
        spec: ToolSpec,
        args: Mapping[str, Any],
        ctx: ToolContext | None = None,
        *,
        call_id: str | None = None,
    ) -> Any:
        """The tool's value, or an error of `agent_adapter.core.errors`."""
        ...


@runtime_checkable
class ApprovalPort(Protocol):
    """Whoever decides about a call that a person must see."""

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        """Approved, denied or pending; an exception counts as denied."""
        ...


class HookCall(Protocol):
    """What a hook sees of a call; `arguments` is its own copy."""

    spec: ToolSpec
    arguments: dict[str, Any]
    ctx: ToolContext


class Hook(Protocol):
    """Code around every call; each method may be left out, and may be sync or async.

    A hook that raises or hangs in `before` blocks the call; in `after` it withholds the result.
    `applies_to(spec) -> bool` is asked once per tool.
    """

    def before(self, call: HookCall) -> Mapping[str, Any] | None:
        """Arguments to run with instead (validated again), or `None` to leave them."""
        ...

    def after(self, call: HookCall, result: Any) -> Any:
        """The result to hand out, usually `result` itself."""
        ...
