"""Errors of requests, as people and programs see them."""

from __future__ import annotations

from collections.abc import Mapping

from agent_adapter.store.approvals import Refusal


class Problem(Exception):
    """A refused request: an HTTP status, a stable kind, and a message with the fix.

    `fields` are the messages about single fields of a form.
    """

    def __init__(
        self, status: int, kind: str, message: str, fields: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, kind, message)
        self.fields = dict(fields or {})
        self.status = status
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        """The message."""
        return self.message


def refused(refusal: Refusal) -> Problem:
    """The problem for a refused decision: 404 without a record, 409 for a stale one, else 403."""
    message = f"{refusal.reason}; nothing was changed"
    if refusal.stale or refusal.state not in ("pending", ""):
        return Problem(409, "stale", message)
    if refusal.state == "":
        return Problem(404, "not-found", message)
    return Problem(403, "refused", message)
