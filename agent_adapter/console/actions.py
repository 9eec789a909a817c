"""The actions of the console, shared by pages and the JSON API; each is attributed to a person."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from agent_adapter.console.authentication import Person
from agent_adapter.console.problems import Problem, refused
from agent_adapter.console.settings import Settings
from agent_adapter.core.errors import AgentAdapterError, ToolArgsInvalid
from agent_adapter.core.inert import short
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec import ledger
from agent_adapter.exec.approval import inbox
from agent_adapter.exec.approval.inbox import ApprovalRecord, Inbox, record_of
from agent_adapter.exec.masking import has_mask
from agent_adapter.network.hub import commands
from agent_adapter.store import queries, withdrawing
from agent_adapter.store.approvals import Refusal, Seen
from agent_adapter.store.base import Row, Transaction

Verdict = Literal["approved", "denied"]
"""What several records at once may be told."""

STALE_TEXT = (
    "The channel has moved on since this page was shown: the text was not sent. Read what is new,"
    " and send it again if it still fits."
)
"""What a person is told whose text was written for another turn."""

MAX_BULK = 100
"""The maximum number of records in one bulk decision."""

MAX_PREVIEWED = 500
"""The maximum number of records in one preview, and in the decision on it."""


class CommandResult(BaseModel):
    """A command to a hub and its result; the other fields depend on the command.

    A refused command has `error`, and the error's kind in `kind`.
    """

    id: str
    kind: str
    state: Literal["queued", "done", "refused"]
    error: str | None = None
    envelope_id: str | None = None
    channel_id: str | None = None
    writes: list[dict[str, Any]] | None = None
    state_of_channel: str | None = None
    reason: str | None = None
    answer: str | None = None


async def approval_record(settings: Settings, id: str) -> ApprovalRecord:
    """One record; `Problem` 404 if it does not exist."""
    try:
        return await Inbox(settings.store, tenant=settings.tenant).get(id)
    except AgentAdapterError as exc:
        raise Problem(404, "not-found", str(exc)) from exc


async def decide(
    settings: Settings,
    person: Person,
    id: str,
    verdict: inbox.Verdict,
    *,
    seen: Seen,
    reason: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    answer: Any = None,
    undo_within: float = 0.0,
) -> ApprovalRecord:
    """Decide a record and return it; `Problem` 403, 404, 409 or 422 if the decision is refused."""
    person.check("approver")
    if arguments is not None:
        await _check_edits(settings, id, arguments)
    try:
        record = await Inbox(settings.store, tenant=settings.tenant).decide(
            id,
            verdict,
            reviewer=person.reviewer,
            reason=reason or None,
            arguments=arguments,
            answer=answer,
            key=settings.key_of(person.name),
            seen=seen,
            undo_within=undo_within,
        )
    except AgentAdapterError as exc:
        raise _invalid(exc) from exc
    if isinstance(record, Refusal):
        raise refused(record)
    return record


async def undo(settings: Settings, person: Person, id: str) -> ApprovalRecord:
    """Take back this person's decision while it is held; `Problem` 403, 404 or 409 if refused."""
    person.check("approver")
    own = Inbox(settings.store, tenant=settings.tenant)
    record = await own.undo_or_refuse(id, reviewer=person.reviewer)
    if isinstance(record, Refusal):
        raise refused(record)
    return record


async def withdraw(settings: Settings, person: Person, id: str, reason: str) -> ApprovalRecord:
    """Take an open record back and return it; `Problem` 403, 404 or 409 if that is refused."""
    person.check("approver")
    tenant, by = settings.tenant, person.reviewer

    def op(tx: Transaction) -> ApprovalRecord | Refusal:
        row = withdrawing.withdraw(tx, id, reason=reason, by=by, tenant=tenant)
        return row if isinstance(row, Refusal) else record_of(tx, row)

    record = await settings.store.write(op)
    if isinstance(record, Refusal):
        raise refused(record)
    return record


