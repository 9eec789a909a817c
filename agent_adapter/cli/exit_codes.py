"""The exit codes, and the errors that end in each."""

from __future__ import annotations

from agent_adapter.core.errors import AgentAdapterError, ApprovalPending, ToolInDoubt

OK = 0
"""Done."""

FAILED = 1
"""Failed or refused; stderr has the reason and the fix."""

USAGE = 2
"""Invalid command line."""

PENDING = 3
"""A person must decide first."""

DOUBT = 4
"""The outcome of a write is unknown, or the ledger does not verify."""

_CODES: tuple[tuple[type[AgentAdapterError], int], ...] = (
    (ApprovalPending, PENDING),
    (ToolInDoubt, DOUBT),
)


class CommandError(Exception):
    """A failed command: one line that names the thing, the reason and the fix."""

    def __init__(self, message: str, *, code: int = FAILED, kind: str = "refused") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.kind = kind


def code_of(exc: AgentAdapterError) -> int:
    """The exit code for an error of the library."""
    return next((code for error, code in _CODES if isinstance(exc, error)), FAILED)


def fix_of(exc: AgentAdapterError) -> str:
    """The command to type next, which an error raised in the library cannot know."""
    if isinstance(exc, ApprovalPending):
        return f"decide with `agent-adapter approvals show {exc.id}`, then `tools resume`"
    if isinstance(exc, ToolInDoubt):
        return "see `agent-adapter ledger in-doubt`"
    return ""
