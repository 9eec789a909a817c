"""`QuorumApproval`: several different people must agree."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence

from agent_adapter.core.errors import ToolDefinitionError
from agent_adapter.core.logins import bare
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest
from agent_adapter.exec.approval.ports.callback import CallbackApproval, Reviewer
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.exec.approval.request import stamped
from agent_adapter.store.approvals import DECIDE_WITHIN, USE_WITHIN
from agent_adapter.store.base import Store


class QuorumApproval(DeferredApproval):
    """`n` different people must approve, none of them the one the run acts for; any denial denies.

    With a `store` the question waits there and people vote in any process; with `reviewers` they
    are asked at once and must name themselves in their decisions. A run without a known principal,
    and an empty list of reviewers, are denied. An edit voids the votes given before it.
    """

    def __init__(
        self,
        n: int,
        store: Store | None = None,
        wait: float = 0,
        *,
        reviewers: Sequence[Reviewer] | None = None,
        decide_within: float = DECIDE_WITHIN,
        use_within: float = USE_WITHIN,
    ) -> None:
        if type(n) is not int or n < 1:
            raise ToolDefinitionError(f"QuorumApproval(n): n is a whole number from 1, not {n!r}")
        if (store is None) == (reviewers is None):
            raise ToolDefinitionError("QuorumApproval takes a store or reviewers, one of them")
        self._n = n
        self._reviewers = None if reviewers is None else [CallbackApproval(r) for r in reviewers]
        if store is not None:
            super().__init__(store, wait, decide_within=decide_within, use_within=use_within)
            self._terms = dataclasses.replace(self._terms, votes=n, by_others=True)

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        """Approved when `n` reviewers agree on the same arguments."""
        if request.requester is None and request.principal is None:
            return ApprovalDecision.unanswered(
                "a quorum needs to know whose run this is, and nobody is named"
            )
        if self._reviewers is None:
            return await super().request(request)
        answers = await asyncio.gather(*(port.request(request) for port in self._reviewers))
        return stamped(self._counted(answers, request), request)

    def _counted(
        self, answers: Sequence[ApprovalDecision], request: ApprovalRequest
    ) -> ApprovalDecision:
        for answer in answers:
            if not answer.approved:
                denied = ApprovalDecision.deny(reviewer=answer.reviewer, reason=answer.reason)
                return dataclasses.replace(denied, lapsed=answer.lapsed)
        if any(answer.arguments is not None for answer in answers):
            return ApprovalDecision.deny(
                reason="an edit voids the votes on the call as it was asked"
            )
        asked_by = {bare(request.principal), bare(request.requester)}
        people = {bare(answer.reviewer): answer.reviewer or "" for answer in answers}
        names = [name.strip() for who, name in people.items() if who and who not in asked_by]
        if len(names) < self._n:
            return ApprovalDecision.deny(reason=f"{len(names)} of {self._n} reviewers approved")
        return ApprovalDecision.approve(reviewer=", ".join(sorted(names)))
