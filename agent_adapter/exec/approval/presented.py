"""What a person is shown about a call, votes on and signs: one form, built here alone.

`bound` is what votes, signatures and the run compare. `situation` is the rest of what helps to
decide: it is shown and signed with each vote, and not compared, except that a label that was added
after a vote voids the vote.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic_core import from_json

from agent_adapter.core.canonical import digest
from agent_adapter.core.inert import one_line, short, text_of
from agent_adapter.core.types import ApprovalRequest
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.keys import run_scope_of

_AT_ONCE = 500
_CONTEXT_LINES = 3


@dataclass(frozen=True, kw_only=True)
class Bound:
    """What will run, and for whom; `record` is empty for a question that no store keeps.

    `arguments` are the JSON values that will run, a reviewer's edit included, secrets masked.
    """

    tenant: str
    record: str
    tool: str
    fingerprint: str
    arguments: Mapping[str, Any]
    conversation: str | None
    asker: str
    principal: str | None

    @cached_property
    def digest(self) -> str:
        """SHA-256 in hexadecimal over all of it."""
        return digest(["bound:1", *(getattr(self, each.name) for each in dataclasses.fields(self))])

    @cached_property
    def alike(self) -> str:
        """The same for two records if the same will run for the same principal."""
        parts = [self.tenant, self.tool, self.fingerprint, self.arguments, self.principal]
        return digest(["alike:1", *parts])


@dataclass(frozen=True, kw_only=True)
class Situation:
    """Why a person is asked, and what they should know; times are seconds since the epoch.

    `labels` are what the run or the conversation has read, `sources` when each was noted; `earlier`
    are writes that this call would add to, `accepted` the keys of these and `doubts` of the unclear
    ones; `votes` is who has approved, when, and whether it was for what is shown now.
    """

    description: str
    why: str
    effects: str
    run_id: str
    thread_id: str | None
    call_id: str
    requester: str | None
    attempt: int
    labels: tuple[str, ...]
    earlier: tuple[str, ...]
    accepted: tuple[str, ...]
    doubts: tuple[str, ...]
    edits_allowed: bool
    sources: tuple[tuple[str, str, float], ...] = ()
    votes: tuple[tuple[str, float, bool], ...] = ()
    votes_needed: int = 1
    asked_at: float | None = None
    decide_by: float | None = None
    irreversible: bool = False


@dataclass(frozen=True, kw_only=True)
class Presented:
    """One call as a person sees it. `asked` are the arguments before a reviewer's edit."""

    bound: Bound
    situation: Situation
    asked: Mapping[str, Any]

    @cached_property
    def digest(self) -> str:
        """SHA-256 in hexadecimal over everything that is shown."""
        return digest(["presented:1", self.bound.digest, self.situation_digest])

    @cached_property
    def situation_digest(self) -> str:
        """SHA-256 in hexadecimal over the situation."""
        return digest(["situation:1", dataclasses.asdict(self.situation)])

    @cached_property
    def shown(self) -> str:
        """The arguments that will run, whole, as inert text."""
        return text_of(self.bound.arguments)

    @cached_property
    def change(self) -> str | None:
        """The difference that an edit makes, as inert text; `None` without an edit."""
        before = text_of(self.asked)
        if before == self.shown:
            return None
        old, new = before.splitlines(), self.shown.splitlines()
        lines = difflib.unified_diff(old, new, "asked", "edited", n=_CONTEXT_LINES, lineterm="")
        return "\n".join(lines)

    def lines(self) -> list[str]:
        """The whole question as inert lines, each field on a line of its own."""
        bound, situation = self.bound, self.situation
        said = [f"{short(bound.tool)} wants to run ({one_line(situation.why)})", self.shown]
        if self.change is not None:
            said += ["edited by a reviewer:", self.change]
        said += [f"after: {one_line(each)}" for each in situation.earlier]
        if situation.irreversible:
            said.append("it cannot be undone")
        if situation.labels:
            said.append(f"tainted by: {', '.join(map(short, situation.labels))}")
        if bound.principal:
            said.append(f"on behalf of {short(bound.principal)}")
        return said


def present(
    request: ApprovalRequest,
    *,
    record: str = "",
    edited: Mapping[str, Any] | None = None,
    **known: Any,
) -> Presented:
    """What a person sees of a call, with the edit that is pending; `known` adds to the situation.

    Everything that is shown, voted on or signed comes from here.
    """
    bound = Bound(
        tenant=request.tenant,
        record=record,
        tool=request.tool,
        fingerprint=request.fingerprint,
        arguments=request.arguments if edited is None else edited,
        conversation=request.conversation,
        asker=request.asker,
        principal=request.principal,
    )
    facts: dict[str, Any] = {
        "description": request.description,
        "why": request.reason,
        "effects": request.effects,
        "run_id": request.run_id,
        "thread_id": request.thread_id,
        "call_id": request.call_id,
        "requester": request.requester,
        "attempt": request.attempt,
        "labels": tuple(request.taint),
        "earlier": tuple(request.earlier),
        "accepted": tuple(request.accepted),
        "doubts": tuple(request.doubts),
        "edits_allowed": request.edits_allowed,
        "irreversible": request.irreversible,
    }
    return Presented(bound=bound, situation=Situation(**facts | known), asked=request.arguments)


