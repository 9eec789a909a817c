"""Operations on a channel's lifecycle: open and invite, answer, close."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_adapter.core.errors import NotFoundError, ProtocolError
from agent_adapter.flow.compiled import graph_hash
from agent_adapter.flow.envelope import (
    EV_CHANNEL_INVITE,
    EV_CHANNEL_INVITE_ACK,
    EV_CHANNEL_OPENED,
    EV_EXPECTATION_VIOLATED,
    Envelope,
)
from agent_adapter.network.adapters.base import ChannelAdapter, RouteChecker
from agent_adapter.network.adapters.checks import await_check, run_check
from agent_adapter.network.adapters.knobs import check_knob_names, check_knob_values
from agent_adapter.network.channels import expectations
from agent_adapter.network.channels.metadata import (
    ChannelManifest,
    ChannelMetadata,
    ChannelState,
    Participant,
    ParticipantRole,
)
from agent_adapter.network.channels.snapshot import (
    ChannelSnapshot,
    channel_row,
    fixed_metadata,
    iso,
    state_text,
    stored_knobs,
)
from agent_adapter.network.channels.transaction import Change, ChannelTransaction, HubContext
from agent_adapter.network.channels.violations import Violation
from agent_adapter.network.hub import audit
from agent_adapter.store import channel_clocks
from agent_adapter.store.base import Row, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A channel to open; `names` maps participant ids to names, in order."""

    channel_id: str
    manifest: ChannelManifest
    creator_id: str
    names: Mapping[str, str]
    required_acks: int | None = None
    ttl: float | None = None
    knobs: Mapping[str, Any]
    labels: Mapping[str, str]
    parent_channel_id: str | None = None
    ack_timeout: float | None = None
    tenant: str = ""
    paused: bool = False


def open_channel(tx: Transaction, context: HubContext, opening: Opening) -> Change:
    """Write the channel and its invitations; a channel without invitees is active at once.

    Raises `ProtocolError`, before the first insert, if the channel type does not allow it.
    """
    metadata = metadata_of(opening, tx.now)
    adapter = context.adapters.get(opening.manifest.type, opening.manifest.version)
    for check, *about in _checks_of(context, adapter, metadata):
        run_check(check, *about)
    state = adapter.initial_state(metadata)
    folded = state_text(adapter.state_to_dict(state))
    row = _insert(tx, opening, folded)
    own = context.adapters.own_evaluators
    deadlines = expectations.deadlines_of(metadata, own)
    snapshot = ChannelSnapshot(0, 0, metadata, state, adapter, metadata.names(), folded, deadlines)
    channel = ChannelTransaction(tx, context, row, snapshot)
    facts: dict[str, Any] = {"channel_id": opening.channel_id, "creator_id": opening.creator_id}
    facts |= {
        "manifest_type": opening.manifest.type,
        "participants": metadata.participant_ids(),
    }
    audit.write(tx, audit.CREATED, facts | {"manifest_version": opening.manifest.version})
    if own:
        expectations.of_own(tx, metadata, own)
    _invite(channel, opening)
    return channel.finish()


async def await_checks(context: HubContext, opening: Opening) -> None:
    """Await the async checks of a channel that is to be opened."""
    adapter = context.adapters.get(opening.manifest.type, opening.manifest.version)
    for check, *about in _checks_of(context, adapter, metadata_of(opening, time.time())):
        await await_check(check, *about)


def _checks_of(
    context: HubContext, adapter: ChannelAdapter, metadata: ChannelMetadata
) -> Iterator[tuple[Any, ...]]:
    """Each check of an opening, with what it is about."""
    yield check_knob_names, adapter.manifest, metadata.knobs
    yield adapter.validate_create, metadata
    yield check_knob_values, adapter.manifest, metadata.knobs
    privileged = frozenset(filter(context.is_privileged, metadata.participant_ids()))
    if privileged and isinstance(adapter, RouteChecker):
        yield adapter.check_routes, metadata, privileged


