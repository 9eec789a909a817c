"""One call of a server's tool while it is under way: whose it is, and whether it was sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.inert import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress:
    """How far a server's tool has come; emitted to the executor's subscribers."""

    server: str
    tool: str
    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(slots=True, eq=False)
class Flight:
    """A call that a connection makes.

    `handed` counts its messages that were given to the server: none of one that was refused a
    connection. Where the transport is not ours to watch, `watched` is false and the call counts as
    sent.
    """

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    ctx: ToolContext | None = None
    watched: bool = True
    handed: int = 0

    @property
    def sent(self) -> bool:
        """Whether the server may have received the call."""
        return self.handed > 0 or not self.watched

    @property
    def approved_write(self) -> bool:
        """Whether a person approved this very call, which may change something."""
        call = self.ctx.call_ref if self.ctx is not None else None
        if call is None or call.spec.effects == "read":
            return False
        return call.decision is not None or call.approval is not None

    def give_up(self) -> None:
        """Tell the executor that a call which was never sent had not begun.

        So one that was cancelled or timed out on its way to the server is in no doubt.
        """
        call = self.ctx.call_ref if self.ctx is not None else None
        if call is not None and not self.sent:
            call.entered = False

    def progress_of(self, server: str) -> Callable[..., Awaitable[None]]:
        """Emits the server's word of how far it has come."""

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            text = visible(message) if message is not None else None
            far = ToolProgress(
                server=server, tool=self.tool, progress=progress, total=total, message=text
            )
            if self.ctx is not None:
                self.ctx.emit(far)

        return heard


current: ContextVar[Flight | None] = ContextVar("agent_adapter_mcp_flight", default=None)
"""The call that is being made; messages sent on its behalf are sent in this context."""
