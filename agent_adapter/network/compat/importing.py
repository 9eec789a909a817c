"""Takes a store of AG2's network over: participants, channels with their logs, the audit log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from agent_adapter.core.errors import AgentAdapterError, StoreError
from agent_adapter.flow.compiled import graph_hash
from agent_adapter.flow.envelope import Envelope, is_turn
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.channels.metadata import ChannelState
from agent_adapter.network.channels.snapshot import fixed_metadata, state_text, stored_knobs
from agent_adapter.network.channels.transaction import ChannelTransaction, HubContext
from agent_adapter.network.compat.ag2_files import Ag2Agent, Ag2Channel, read_ag2_store, seconds
from agent_adapter.network.hub.hub import Hub
from agent_adapter.store.base import Row, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """How much was taken over, how much was there before, and how many tasks were left out."""

    agents: int = 0
    channels: int = 0
    envelopes: int = 0
    audit_records: int = 0
    known: int = 0
    tasks_left_out: int = 0


async def import_ag2(hub: Hub, folder: Path) -> Imported:
    """Take over the store of AG2 in `folder`; what `hub`'s store has already is left as it is.

    Everything is read and checked first. Channels that go on continue with the turn that their log
    expects; one that was never opened is closed. Raises `StoreError`, with nothing written, for a
    file that cannot be read, an unknown channel type, or a name that is somebody else's here.
    """
    found = read_ag2_store(folder)
    context = _context(hub, found.agents)
    adapters = {item.metadata.channel_id: _adapter(hub, item) for item in found.channels}
    folds = {
        item.metadata.channel_id: _folded(item, adapters[item.metadata.channel_id])
        for item in found.channels
    }
    for agent in found.agents:
        known = hub.find_agent_id(agent.passport.name)
        if known not in (None, agent.passport.agent_id):
            raise StoreError(
                f"{agent.passport.name} is registered here with another id; unregister one of them"
            )
    store = hub.store
    agents = [await store.write(partial(_write_agent, agent=item)) for item in found.agents]
    channels = []
    for item in found.channels:
        op = partial(
            _write_channel, context=context, channel=item, state=folds[item.metadata.channel_id]
        )
        channels.append(await store.write(op))
    records = [
        await store.write(partial(_write_record, place=place, record=item))
        for place, item in enumerate(found.audit)
    ]
    new = [item for item, made in zip(found.channels, channels, strict=True) if made]
    return Imported(
        agents=sum(agents),
        channels=len(new),
        envelopes=sum(len(item.log) for item in new),
        audit_records=sum(records),
        known=[*agents, *channels, *records].count(False),
        tasks_left_out=found.tasks,
    )


def _context(hub: Hub, agents: tuple[Ag2Agent, ...]) -> HubContext:
    people = {item.passport.agent_id for item in agents if item.passport.kind == "human"}
    return HubContext(hub.adapters, people.__contains__, lambda _: False)


def _adapter(hub: Hub, channel: Ag2Channel) -> ChannelAdapter:
    manifest = channel.metadata.manifest
    try:
        return hub.adapters.get(manifest.type, manifest.version)
    except AgentAdapterError as exc:
        raise StoreError(f"{channel.file}: {exc}") from None


def _folded(channel: Ag2Channel, adapter: ChannelAdapter) -> str:
    try:
        state = adapter.initial_state(channel.metadata)
        for envelope in channel.log:
            state = adapter.fold(envelope, state)
        return state_text(adapter.state_to_dict(state))
    except AgentAdapterError as exc:
        raise StoreError(f"{channel.file}: {exc}") from None


def _write_agent(tx: Transaction, agent: Ag2Agent) -> bool:
    passport = agent.passport
    if passport.effective_kind != "remote_agent":
        passport = replace(passport, auth=replace(passport.auth, claim={}))
    row: Row = {
        "name": passport.name,
        "agent_id": passport.agent_id,
        "tenant": "",
        "registered_at": seconds(passport.created_at, Path(passport.name)) or tx.now,
        "kind": passport.effective_kind,
        "passport": json.dumps(passport.to_dict()),
        "resume": json.dumps(agent.resume.to_dict()),
        "rule": json.dumps(agent.rule.to_dict()),
        "skill": agent.skill,
    }
    return tx.insert("identities", row)


def _write_channel(tx: Transaction, context: HubContext, channel: Ag2Channel, state: str) -> bool:
    metadata = channel.metadata
    if tx.get("channels", metadata.channel_id) is not None:
        return False
    row = _row(tx, channel, state)
    if row["graph_hash"] is not None:
        graph = {"hash": row["graph_hash"], "data": json.dumps(metadata.knobs["graph"])}
        tx.insert("graphs", graph)
    tx.insert("channels", row)
    waiting = {*metadata.pending_acks, *metadata.rejected_by}
    for item in metadata.participants:
        member: Row = {"channel_id": metadata.channel_id, "agent_id": item.agent_id}
        member |= {"name": item.name or item.agent_id, "role": item.role.value}
        member |= {
            "position": item.order,
            "ack": "pending" if item.agent_id in waiting else "acked",
        }
        joined = seconds(item.joined_at, channel.file)
        tx.insert("channel_members", member | {"joined_at": joined or row["created_at"]})
    for seq, envelope in enumerate(channel.log, 1):
        at = seconds(envelope.created_at, channel.file)
        tx.insert("envelopes", _entry(envelope, seq, at or row["created_at"]))
    if not metadata.is_terminal():
        _go_on(ChannelTransaction(tx, context, row))
    return True


def _row(tx: Transaction, channel: Ag2Channel, state: str) -> Row:
    metadata, file = channel.metadata, channel.file
    graph = metadata.knobs.get("graph")
    created = seconds(metadata.created_at, file) or tx.now
    expires = seconds(metadata.expires_at, file)
    lives = None if expires is None else expires - created
    last = seconds(channel.log[-1].created_at, file) if channel.log else created
    if expires is not None and not metadata.is_terminal():
        # No hub ran since the last entry: that time counts against no life span.
        expires = tx.now + max(0.0, expires - (last or created))
    return {
        "channel_id": metadata.channel_id,
        "type": metadata.manifest.type,
        "version": metadata.manifest.version,
        "state": metadata.state.value,
        "creator_id": metadata.creator_id,
        "created_at": created,
        "expires_at": expires,
        "ttl": lives,
        "ttl_left": None,
        "closed_at": seconds(metadata.closed_at, file),
        "close_reason": metadata.close_reason or None,
        "parent_channel_id": metadata.parent_channel_id,
        "graph_hash": graph_hash(graph) if isinstance(graph, dict) else None,
        "knobs": stored_knobs(metadata.knobs),
        "labels": json.dumps(dict(metadata.labels)),
        "metadata": fixed_metadata(metadata.manifest, metadata.required_acks),
        "folded": state,
        "revision": 0,
        "seq": len(channel.log),
        "spoken": sum(map(is_turn, channel.log)),
        "turn_id": None,
        "turn_n": 0,
        "expected": None,
        "paused": 0,
        "tenant": "",
        "summary": None,
    }


def _go_on(channel: ChannelTransaction) -> None:
    """Close a channel that was never opened; give the expected participant its turn."""
    if channel.metadata.state is not ChannelState.ACTIVE:
        channel.end("not_opened_before_import")
    else:
        adapter = channel.before.adapter
        channel.give_turn(adapter.expected_next(channel.metadata, channel.state))
    channel.finish()


def _entry(envelope: Envelope, seq: int, at: float) -> Row:
    return {
        "channel_id": envelope.channel_id,
        "seq": seq,
        "envelope_id": envelope.envelope_id,
        "sender_id": envelope.sender_id,
        "event_type": envelope.event_type,
        "causation_id": envelope.causation_id,
        "idempotency_key": envelope.idempotency_key,
        "turn_id": None,
        "at": at,
        "audience": None if envelope.audience is None else json.dumps(envelope.audience),
        "body": envelope.to_json(),
    }


def _write_record(tx: Transaction, place: int, record: Mapping[str, Any]) -> bool:
    text = json.dumps(record, sort_keys=True)
    # The same line of the same log has the same id, so that a second import adds nothing.
    digest = hashlib.sha256(f"{place}\n{text}".encode()).hexdigest()[:32]
    row: Row = {"id": f"aud_{digest}", "at": tx.now, "kind": str(record.get("kind", "note"))}
    row |= {"payload": json.dumps({**record, "imported": True})}
    named = {name: _named(record.get(name)) for name in ("agent_id", "channel_id")}
    return tx.insert("audit", row | named)


def _named(value: Any) -> str | None:
    return value if isinstance(value, str) else None