def answer(channel: ChannelTransaction, envelope: Envelope) -> Change:
    """Record an answer to an invitation; the last required one makes the channel active."""
    metadata = channel.metadata
    if envelope.sender_id not in metadata.participant_ids():
        raise ProtocolError(
            f"{envelope.sender_id!r} was not invited to channel {metadata.channel_id}; invited "
            f"are {', '.join(metadata.names().values())}"
        )
    agrees = envelope.event_type == EV_CHANNEL_INVITE_ACK
    pending = envelope.sender_id in metadata.pending_acks
    if not pending or (metadata.state is not ChannelState.PENDING and not agrees):
        # Already answered, or the channel is no longer pending: nothing changes.
        return Change(metadata.channel_id, channel.before, accepted=envelope, repeated=True)
    key = {"channel_id": metadata.channel_id, "agent_id": envelope.sender_id}
    values: Row = {"ack": "acked" if agrees else "rejected"}
    channel.tx.update("channel_members", key, values | {"joined_at": channel.tx.now})
    sent = channel.append(envelope)
    left = [item for item in metadata.pending_acks if item != envelope.sender_id]
    rejected = metadata.rejected_by if agrees else [*metadata.rejected_by, envelope.sender_id]
    channel.metadata = replace(metadata, pending_acks=left, rejected_by=rejected)
    if metadata.state is ChannelState.PENDING:
        _settle(channel)
    return channel.finish(sent)


def close(
    tx: Transaction,
    context: HubContext,
    channel_id: str,
    reason: str,
    cached: ChannelSnapshot | None = None,
    *,
    by: str | None = None,
) -> Change:
    """Close the channel with `reason`; a channel that has ended is left unchanged.

    The event has `by`, a participant, as its sender.
    """
    row = channel_row(tx, channel_id)
    channel = ChannelTransaction(tx, context, row, cached)
    if by is not None and by not in channel.metadata.participant_ids():
        raise NotFoundError(f"channel not found: there is no channel {channel_id!r} here")
    if channel.is_over:
        return Change(channel_id, channel.before, repeated=True)
    channel.end(reason, by=by)
    return channel.finish()


def fire(
    tx: Transaction, context: HubContext, deadline: Row, cached: ChannelSnapshot | None = None
) -> tuple[Change | None, dict[str, Any] | None]:
    """Act once on a passed deadline; returns the change and the audit record."""
    row = channel_row(tx, deadline["channel_id"])
    channel = ChannelTransaction(tx, context, row, cached)
    stands = deadline["name"] != channel_clocks.PARKED and channel_clocks.stands(tx, row)
    if stands and not channel.is_over:
        # Written while a turn was parked: it runs on with the others.
        channel_clocks.stop(tx, row["channel_id"])
        return None, None
    if channel.is_over or not expectations.fire(tx, deadline):
        return None, None
    violators = _violators(channel, deadline)
    params = json.loads(deadline["params"])
    late = tx.now - deadline["due_at"]
    seconds = float(params.get("seconds", 600))
    detail = {"elapsed_seconds": seconds + late, "threshold_seconds": seconds}
    facts: dict[str, Any] = {"channel_id": row["channel_id"], "expectation": deadline["name"]}
    facts |= {"on_violation": deadline["handler"], "params": params}
    record = audit.write(tx, audit.VIOLATED, facts | {"violators": violators, "detail": detail})
    if deadline["handler"] in context.adapters.own_handlers:
        expectations.owe(tx, deadline, violators, detail)
    elif deadline["handler"] in ("warn", "notify_channel"):
        told = {"expectation": deadline["name"], "violators": violators, "detail": detail}
        channel.say(EV_EXPECTATION_VIOLATED, told)
    elif deadline["handler"] == "auto_close":
        channel.end(f"expectation_violated:{deadline['name']}", facts=_last_failure(channel))
    elif deadline["handler"] == "invite_timeout":
        channel.end("invite_timeout")
    if deadline["turn"] and not channel.metadata.is_terminal():
        expectations.next_of(tx, channel.before.deadlines, deadline)
    return channel.finish(), record


