"""What is wrong with a request, as the person or program that sent it is told."""

from __future__ import annotations

from agent_adapter.store.approvals import Refusal

__all__ = ["Problem", "refused"]


class Problem(Exception):
    """A request that is not done: an HTTP status, a stable kind, and what to do about it."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(status, kind, message)
        self.status = status
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        """The message alone."""
        return self.message


def refused(refusal: Refusal, *, open_states: tuple[str, ...] = ("pending", "")) -> Problem:
    """The store's refusal as a problem: 404 for nothing there, 409 for come too late."""
    message = f"{refusal.reason}; nothing was changed"
    if refusal.stale or refusal.state not in open_states:
        return Problem(409, "stale", message)
    if refusal.state == "":
        return Problem(404, "not-found", message)
    return Problem(403, "refused", message)
