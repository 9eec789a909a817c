"""The exit codes, and which error ends in which."""

from __future__ import annotations

from agent_adapter.core.errors import AgentAdapterError, ApprovalPending, ToolInDoubt

__all__ = ["DOUBT", "FAILED", "OK", "PENDING", "USAGE", "CommandError", "code_of", "fix_of"]

OK = 0
"""Done."""

FAILED = 1
"""Failed or refused; stderr says what, why and what to do."""

USAGE = 2
"""The command line itself is wrong."""

PENDING = 3
"""A person has to decide first."""

DOUBT = 4
"""A write is in doubt, or the ledger does not verify."""

_CODES: tuple[tuple[type[AgentAdapterError], int], ...] = (
    (ApprovalPending, PENDING),
    (ToolInDoubt, DOUBT),
)


class CommandError(Exception):
    """A command that cannot go on: one line that names the thing, the reason and the fix."""

    def __init__(self, message: str, *, code: int = FAILED, kind: str = "refused") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.kind = kind


def code_of(exc: AgentAdapterError) -> int:
    """The exit code that an error of the library ends in."""
    return next((code for error, code in _CODES if isinstance(exc, error)), FAILED)


def fix_of(exc: AgentAdapterError) -> str:
    """What to type next, where an error's own text cannot know that it is shown in a shell."""
    if isinstance(exc, ApprovalPending):
        return f"decide with `agent-adapter approvals show {exc.id}`, then `tools resume`"
    if isinstance(exc, ToolInDoubt):
        return "see `agent-adapter ledger in-doubt`"
    return ""
