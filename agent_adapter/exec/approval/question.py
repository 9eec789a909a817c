"""One question to an approval port, which several equal calls may wait for."""

from __future__ import annotations

import asyncio

from agent_adapter.core.ports import ApprovalPort
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest


class Question:
    """A question that is being asked; its approval lets one call run, however many wait for it."""

    __slots__ = ("_used", "answer")

    def __init__(self, port: ApprovalPort, request: ApprovalRequest) -> None:
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Task[ApprovalDecision] = loop.create_task(_answer_of(port, request))
        self._used = False

    def use(self) -> bool:
        """Whether this is the first call to use the answer."""
        first, self._used = not self._used, True
        return first


async def _answer_of(port: ApprovalPort, request: ApprovalRequest) -> ApprovalDecision:
    """The port's decision; an exception and anything but a decision deny."""
    try:
        decision: object = await port.request(request)
    except Exception as exc:
        return ApprovalDecision.deny(reason=f"the approval port failed ({type(exc).__name__})")
    if not isinstance(decision, ApprovalDecision):
        kind = type(decision).__name__
        return ApprovalDecision.deny(reason=f"the approval port gave {kind}, not a decision")
    return decision