def _last_failure(channel: ChannelTransaction) -> dict[str, Any]:
    """Why the attempts of the channel's turn have failed, if they have."""
    turn = channel.tx.get("turns", channel.row["turn_id"] or "")
    failed = turn is not None and turn["fails"] and turn["reason"]
    return {"cause": turn["reason"], "turn_id": turn["turn_id"]} if turn and failed else {}


def fire_own(
    tx: Transaction,
    context: HubContext,
    row: Row,
    violation: Violation,
    cached: ChannelSnapshot | None = None,
) -> tuple[Change, Row | None]:
    """Act on what an evaluator of the program has found, once for each violator.

    Returns the change, and the row of the expectation if it has fired.
    """
    channel_id = row["channel_id"]
    channel = ChannelTransaction(tx, context, channel_row(tx, channel_id), cached)
    if channel.is_over:
        return Change(channel_id, channel.before, repeated=True), None
    fired = expectations.newly_told(tx, row, violation.violator_ids, violation.detail)
    if fired is None:
        return Change(channel_id, channel.before, repeated=True), None
    told = {
        "expectation": row["name"],
        "violators": list(json.loads(fired["told"])["owed"]),
        "detail": dict(violation.detail),
    }
    facts = {"channel_id": channel_id, "on_violation": row["handler"]} | told
    audit.write(tx, audit.VIOLATED, facts | {"params": json.loads(row["params"])})
    if row["handler"] not in context.adapters.own_handlers:
        if row["handler"] in ("warn", "notify_channel"):
            channel.say(EV_EXPECTATION_VIOLATED, told)
        elif row["handler"] == "auto_close":
            channel.end(f"expectation_violated:{row['name']}")
    return channel.finish(), fired


def announce(
    tx: Transaction,
    context: HubContext,
    channel_id: str,
    told: Mapping[str, Any],
    cached: ChannelSnapshot | None = None,
) -> Change:
    """Tell a channel of a violation; one that has ended is left unchanged."""
    channel = ChannelTransaction(tx, context, channel_row(tx, channel_id), cached)
    if channel.is_over:
        return Change(channel_id, channel.before, repeated=True)
    channel.say(EV_EXPECTATION_VIOLATED, told)
    return channel.finish()


def metadata_of(opening: Opening, now: float) -> ChannelMetadata:
    """The metadata of a channel at its opening."""
    ids = list(opening.names)
    others = [item for item in ids if item != opening.creator_id]
    return ChannelMetadata(
        channel_id=opening.channel_id,
        manifest=opening.manifest,
        creator_id=opening.creator_id,
        participants=[
            Participant(item, _role(opening, item), place, iso(now), opening.names[item])
            for place, item in enumerate(ids)
        ],
        state=ChannelState.PENDING,
        created_at=iso(now),
        expires_at=None if opening.ttl is None else iso(now + opening.ttl),
        parent_channel_id=opening.parent_channel_id,
        knobs=dict(opening.knobs),
        labels=dict(opening.labels),
        required_acks=opening.required_acks,
        pending_acks=others,
    )


def _role(opening: Opening, agent_id: str) -> ParticipantRole:
    if agent_id == opening.creator_id:
        return ParticipantRole.INITIATOR
    if len(opening.names) == 2:
        return ParticipantRole.RESPONDENT
    return ParticipantRole.PARTICIPANT


