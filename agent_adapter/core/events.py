"""What an executor reports to whoever watches it."""

from __future__ import annotations

import time
from typing import Any

__all__ = [
    "ApprovalDecided",
    "ApprovalRequested",
    "CallEvent",
    "CallFinished",
    "CallInDoubt",
    "CallReplayed",
    "CallStarted",
    "LateOutcome",
    "ToolEmitted",
]


class CallEvent:
    """Something that happened to one call; `at` is in seconds since the epoch.

    Plain slotted objects, since a bare call makes two: they are not to be changed, and are equal
    only to themselves.
    """

    __slots__ = ("at", "call_id", "call_key", "run_id", "tool")

    def __init__(
        self,
        tool: str,
        call_id: str | None,
        run_id: str | None,
        call_key: str | None,
        *,
        at: float | None = None,
    ) -> None:
        self.tool = tool
        self.call_id = call_id
        self.run_id = run_id
        self.call_key = call_key
        self.at = time.time() if at is None else at

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in _fields(type(self)))
        return f"{type(self).__name__}({fields})"


class CallStarted(CallEvent):
    """The function of a call is about to be entered."""

    __slots__ = ()


class CallFinished(CallEvent):
    """A call ended as `ending` after `seconds`; `error_kind` is the kind of its error, if any."""

    __slots__ = ("ending", "error_kind", "seconds")

    def __init__(
        self,
        tool: str,
        call_id: str | None,
        run_id: str | None,
        call_key: str | None,
        ending: str,
        seconds: float,
        error_kind: str | None = None,
        *,
        at: float | None = None,
    ) -> None:
        super().__init__(tool, call_id, run_id, call_key, at=at)
        self.ending = ending
        self.seconds = seconds
        self.error_kind = error_kind


class CallReplayed(CallEvent):
    """A recorded outcome was handed out; nothing ran."""

    __slots__ = ()


class CallInDoubt(CallEvent):
    """A write may or may not have happened; `reason` says why."""

    __slots__ = ("reason",)

    def __init__(
        self,
        tool: str,
        call_id: str | None,
        run_id: str | None,
        call_key: str | None,
        reason: str,
        *,
        at: float | None = None,
    ) -> None:
        super().__init__(tool, call_id, run_id, call_key, at=at)
        self.reason = reason


class ApprovalRequested(CallEvent):
    """A person is asked; `record_id` is set where the question is kept in a store."""

    __slots__ = ("reason", "record_id")

    def __init__(
        self,
        tool: str,
        call_id: str | None,
        run_id: str | None,
        call_key: str | None,
        reason: str,
        record_id: str | None = None,
        *,
        at: float | None = None,
    ) -> None:
        super().__init__(tool, call_id, run_id, call_key, at=at)
        self.reason = reason
        self.record_id = record_id


class ApprovalDecided(CallEvent):
    """A question was answered with `verdict` by `reviewer`."""

    __slots__ = ("record_id", "reviewer", "verdict")

    def __init__(
        self,
        tool: str,
        call_id: str | None,
        run_id: str | None,
        call_key: str | None,
        verdict: str,
        reviewer: str | None = None,
        record_id: str | None = None,
        *,
        at: float | None = None,
    ) -> None:
        super().__init__(tool, call_id, run_id, call_key, at=at)
        self.verdict = verdict
        self.reviewer = reviewer
        self.record_id = record_id


class LateOutcome(CallEvent):
    """A function that had timed out ended after all, as `ending`: evidence, not an outcome."""

    __slots__ = ("ending",)

    def __init__(
        self,
        tool: str,
        call_id: str | None,
        run_id: str | None,
        call_key: str | None,
        ending: str,
        *,
        at: float | None = None,
    ) -> None:
        super().__init__(tool, call_id, run_id, call_key, at=at)
        self.ending = ending


class ToolEmitted(CallEvent):
    """A tool handed `event` to `ToolContext.emit`."""

    __slots__ = ("event",)

    def __init__(
        self,
        tool: str,
        call_id: str | None,
        run_id: str | None,
        call_key: str | None,
        event: Any,
        *,
        at: float | None = None,
    ) -> None:
        super().__init__(tool, call_id, run_id, call_key, at=at)
        self.event = event


def _fields(kind: type) -> list[str]:
    own = [name for layer in kind.__mro__[:-2] for name in layer.__dict__.get("__slots__", ())]
    return ["tool", "call_id", "run_id", "call_key", *own, "at"]
