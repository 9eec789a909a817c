"""Events that an executor reports to its subscribers."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any


# Not frozen: freezing doubles the cost of making one, and a bare call makes two.
@dataclass(slots=True, eq=False)
class CallEvent:
    """An event of one call; `at` is in seconds since the epoch.

    Subscribers must not change an event: all of them get the same object. Events are compared by
    identity.
    """

    tool: str
    call_id: str | None
    run_id: str | None
    call_key: str | None
    at: float = field(default_factory=time.time, kw_only=True)


@dataclass(slots=True, eq=False)
class CallStarted(CallEvent):
    """The function of a call is about to be entered."""


@dataclass(slots=True, eq=False)
class CallFinished(CallEvent):
    """A call ended as `ending` after `seconds`; `error_kind` is the kind of its error, if any."""

    ending: str
    seconds: float
    error_kind: str | None = None


@dataclass(slots=True, eq=False)
class CallReplayed(CallEvent):
    """The recorded outcome of an earlier call was returned; the function did not run."""


@dataclass(slots=True, eq=False)
class CallInDoubt(CallEvent):
    """A write may or may not have happened; `reason` says why."""

    reason: str


@dataclass(slots=True, eq=False)
class ApprovalRequested(CallEvent):
    """A person is asked; `record_id` is set if a store keeps the request."""

    reason: str
    record_id: str | None = None


@dataclass(slots=True, eq=False)
class ApprovalDecided(CallEvent):
    """`reviewer` decided a request with `verdict`."""

    verdict: str
    reviewer: str | None = None
    record_id: str | None = None


@dataclass(slots=True, eq=False)
class LateOutcome(CallEvent):
    """A function ended as `ending` after its call had timed out; the call's outcome stands."""

    ending: str


@dataclass(slots=True, eq=False)
class ToolEmitted(CallEvent):
    """A tool passed `event` to `ToolContext.emit`."""

    event: Any
