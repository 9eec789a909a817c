"""`CallbackApproval`: a function of the program decides, while the call waits."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable

from agent_adapter.core.types import ApprovalDecision, ApprovalRequest
from agent_adapter.exec.approval.request import stamped
from agent_adapter.exec.threads import reviewers
from agent_adapter.exec.timing import within

Answer = ApprovalDecision | bool
Reviewer = Callable[[ApprovalRequest], Answer | Awaitable[Answer]]
"""Gets a copy of the request; answers with a decision or a plain bool, sync or async."""


class CallbackApproval:
    """Asks `reviewer` about every call, once.

    A sync reviewer runs in a worker thread. `timeout` is in seconds; `None` waits without limit. An
    exception, a time-out and any answer but `True` or an approving decision deny.
    """

    def __init__(self, reviewer: Reviewer, *, timeout: float | None = None) -> None:
        self._reviewer = reviewer
        self._timeout = timeout

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        """The reviewer's decision, tied to this call."""
        asking = self._answer(copy.deepcopy(request))
        try:
            answer = await (asking if self._timeout is None else within(self._timeout, asking))
        except TimeoutError:
            return ApprovalDecision.unanswered("the reviewer did not answer in time")
        except Exception as exc:
            return ApprovalDecision.unanswered(f"the reviewer failed ({type(exc).__name__})")
        if isinstance(answer, ApprovalDecision):
            return stamped(answer, request)
        if answer is True:
            return stamped(ApprovalDecision.approve(), request)
        if answer is False:
            return ApprovalDecision.deny()
        return ApprovalDecision.unanswered("the answer is no decision")

    async def _answer(self, request: ApprovalRequest) -> object:
        if inspect.iscoroutinefunction(self._reviewer):
            return await self._reviewer(request)
        answer = await reviewers.run(lambda: self._reviewer(request))
        return await answer if inspect.isawaitable(answer) else answer
