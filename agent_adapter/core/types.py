"""Values that several layers share: decisions, requests, limits and policies."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from agent_adapter.core.errors import ToolDefinitionError

Effects = Literal["read", "idempotent", "write"]
"""The effect of repeating a call: none, none with the same key, or the effect again."""

Trust = Literal["trusted", "untrusted"]
"""Whether a tool's result may contain instructions of third parties."""

Verdict = Literal["approved", "denied", "answered", "pending"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecision:
    """A reviewer's decision on one call; made by `approve`, `deny`, `respond` or `pending`.

    `arguments` are the reviewer's edits; `None` is none. `answer` is a person's result in place of
    a run, where the verdict is `answered`. `record_id` and
    `expires_at` (seconds since the epoch) belong to decisions kept in a store, as does `signature`,
    the reviewer's own where they gave one. `stamp` is set by
    this library's ports and ties the decision to the one call they were asked about. `lapsed` says
    why a denied question got no answer: its time passed, it was taken back, or nobody could be
    asked. Such a denial does not stick: the call may be asked about again in its run.
    """

    verdict: Verdict
    reviewer: str | None = None
    reason: str | None = None
    arguments: Mapping[str, Any] | None = None
    decided_at: float | None = None
    record_id: str | None = None
    expires_at: float | None = None
    signature: str | None = field(default=None, repr=False)
    lapsed: Literal["expired", "withdrawn", "unanswered"] | None = None
    answer: Any = None
    stamp: object | None = field(default=None, repr=False, compare=False)

    @classmethod
    def approve(
        cls,
        *,
        reviewer: str | None = None,
        reason: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        record_id: str | None = None,
    ) -> ApprovalDecision:
        """The call may run, with `arguments` in place of its own when given."""
        return cls(
            verdict="approved",
            reviewer=reviewer,
            reason=reason,
            arguments=arguments,
            decided_at=time.time(),
            record_id=record_id,
        )

    @classmethod
    def deny(
        cls,
        *,
        reviewer: str | None = None,
        reason: str | None = None,
        record_id: str | None = None,
    ) -> ApprovalDecision:
        """The call may not run; `reason` is shown to the model."""
        return cls(
            verdict="denied",
            reviewer=reviewer,
            reason=reason,
            decided_at=time.time(),
            record_id=record_id,
        )

    @classmethod
    def respond(
        cls,
        answer: Any,
        *,
        reviewer: str | None = None,
        reason: str | None = None,
        record_id: str | None = None,
    ) -> ApprovalDecision:
        """The call is not run: `answer`, a JSON value, is its result."""
        return cls(
            verdict="answered",
            answer=answer,
            reviewer=reviewer,
            reason=reason,
            decided_at=time.time(),
            record_id=record_id,
        )

    @classmethod
    def unanswered(cls, reason: str) -> ApprovalDecision:
        """The call may not run, since nobody could be asked or has answered in time."""
        return cls(verdict="denied", reason=reason, decided_at=time.time(), lapsed="unanswered")

    @classmethod
    def pending(cls, record_id: str, *, expires_at: float | None = None) -> ApprovalDecision:
        """No decision yet; the record waits in a store."""
        return cls(verdict="pending", record_id=record_id, expires_at=expires_at)

    @property
    def approved(self) -> bool:
        """Whether the call may run."""
        return self.verdict == "approved"

    @property
    def denied(self) -> bool:
        """Whether the call was refused."""
        return self.verdict == "denied"

    @property
    def answered(self) -> bool:
        """Whether a person gave the result in place of a run."""
        return self.verdict == "answered"

    @property
    def is_pending(self) -> bool:
        """Whether the decision is still open."""
        return self.verdict == "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A request for approval: exactly the call that runs if it is approved.

    `arguments` is a copy of the validated arguments as JSON values, whole; secrets are masked.
    `shown` is the same as text in which control, zero-width and bidirectional characters are
    visible. `reason` says why a person is asked; `earlier` lists writes of the run that a repeat or
    a diverging attempt would add to, `accepted` their keys, `doubts` the keys of the unclear ones.
    `binding` is the digest that ties the answer to this call; `n`
    counts the calls of this tool with these arguments in the run. `payload` is the bound arguments
    as JSON. `conversation`, `asker` and `place` are the keys of the dialogue, of the caller and
    of the call's position; `run_is_known` is false if no rule can be kept for its run.
    `root_run_id` and `limits` apply to the call when it is resumed. `schema` is the tool's, by
    which edits are checked; `secrets` are the arguments that are secret whole. `policy_fingerprint`
    is the tool's, to which rules of a policy are bound; `irreversible` is what the tool says of it.
    """

    tool: str
    description: str
    arguments: dict[str, Any]
    shown: str
    call_id: str
    run_id: str
    thread_id: str | None
    call_key: str
    binding: str
    fingerprint: str
    digest: str
    reason: str
    effects: Effects = "write"
    principal: str | None = None
    requester: str | None = None
    tenant: str = ""
    attempt: int = 1
    n: int = 1
    tags: tuple[str, ...] = ()
    taint: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    edits_allowed: bool = True
    payload: bytes = field(default=b"", repr=False)
    conversation: str | None = None
    asker: str = ""
    place: str | None = None
    run_is_known: bool = True
    root_run_id: str = ""
    limits: RunLimits | None = None
    schema: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = ()
    policy_fingerprint: str = ""
    irreversible: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Permission of a gate to run one prepared call.

    `token` goes into `ctx.approval` of exactly that call. `needed` is whether approval was
    required, `decision` the decision. `drop` calls `forget` with the token.
    """

    needed: bool
    token: object | None = None
    decision: ApprovalDecision | None = None
    forget: Callable[[object], None] | None = field(default=None, repr=False)

    @property
    def record_id(self) -> str | None:
        """The approval record of the decision, if it is kept in a store."""
        return self.decision.record_id if self.decision is not None else None

    def drop(self) -> None:
        """Forget a token that the call did not take; harmless otherwise."""
        if self.forget is not None:
            self.forget(self.token)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """The limits of one run over all processes that work on it; `None` is no limit.

    `max_cost` is in the unit of the tools' `cost`, `max_seconds` counts from the run's first call
    and leaves out what a person took to answer, `max_depth` is how deep runs started by tools may
    nest (a top run has depth 1).
    """

    max_calls: int | None = None
    max_calls_per_tool: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None
    max_parallel: int | None = None
    max_depth: int | None = None

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is None:
                continue
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or value < 0:
                raise ToolDefinitionError(
                    f"RunLimits.{name} must be a finite number that is not negative, not {value!r}"
                )
        if self.max_parallel == 0:
            raise ToolDefinitionError("RunLimits.max_parallel=0 refuses every call; 1 is the least")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a read or idempotent tool is tried: `attempts` in all, with jittered waits.

    Waits are in seconds and grow from `wait_initial` up to `wait_max`. `on` are the exceptions that
    are tried again; an error that the model may read is never one of them.
    """

    attempts: int = 3
    wait_initial: float = 0.1
    wait_max: float = 5.0
    on: tuple[type[Exception], ...] = (Exception,)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePolicy:
    """How long (`ttl` seconds) and for whom a read tool's result is reused."""

    ttl: float = 300.0
    scope: Literal["run", "thread", "global"] = "run"


def checked_cost(value: Any, where: str) -> float:
    """`value` as a cost: finite and not negative, else `ToolDefinitionError` naming `where`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise ToolDefinitionError(f"{where}: a cost is a number, not {value!r}")
    if not math.isfinite(value) or value < 0:
        raise ToolDefinitionError(f"{where}: a cost is finite and not negative, not {value!r}")
    return float(value)