async def decide_several(
    settings: Settings,
    person: Person,
    records: Sequence[tuple[str, Seen]],
    verdict: Verdict,
    *,
    reason: str | None = None,
) -> tuple[list[ApprovalRecord], list[str]]:
    """Decide several requests for the same tool with the same arguments.

    Returns the decided records, and one message for each that could not be decided. `Problem` 422
    if the requests differ.
    """
    person.check("approver")
    if not 0 < len(records) <= MAX_BULK:
        raise Problem(422, "bulk", f"choose 1 to {MAX_BULK} requests")
    own = Inbox(settings.store, tenant=settings.tenant)
    try:
        found = [await own.get(id) for id, _ in records]
    except AgentAdapterError as exc:
        raise Problem(404, "not-found", f"{exc}; nothing was changed") from exc
    if len({each.alike for each in found}) != 1:
        raise Problem(
            422,
            "bulk",
            "only requests for the same tool with the same arguments can be decided together",
        )
    decided, failed = [], []
    for id, seen in records:
        try:
            decided.append(await decide(settings, person, id, verdict, seen=seen, reason=reason))
        except Problem as problem:
            failed.append(problem.message)
    return decided, failed


async def decide_bulk(
    settings: Settings,
    person: Person,
    records: Sequence[tuple[str, Seen]],
    verdict: Verdict,
    *,
    reason: str | None = None,
) -> tuple[list[ApprovalRecord], list[str]]:
    """Decide requests for one tool, each as it was shown in a preview; as `decide_several`."""
    person.check("approver")
    if not 0 < len(records) <= MAX_PREVIEWED:
        raise Problem(422, "bulk", f"choose 1 to {MAX_PREVIEWED} requests")
    found = [await approval_record(settings, id) for id, _ in records]
    if len({(each.tool, each.fingerprint) for each in found}) != 1:
        raise Problem(422, "bulk", "only requests for the same tool can be decided together")
    decided, failed = [], []
    for id, seen in records:
        try:
            decided.append(
                await decide(
                    settings,
                    person,
                    id,
                    verdict,
                    seen=seen,
                    reason=reason,
                    undo_within=settings.undo_window,
                )
            )
        except Problem as problem:
            failed.append(problem.message)
    return decided, failed


async def resolve(
    settings: Settings,
    person: Person,
    call_key: str,
    *,
    happened: bool,
    result: Any = None,
    reason: str | None = None,
) -> Row:
    """Record whether a write with unknown outcome happened; `Problem` 409 if it is not in doubt."""
    person.check("approver")
    row = await settings.store.read(lambda tx: queries.call_row(tx, call_key, settings.tenant))
    if row is None:
        raise Problem(404, "not-found", f"no call {short(call_key)}; nothing was changed")
    try:
        return await ledger.resolve(
            settings.store,
            call_key,
            reviewer=person.reviewer,
            happened=happened,
            result=result,
            reason=reason or None,
            tenant=settings.tenant,
        )
    except AgentAdapterError as exc:
        raise Problem(409, "stale", str(exc)) from exc


async def speakers(settings: Settings, person: Person, channel_id: str) -> list[str]:
    """The human participants of a channel as whom this person may speak.

    An approver may speak as the participant of the same name, an admin as any human participant.
    Speaking as an agent is not allowed.
    """
    if not person.may("approver"):
        return []
    people = await settings.store.read(lambda tx: queries.human_members(tx, channel_id))
    return [name for name in people if person.may("admin") or name == person.name]