def _insert(tx: Transaction, opening: Opening, folded: str) -> Row:
    graph = opening.knobs.get("graph")
    hashed = graph_hash(graph) if isinstance(graph, dict) else None
    if hashed is not None:
        tx.insert("graphs", {"hash": hashed, "data": json.dumps(graph)})
    row: Row = {
        "channel_id": opening.channel_id,
        "type": opening.manifest.type,
        "version": opening.manifest.version,
        "state": ChannelState.PENDING.value,
        "creator_id": opening.creator_id,
        "created_at": tx.now,
        "expires_at": None if opening.ttl is None else tx.now + opening.ttl,
        "ttl": opening.ttl,
        "ttl_left": None,
        "closed_at": None,
        "close_reason": None,
        "parent_channel_id": opening.parent_channel_id,
        "graph_hash": hashed,
        "knobs": stored_knobs(opening.knobs),
        "labels": json.dumps(dict(opening.labels)),
        "metadata": fixed_metadata(opening.manifest, opening.required_acks),
        "folded": folded,
        "revision": 0,
        "seq": 0,
        "spoken": 0,
        "turn_id": None,
        "turn_n": 0,
        "expected": None,
        "paused": int(opening.paused),
        "tenant": opening.tenant,
        "summary": None,
    }
    tx.insert("channels", row)
    for place, (agent_id, name) in enumerate(opening.names.items()):
        own = agent_id == opening.creator_id
        member: Row = {"channel_id": opening.channel_id, "agent_id": agent_id, "name": name}
        member |= {"role": _role(opening, agent_id).value, "position": place, "joined_at": tx.now}
        tx.insert("channel_members", member | {"ack": "acked" if own else "pending"})
    return row


def _invite(channel: ChannelTransaction, opening: Opening) -> None:
    invited = channel.metadata.pending_acks
    data = {
        "channel_id": opening.channel_id,
        "manifest_type": opening.manifest.type,
        "manifest_version": opening.manifest.version,
        "creator_id": opening.creator_id,
        "knobs": dict(opening.knobs),
        "labels": dict(opening.labels),
    }
    for agent_id in invited:
        channel.say(EV_CHANNEL_INVITE, data, [agent_id])
    if _enough(channel.metadata):
        _activate(channel)
    else:
        expectations.of_channel(
            channel.tx, channel.before.deadlines, opening.channel_id, opening.ack_timeout
        )


def _settle(channel: ChannelTransaction) -> None:
    """Activate the channel once enough agreed; close it once too many declined."""
    metadata = channel.metadata
    if _enough(metadata):
        _activate(channel)
    elif _cannot_activate(metadata):
        names = metadata.names()
        channel.end("rejected_by:" + ",".join(names[item] for item in metadata.rejected_by))


def _needed(metadata: ChannelMetadata) -> int:
    invited = len(metadata.participants) - 1
    return invited if metadata.required_acks is None else min(metadata.required_acks, invited)


def _enough(metadata: ChannelMetadata) -> bool:
    invited = len(metadata.participants) - 1
    agreed = invited - len(metadata.pending_acks) - len(metadata.rejected_by)
    return agreed >= _needed(metadata)


def _cannot_activate(metadata: ChannelMetadata) -> bool:
    invited = len(metadata.participants) - 1
    return invited - len(metadata.rejected_by) < _needed(metadata)


def _activate(channel: ChannelTransaction) -> None:
    channel.move(ChannelState.ACTIVE)
    channel.say(EV_CHANNEL_OPENED, {"channel_id": channel.row["channel_id"]})
    expectations.stop_acks(channel.tx, channel.row["channel_id"])
    first = channel.before.adapter.expected_next(channel.metadata, channel.state)
    # The opener sends the first message: its own turn, or the brief that the first speaker answers.
    channel.give_turn(first, by_hand=True)
    expectations.of_silence(channel.tx, channel.before.deadlines, channel.row["channel_id"])


def _violators(channel: ChannelTransaction, deadline: Row) -> Sequence[str]:
    if deadline["name"] == expectations.ACKS:
        return list(channel.metadata.pending_acks)
    return [deadline["agent_id"]] if deadline["agent_id"] is not None else []
