"""An approval port whose answer is known beforehand."""

from __future__ import annotations

from collections.abc import Callable

from agent_adapter.core.types import ApprovalDecision, ApprovalRequest

Answer = ApprovalDecision | Callable[[ApprovalRequest], ApprovalDecision] | None


class FakeApproval:
    """Answers every request with one decision, or with what a function makes of the request.

    `requests` keeps what was asked, in order. Without an answer, being asked is an error, which a
    runner must take for a refusal.
    """

    def __init__(self, answer: Answer = None) -> None:
        self.answer = answer
        self.requests: list[ApprovalRequest] = []

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        """The decision set beforehand."""
        self.requests.append(request)
        if self.answer is None:
            raise AssertionError("this port was not expected to be asked")
        if isinstance(self.answer, ApprovalDecision):
            return self.answer
        return self.answer(request)