def present_rows(tx: Transaction, rows: Sequence[Row]) -> list[Presented]:
    """What a person sees of records, with the labels and votes of this moment."""
    labels = _by(tx, "taints", "scope", {scope for row in rows for scope in _scopes(row)})
    voted = [row["id"] for row in rows if row["votes_needed"] > 1]
    votes = _by(tx, "votes", "approval_id", voted)
    return [
        _of_row(
            row,
            [label for scope in _scopes(row) for label in labels.get(scope, ())],
            votes.get(row["id"], ()),
        )
        for row in rows
    ]


def present_row(tx: Transaction, row: Row) -> Presented:
    """What a person sees of one record."""
    (found,) = present_rows(tx, [row])
    return found


def edited_of(row: Row) -> dict[str, Any] | None:
    """The reviewer's arguments that a record keeps."""
    edited: dict[str, Any] | None = None if row["edited"] is None else json.loads(row["edited"])
    return edited


def question_of(row: Row) -> ApprovalRequest:
    """The question that a record keeps; its arguments are those that the run is bound to."""
    kept = json.loads(row["request"])
    arguments = {} if row["payload"] is None else from_json(row["payload"])
    return ApprovalRequest(
        tool=row["tool"],
        description=kept.get("description", ""),
        arguments=arguments,
        shown=text_of(arguments),
        call_id=kept.get("call_id", ""),
        run_id=row["run_id"],
        thread_id=row["thread_id"],
        call_key=row["call_key"],
        binding=row["binding"],
        fingerprint=row["fingerprint"],
        digest=row["digest"],
        reason=kept.get("reason", ""),
        effects=kept.get("effects", "write"),
        principal=row["principal"],
        requester=row["requester"],
        tenant=row["tenant"],
        attempt=kept.get("attempt", 1),
        taint=tuple(kept.get("taint", ())),
        earlier=tuple(kept.get("earlier", ())),
        accepted=tuple(kept.get("accepted", ())),
        doubts=tuple(kept.get("doubts", ())),
        edits_allowed=bool(kept.get("edits_allowed", False)),
        conversation=row["conversation"],
        asker=row["asker"] or "",
        schema=kept.get("schema") or {},
        secrets=tuple(kept.get("secrets", ())),
        irreversible=bool(kept.get("irreversible", False)),
    )


def would_run(row: Row, request: ApprovalRequest) -> Presented:
    """The call that would run on a record, taken from the call itself and not from the record.

    Only values that change with every validation are the record's: these are what was shown, and
    the run goes back to them. So are the keys that records of version 0.1 lack.
    """
    if row["digest"] != request.digest:
        request = dataclasses.replace(request, arguments=question_of(row).arguments)
    if row["asker"] is None:
        known = {"asker": "", "conversation": row["conversation"]}
        request = dataclasses.replace(request, **known)
    return present(request, record=row["id"], edited=edited_of(row))


def _of_row(row: Row, taints: Iterable[Row], votes: Iterable[Row]) -> Presented:
    request = question_of(row)
    sources = sorted({(each["label"], each["scope"], each["at"]) for each in taints})
    names = {*request.taint, *(label for label, _, _ in sources)}
    known = {"sources": tuple(sources), "labels": tuple(sorted(names))}
    known |= {"asked_at": row["created_at"], "decide_by": row["decide_by"]}
    known |= {"votes_needed": row["votes_needed"]}
    made = present(request, record=row["id"], edited=edited_of(row), **known)
    given = sorted(votes, key=lambda vote: (vote["at"], vote["reviewer"]))
    said = tuple(
        (each["reviewer"], each["at"], each["digest"] == made.bound.digest) for each in given
    )
    if not said:
        return made
    return dataclasses.replace(made, situation=dataclasses.replace(made.situation, votes=said))


def _scopes(row: Row) -> tuple[str, ...]:
    """The scopes of the labels that the call reads."""
    run = run_scope_of(row["root_run_id"] or row["run_id"])
    return tuple(dict.fromkeys((run, row["conversation"] or run)))


def _by(tx: Transaction, table: str, column: str, values: Iterable[str]) -> dict[str, list[Row]]:
    wanted, found = sorted(values), dict[str, list[Row]]()
    for start in range(0, len(wanted), _AT_ONCE):
        for row in tx.select(table, {f"{column} in": wanted[start : start + _AT_ONCE]}):
            found.setdefault(row[column], []).append(row)
    return found
