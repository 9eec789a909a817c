"""`ApprovalRecord`: a question to a person as it stands, made of its row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_adapter.exec.approval.presented import Presented, edited_of, present_rows
from agent_adapter.store import approvals
from agent_adapter.store.approvals import Seen
from agent_adapter.store.base import Row, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """One question to a person as it stands; times are seconds since the epoch.

    `arguments` is what was asked, whole, secrets masked; `edited` is what a reviewer put in its
    place. `shown` is what will run, the edit included, as text in which invisible characters are
    visible; `change` is the difference that the edit makes. `votes` are the reviewers who have
    approved what is shown, `taint` what the run has read by now. `digest` and `version` identify
    what a reviewer sees: a decision that carries them counts only while both are current. Records
    of one `alike` run the same. `signed` is true if only a signed decision counts. `irreversible`
    is what the tool says of itself. Until `released_at` the decision can be undone. `answer` is
    what a person gave in place of a run.
    """

    id: str
    state: str
    tool: str
    description: str
    arguments: dict[str, Any]
    shown: str
    edited: dict[str, Any] | None
    why: str
    run_id: str
    thread_id: str | None
    call_id: str
    call_key: str
    principal: str | None
    taint: tuple[str, ...]
    earlier: tuple[str, ...]
    edits_allowed: bool
    created_at: float
    decide_by: float
    decided_at: float | None
    use_by: float | None
    taken_at: float | None
    reviewer: str | None
    reason: str | None
    votes_needed: int
    digest: str = ""
    version: str = ""
    fingerprint: str = ""
    requester: str | None = None
    effects: str = "write"
    attempt: int = 1
    signed: bool = False
    conversation: str | None = None
    change: str | None = None
    alike: str = ""
    votes: tuple[str, ...] = ()
    sources: tuple[tuple[str, str, float], ...] = ()
    irreversible: bool = False
    released_at: float | None = None
    answer: Any = None

    @property
    def will_run(self) -> dict[str, Any]:
        """The arguments that will run: those that were asked, or a reviewer's edit."""
        return self.arguments if self.edited is None else self.edited

    @property
    def seen(self) -> Seen:
        """What a reviewer who looks at this record has seen."""
        return Seen(digest=self.digest, version=self.version)


def record_of(tx: Transaction, stored: Row) -> ApprovalRecord:
    """The record that a row of the table of approvals is, as it stands now."""
    (record,) = records_of(tx, [stored])
    return record


def records_of(tx: Transaction, stored: Sequence[Row]) -> list[ApprovalRecord]:
    """The records that these rows are, as they stand now."""
    rows = [approvals.as_of(tx, row) for row in stored]
    return [_record(*each) for each in zip(rows, present_rows(tx, rows), strict=True)]


def _record(row: Row, shown: Presented) -> ApprovalRecord:
    same = (
        "id state call_key created_at decide_by decided_at use_by taken_at reviewer reason"
        " votes_needed"
    )
    bound, situation = shown.bound, shown.situation
    told = "description why run_id thread_id call_id requester effects attempt earlier"
    return ApprovalRecord(
        **{name: row[name] for name in same.split()},
        **{name: getattr(situation, name) for name in told.split()},
        tool=bound.tool,
        principal=bound.principal,
        conversation=bound.conversation,
        fingerprint=bound.fingerprint,
        arguments=dict(shown.asked),
        shown=shown.shown,
        edited=edited_of(row),
        change=shown.change,
        taint=situation.labels,
        sources=situation.sources,
        votes=tuple(name for name, _, counts in situation.votes if counts),
        edits_allowed=situation.edits_allowed,
        digest=bound.digest,
        version=shown.digest,
        alike=bound.alike,
        signed=bool(json.loads(row["request"]).get("signed", False)),
        irreversible=situation.irreversible,
        released_at=row["released_at"],
        answer=None if row["answer"] is None else json.loads(row["answer"]),
    )
