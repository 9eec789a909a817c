"""`TerminalApproval`: the person at the terminal decides."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable

from agent_adapter.core.types import ApprovalDecision, ApprovalRequest
from agent_adapter.exec.approval.presented import present
from agent_adapter.exec.approval.request import stamped
from agent_adapter.exec.threads import reviewers


class TerminalApproval:
    """Shows each call whole on the terminal and takes `yes` or `no`.

    Without a terminal on standard input every call is denied. Anything but `y` or `yes` denies.
    `ask` and `show` stand in for the terminal in tests and in programs with a screen of their own.
    """

    def __init__(
        self,
        *,
        reviewer: str | None = None,
        ask: Callable[[str], str] | None = None,
        show: Callable[[str], None] | None = None,
    ) -> None:
        self._reviewer = reviewer
        self._ask = ask
        self._show = show

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        """The decision of the person at the terminal."""
        if self._ask is None and not sys.stdin.isatty():
            return ApprovalDecision.unanswered("there is no terminal to ask at")
        answer = await reviewers.run(lambda: self._put(request))
        reviewer = self._reviewer or getpass.getuser()
        if answer.strip().lower() in ("y", "yes"):
            return stamped(ApprovalDecision.approve(reviewer=reviewer), request)
        return ApprovalDecision.deny(reviewer=reviewer, reason="denied at the terminal")

    def _put(self, request: ApprovalRequest) -> str:
        show = self._show or _print
        show("\n".join(present(request).lines()))
        return (self._ask or input)("Run it? [y/N] ")


def _print(text: str) -> None:
    print(text, file=sys.stderr)
