"""What people do here, the same for pages and for the JSON API; each is attributed to a person."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from agent_adapter.console.authentication import Person
from agent_adapter.console.problems import Problem, refused
from agent_adapter.console.settings import Settings
from agent_adapter.core.errors import AgentAdapterError, ToolArgsInvalid
from agent_adapter.exec import ledger
from agent_adapter.exec.approval.inbox import ApprovalRecord, Inbox
from agent_adapter.exec.masking import has_mask
from agent_adapter.network.hub import commands
from agent_adapter.store.approvals import Refusal, Seen
from agent_adapter.store.base import Row, Transaction

if TYPE_CHECKING:
    from agent_adapter.core.tool import ToolSpec

__all__ = [
    "MOST_AT_ONCE",
    "command_result",
    "decide",
    "decide_alike",
    "fork",
    "resolve",
    "resume_fork",
    "speak",
    "speakers",
    "spec_of",
]

Verdict = Literal["approved", "denied"]

MOST_AT_ONCE = 100
"""Records that one word may decide."""


async def decide(
    settings: Settings,
    person: Person,
    id: str,
    verdict: Verdict,
    *,
    seen: Seen,
    reason: str | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> ApprovalRecord:
    """The record with the person's word on it; `Problem` 404, 409 or 422 where it counts not."""
    person.check("approver")
    inbox = Inbox(settings.store, tenant=settings.tenant)
    if arguments is not None:
        await _check_edits(settings, inbox, id, arguments)
    try:
        record = await inbox.decide(
            id,
            verdict,
            reviewer=person.reviewer,
            reason=reason or None,
            arguments=arguments,
            key=settings.key_of(person.name),
            seen=seen,
        )
    except AgentAdapterError as exc:
        raise Problem(422, exc.kind, str(exc)) from exc
    if isinstance(record, Refusal):
        raise refused(record)
    return record


async def decide_alike(
    settings: Settings,
    person: Person,
    records: Sequence[tuple[str, Seen]],
    verdict: Verdict,
    *,
    reason: str | None = None,
) -> tuple[list[ApprovalRecord], list[str]]:
    """One word on several records of the same tool with the same arguments.

    Those decided, and a line for each that was not. `Problem` 422 for records that differ.
    """
    person.check("approver")
    if not 0 < len(records) <= MOST_AT_ONCE:
        raise Problem(422, "bulk", f"choose 1 to {MOST_AT_ONCE} records")
    inbox = Inbox(settings.store, tenant=settings.tenant)
    try:
        found = [await inbox.get(id) for id, _ in records]
    except AgentAdapterError as exc:
        raise Problem(404, "not-found", f"{exc}; nothing was changed") from exc
    if len({(each.fingerprint, each.tool, each.digest, each.shown) for each in found}) != 1:
        raise Problem(
            422, "bulk", "only calls of one tool with the same arguments can be decided together"
        )
    decided, failed = [], []
    for id, seen in records:
        try:
            decided.append(await decide(settings, person, id, verdict, seen=seen, reason=reason))
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
    """The person's word on a write in doubt; `Problem` 409 where it is not in doubt any more."""
    person.check("approver")
    row = await settings.store.read(lambda tx: tx.get("calls", call_key))
    if row is None or row["tenant"] != settings.tenant:
        raise Problem(404, "not-found", f"no call {call_key}; nothing was changed")
    try:
        return await ledger.resolve(
            settings.store,
            call_key,
            reviewer=person.reviewer,
            happened=happened,
            result=result,
            reason=reason or None,
        )
    except AgentAdapterError as exc:
        raise Problem(409, "stale", str(exc)) from exc


async def speakers(settings: Settings, person: Person, channel_id: str) -> list[str]:
    """The people of a channel in whose name this person may speak.

    An approver speaks as the participant of the same name; an admin as any person, never as an
    agent.
    """
    if not person.may("approver"):
        return []

    def op(tx: Transaction) -> list[str]:
        members = tx.select("channel_members", {"channel_id": channel_id}, order_by="position")
        found = []
        for member in members:
            known = tx.select("identities", {"agent_id": member["agent_id"]}, limit=1)
            if known and known[0]["kind"] == "human":
                found.append(known[0]["name"])
        return found

    people = await settings.store.read(op)
    return [name for name in people if person.may("admin") or name == person.name]


async def speak(
    settings: Settings, person: Person, channel_id: str, *, sender: str, text: str, key: str = ""
) -> str:
    """Ask the channel's hub to let `sender` say `text`; the id of the command.

    With the same `key` it is said once, however often it is asked for.
    """
    person.check("approver")
    await _check_channel(settings, channel_id)
    if sender not in await speakers(settings, person, channel_id):
        raise Problem(403, "speaker", f"{person.name} may not speak as {sender!r} in this channel")
    if not text.strip():
        raise Problem(422, "empty", "there is nothing to say")
    payload = {"channel_id": channel_id, "sender": sender, "text": text}
    if key:
        payload["key"] = f"{person.reviewer}:{key}"
    return await _queued(settings, person, "speak", payload)


async def fork(settings: Settings, person: Person, channel_id: str, *, at: str) -> str:
    """Ask the channel's hub for a paused copy of it up to the envelope `at`; the command's id."""
    person.check("admin")
    await _check_channel(settings, channel_id)
    return await _queued(settings, person, "fork", {"channel_id": channel_id, "at": at})


async def resume_fork(settings: Settings, person: Person, channel_id: str) -> str:
    """Ask the hub to let a paused fork go on; the command's id."""
    person.check("admin")
    await _check_channel(settings, channel_id)
    return await _queued(settings, person, "resume", {"channel_id": channel_id})


async def command_result(settings: Settings, id: str) -> dict[str, Any]:
    """What came of a command: `{"id", "state", …}`, `queued` while the hub has not looked at it."""
    row = await settings.store.read(lambda tx: tx.get("commands", id))
    if row is None:
        raise Problem(404, "not-found", f"no command {id}")
    await _check_channel(settings, json.loads(row["payload"]).get("channel_id", ""))
    answer = await settings.store.read(lambda tx: commands.result(tx, id))
    return {"id": id, "kind": row["kind"], **(answer or {"state": "queued"})}


def spec_of(settings: Settings, record: ApprovalRecord) -> ToolSpec | None:
    """The tool that a record is about, if the registry has it as it was when that was asked."""
    if settings.registry is None:
        return None
    spec = next((each for each in settings.registry if each.name == record.tool), None)
    return spec if spec is not None and spec.fingerprint == record.fingerprint else None


async def _check_edits(
    settings: Settings, inbox: Inbox, id: str, arguments: Mapping[str, Any]
) -> None:
    """Refuse edits that the tool would refuse; masked secrets are put back by the executor."""
    try:
        record = await inbox.get(id)
    except AgentAdapterError as exc:
        raise Problem(404, "not-found", str(exc)) from exc
    spec = spec_of(settings, record)
    if spec is None or has_mask(dict(arguments)):
        return
    try:
        spec.validate(arguments)
    except ToolArgsInvalid as exc:
        raise Problem(422, exc.kind, str(exc)) from exc


async def _check_channel(settings: Settings, channel_id: str) -> None:
    row = await settings.store.read(lambda tx: tx.get("channels", channel_id))
    if row is None or (row["tenant"] or "") != settings.tenant:
        raise Problem(404, "not-found", f"no channel {channel_id}")


async def _queued(settings: Settings, person: Person, kind: str, payload: dict[str, Any]) -> str:
    by = person.reviewer
    return await settings.store.write(lambda tx: commands.queue(tx, kind, payload, by))
