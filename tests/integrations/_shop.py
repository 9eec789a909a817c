"""A shop whose tools keep what they ran as, for the approval tests of the integrations."""

from __future__ import annotations

from typing import Any

import agent_adapter as aa
from agent_adapter.core.ports import ApprovalPort

from ..fakes.approval import FakeApproval

YES = aa.ApprovalDecision.approve(reviewer="ann")
NO = aa.ApprovalDecision.deny(reviewer="ann", reason="not today")


class Shop:
    """`refund(order, amount)` asks as `confirm` says; `look_up(order)` never does.

    `ran` holds `(tool, arguments)` of every run and `contexts` the contexts; `executor` runs both,
    with `approval` as its own port.
    """

    def __init__(
        self, *, approval: ApprovalPort | None = None, confirm: Any = True, store: Any = None
    ) -> None:
        self.ran: list[tuple[str, dict[str, Any]]] = []
        self.contexts: list[aa.ToolContext] = []
        self.registry = aa.ToolRegistry()

        @self.registry.tool(confirm=confirm)
        async def refund(order: str, amount: int, ctx: aa.ToolContext) -> str:
            """Gives money back."""
            self.ran.append(("refund", {"order": order, "amount": amount}))
            self.contexts.append(ctx)
            return f"{amount} for {order}"

        @self.registry.tool(effects="read")
        async def look_up(order: str, ctx: aa.ToolContext) -> dict[str, str]:
            """Tells about an order."""
            self.ran.append(("look_up", {"order": order}))
            self.contexts.append(ctx)
            return {"order": order}

        self.store = store or aa.open_store("memory://")
        self.executor = aa.Executor(self.registry, approval=approval, store=self.store)

    @property
    def refunds(self) -> list[dict[str, Any]]:
        """The arguments of every refund that was made."""
        return [arguments for tool, arguments in self.ran if tool == "refund"]


def asking(answer: Any = YES) -> FakeApproval:
    """A port that gives `answer` and keeps what it was asked."""
    return FakeApproval(answer)
