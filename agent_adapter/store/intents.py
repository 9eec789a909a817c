"""The records between a call and the store.

Not frozen, since creating a frozen dataclass costs eight times as much and every call creates
three; they are not changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from agent_adapter.core.types import RunLimits
from agent_adapter.store.approvals import Refusal
from agent_adapter.store.base import Operation, Row

__all__ = ["Begun", "Found", "Intent", "Outcome", "Reserve"]

Found = Literal["recorded", "running", "in-flight", "in-doubt", "unknown", "again", "unfinished"]
"""What an identity's row says: ended; under way here; elsewhere; lost; unclear; to be run again."""


@dataclass(slots=True, kw_only=True)
class Intent:
    """One call about to begin; `arguments` is the JSON that the ledger keeps.

    `place` is the key of the position in the run where the model asked; `None` where calls are told
    apart by arrival. `conversation` is the key of the dialogue, `asker` of the caller;
    `run_name` is the run's own name where `run_id` is a key.
    `keyed` is whether the place is a key of the caller's, which names one call for good.
    `replayed` is whether the run has been taken back to before this place, so that its calls have
    other places than when they were first made.
    `repeats_failed` is whether an earlier call that failed is run again instead of being answered
    with its error.
    `workflow` is whether the tool may be entered again from its start; `going_on` is the unfinished
    call that a person agreed to enter again.
    `call_key` and `n` are set where the identity is already bound (an approved record, a call that
    has sub-runs). `accepted` are the keys of earlier writes that a person agreed to add to.
    `doubts` are those that were unclear then: one that has happened after all is the answer.
    `approval` are facts for the ledger: who approved, when, in which record. `fence` runs in the
    intent's transaction and returns why the caller may not write any more, `None` if it may.
    """

    run_id: str
    tool: str
    digest: str
    effects: str
    fingerprint: str
    arguments: bytes
    call_key: str | None = None
    n: int | None = None
    place: str | None = None
    conversation: str | None = None
    asker: str = ""
    run_name: str | None = None
    tenant: str = ""
    thread_id: str | None = None
    principal: str | None = None
    attempt: int = 1
    reexecutes: bool = False
    replayed: bool = False
    repeats_failed: bool = False
    workflow: bool = False
    going_on: str | None = None
    keyed: bool = False
    call_id: str | None = None
    parent_call_key: str | None = None
    root_run_id: str = ""
    cost: float = 0.0
    once_key: str | None = None
    accepted: frozenset[str] = frozenset()
    doubts: frozenset[str] = frozenset()
    approval: dict[str, Any] | None = None
    fence: Operation[str | None] | None = None

    @property
    def where(self) -> str:
        """What equal calls are counted in: the place, else the run."""
        return self.run_id if self.place is None else self.place


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """The limits that hold, and the run over which they are counted."""

    limits: RunLimits
    run_id: str


@dataclass(slots=True, kw_only=True)
class Begun:
    """What `begin_call` found or did.

    `state`: `started` (the intent is written), a `Found` about the earlier call in `row`,
    `repeats` (writes in `rows` are unclear), `diverges` (writes in `rows` were not issued again),
    `entry` counts how often the call was entered, this time included;
    `refused` (the approval could not be taken), `conflict` (the caller's key names another call),
    `limit`, `stopped` or `stale`; `reason` says more.
    """

    state: (
        Found
        | Literal[
            "started",
            "repeats",
            "diverges",
            "refused",
            "conflict",
            "limit",
            "stopped",
            "stale",
            "new",
        ]
    )
    call_key: str = ""
    n: int = 0
    entry: int = 1
    row: Row | None = None
    rows: tuple[Row, ...] = ()
    reason: str = ""
    refusal: Refusal | None = None


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How a call ended; `result` is the encoded value under `tag`.

    `reserved` is whether the call may hold a part of its run's limits.
    """

    call_key: str
    run_id: str
    ending: Literal["ok", "no-effect", "unknown", "aborted", "failed", "suspended"]
    tag: str = ""
    result: bytes | None = None
    error_kind: str | None = None
    error_text: str | None = None
    reserved: bool = True
    facts: dict[str, Any] = field(default_factory=dict)