async def speak(
    settings: Settings,
    person: Person,
    channel_id: str,
    *,
    sender: str,
    text: str,
    key: str = "",
    turn: str | None = None,
) -> str:
    """Ask the channel's hub to post `text` as `sender`, and return the command's id.

    Requests with the same `key` post the text once. With the `turn` that was shown, the text is
    refused once another has begun: `Problem` 409 where that is known already.
    """
    person.check("approver")
    await _check_channel(settings, channel_id)
    if sender not in await speakers(settings, person, channel_id):
        raise Problem(403, "speaker", f"{person.name} may not speak as {sender!r} in this channel")
    if not text.strip():
        raise Problem(422, "empty", "the message is empty")
    payload: dict[str, Any] = {"channel_id": channel_id, "sender": sender, "text": text}
    if turn is not None:
        payload |= await settings.store.read(lambda tx: _answered(tx, channel_id, sender, turn))
    if key:
        # Keys of different people must not collide: one could suppress the other's message.
        payload["key"] = f"{person.reviewer}:{key}"
    return await _queue_command(settings, person, "speak", payload)


def _answered(tx: Transaction, channel_id: str, sender: str, turn: str) -> dict[str, Any]:
    """The turn that a text answers, if it is the sender's; `Problem` 409 if it has passed."""
    row = tx.get("channels", channel_id) or {"turn_id": None, "expected": None}
    if (row["turn_id"] if row["expected"] is not None else "") != turn:
        raise Problem(409, "stale", STALE_TEXT)
    mine = row["expected"] is not None and row["expected"] == queries.human_id(tx, sender)
    return {"answers": turn} if mine else {}


async def fork(settings: Settings, person: Person, channel_id: str, *, at: str) -> str:
    """Ask the channel's hub for a paused fork at the envelope `at`; returns the command's id."""
    person.check("admin")
    await _check_channel(settings, channel_id)
    return await _queue_command(settings, person, "fork", {"channel_id": channel_id, "at": at})


async def resume_fork(settings: Settings, person: Person, channel_id: str) -> str:
    """Ask the channel's hub to resume a paused fork; returns the command's id."""
    person.check("admin")
    await _check_channel(settings, channel_id)
    return await _queue_command(settings, person, "resume", {"channel_id": channel_id})


async def command_result(settings: Settings, id: str) -> CommandResult:
    """The state and result of a command to a hub."""
    row = await settings.store.read(lambda tx: queries.command(tx, id, settings.tenant))
    if row is None:
        raise Problem(404, "not-found", f"no command {short(id)}")
    answer = await settings.store.read(lambda tx: commands.result(tx, id))
    facts = {"id": id, "kind": row["kind"], **(answer or {"state": "queued"})}
    return CommandResult.model_construct(**facts)


def spec_of(settings: Settings, record: ApprovalRecord) -> ToolSpec | None:
    """The record's tool from the registry; `None` if it is missing or has changed since."""
    if settings.registry is None:
        return None
    spec = next((each for each in settings.registry if each.name == record.tool), None)
    return spec if spec is not None and spec.fingerprint == record.fingerprint else None


async def _check_edits(settings: Settings, id: str, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that the tool would refuse.

    Arguments with a masked secret are left to the executor, which alone can restore the secret.
    """
    spec = spec_of(settings, await approval_record(settings, id))
    if spec is None or has_mask(dict(arguments)):
        return
    try:
        spec.validate(arguments)
    except ToolArgsInvalid as exc:
        raise _invalid(exc) from exc


def _invalid(exc: AgentAdapterError) -> Problem:
    """The problem of a decision that is not valid, with what is wrong in each argument."""
    fields: dict[str, str] = {}
    for line in exc.problems if isinstance(exc, ToolArgsInvalid) else ():
        path, _, text = line.partition(": ")
        fields.setdefault(re.split(r"[.\[]", path)[0], text)
    return Problem(422, exc.kind, str(exc), fields)


async def _check_channel(settings: Settings, channel_id: str) -> None:
    tenant = settings.tenant
    row = await settings.store.read(lambda tx: queries.channel_row(tx, channel_id, tenant))
    if row is None:
        raise Problem(404, "not-found", f"no channel {short(channel_id)}")


async def _queue_command(
    settings: Settings, person: Person, kind: str, payload: dict[str, Any]
) -> str:
    by = person.reviewer
    return await settings.store.write(lambda tx: commands.queue(tx, kind, payload, by))
