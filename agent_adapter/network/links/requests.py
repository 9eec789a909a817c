"""What a process elsewhere may ask of a hub, and what each question is checked for.

Each handler takes the session that asks and the parameters, and gives JSON. A session acts only
for participants that it has registered, and sees only the channels that they are in.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Protocol

from agent_adapter.core.errors import AccessDeniedError, NotFoundError, StaleTurn
from agent_adapter.flow.envelope import Envelope, visible_to
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.identity import Resume
from agent_adapter.network.links.params import Params
from agent_adapter.network.links.wire import failure_from_wire, hidden
from agent_adapter.network.turns.turn_types import TurnRef
from agent_adapter.store import taint, waits

if TYPE_CHECKING:
    from agent_adapter.network.hub.hub import Hub
    from agent_adapter.network.links.seats import Seat

__all__ = ["OPERATIONS", "READS", "Session"]

_PAGE_BYTES = 4 * 1024 * 1024
_PAGE = 1000

Handler = Callable[["Session", "Params"], Awaitable[Any]]


class Session(Protocol):
    """A connection, as far as requests need it."""

    hub: Hub

    @property
    def seats(self) -> Mapping[str, Seat]:
        """The participants that it has registered, by id."""
        ...

    def is_trusted(self, name: str) -> bool:
        """Whether what that participant says is taken as one's own."""
        ...

    async def register(self, params: Params) -> dict[str, Any]:
        """Take a participant on."""
        ...

    async def leave(self, agent_id: str) -> None:
        """Let a participant go."""
        ...


# --- participants ---------------------------------------------------------------------------------


async def _register(session: Session, params: Params) -> Any:
    return await session.register(params)


async def _leave(session: Session, params: Params) -> Any:
    await session.leave(_own(session, params.text("agent_id")).agent_id)


async def _unregister(session: Session, params: Params) -> Any:
    agent_id = _own(session, params.text("agent_id")).agent_id
    await session.leave(agent_id)
    await session.hub.unregister(agent_id)


async def _get_agent(session: Session, params: Params) -> Any:
    return (await session.hub.get_agent(params.text("name_or_id"))).to_dict()


async def _list_agents(session: Session, params: Params) -> Any:
    found = await session.hub.list_agents(
        capability=params.maybe_text("capability"),
        query=params.maybe_text("query"),
        kind=params.maybe_text("kind"),
        limit=min(params.whole("limit", 50), _PAGE),
    )
    return [item.to_dict() for item in found]


async def _get_resume(session: Session, params: Params) -> Any:
    return (await session.hub.get_resume(params.text("agent_id"))).to_dict()


async def _get_rule(session: Session, params: Params) -> Any:
    agent_id = _own(session, params.text("agent_id")).agent_id
    return (await session.hub.get_rule(agent_id)).to_dict()


async def _get_skill(session: Session, params: Params) -> Any:
    return await session.hub.get_skill(params.text("agent_id"))


async def _set_resume(session: Session, params: Params) -> Any:
    agent_id = _own(session, params.text("agent_id")).agent_id
    await session.hub.set_resume(agent_id, Resume.from_dict(params.record("resume")))


async def _set_rule(session: Session, params: Params) -> Any:
    raise AccessDeniedError(
        "a rule is set where the hub runs: whom it binds cannot loosen it over a connection"
    )


async def _set_skill(session: Session, params: Params) -> Any:
    agent_id = _own(session, params.text("agent_id")).agent_id
    await session.hub.set_skill(agent_id, params.maybe_text("skill_md"))


# --- channels -------------------------------------------------------------------------------------


async def _create_channel(session: Session, params: Params) -> Any:
    creator = _own(session, params.text("creator_id"))
    metadata = await session.hub.create_channel(
        creator_id=creator.agent_id,
        manifest_type=params.text("manifest_type"),
        manifest_version=params.whole("manifest_version", 1),
        participants=params.texts("participants"),
        required_acks=params.maybe_whole("required_acks"),
        ttl=params.raw("ttl"),
        knobs=params.maybe_record("knobs"),
        intent=params.maybe_text("intent"),
        labels=params.maybe_record("labels"),
    )
    return metadata.to_dict()


async def _post_envelope(session: Session, params: Params) -> Any:
    envelope = Envelope.from_dict(params.record("envelope"))
    if not envelope.sender_id and len(session.seats) == 1:
        envelope = replace(envelope, sender_id=next(iter(session.seats)))
    sender = _own(session, envelope.sender_id)
    turn, depth = params.maybe_record("turn"), envelope.depth
    if turn is None:
        depth = max(depth, sender.depth_floor())
    ref = None if turn is None else sender.round_of(turn).ref
    envelope = replace(envelope, envelope_id="", created_at="", depth=depth)
    await _tainted(session, sender, envelope)
    return await session.hub.post_envelope(
        envelope,
        turn=ref,
        adopted=params.texts("adopted"),
        answers=params.maybe_text("answers"),
    )


async def _close_channel(session: Session, params: Params) -> Any:
    metadata = await _channel(session, params)
    closed = await session.hub.close_channel(metadata.channel_id, params.text("reason"))
    return closed.to_dict()


async def _get_channel(session: Session, params: Params) -> Any:
    return (await _channel(session, params)).to_dict()


async def _list_channels(session: Session, params: Params) -> Any:
    asked = params.maybe_text("agent_id")
    limit = min(params.whole("limit", 50), _PAGE)
    found: dict[str, ChannelMetadata] = {}
    for agent_id in session.seats if asked is None else [_own(session, asked).agent_id]:
        for item in await session.hub.list_channels(
            agent_id=agent_id, state=params.maybe_text("state"), limit=limit
        ):
            found[item.channel_id] = item
    newest = sorted(found.values(), key=lambda item: item.created_at, reverse=True)
    return [item.to_dict() for item in newest[:limit]]


async def _read_wal(session: Session, params: Params) -> Any:
    channel_id = (await _channel(session, params)).channel_id
    since, until = params.whole("since"), params.maybe_whole("until")
    most = since + _PAGE if until is None else min(until, since + _PAGE)
    envelopes: list[dict[str, Any]] = []
    size = 0
    page = await session.hub.read_wal(channel_id, since, most)
    for envelope in page:
        seen = any(visible_to(envelope, agent_id) for agent_id in session.seats)
        data = (envelope if seen else hidden(channel_id)).to_dict()
        size += len(json.dumps(data))
        if envelopes and size > _PAGE_BYTES:
            return {"envelopes": envelopes, "more": True}
        envelopes.append(data)
    more = len(page) == _PAGE and (until is None or until > most)
    return {"envelopes": envelopes, "more": more}


async def _window(session: Session, params: Params) -> Any:
    channel_id = (await _channel(session, params)).channel_id
    reader = _own(session, params.text("participant_id")).agent_id
    found = await session.hub.window(channel_id, reader, min(params.whole("recent_n"), _PAGE + 1))
    return [item.to_dict() for item in found]


async def _adapter_state(session: Session, params: Params) -> Any:
    metadata = await _channel(session, params)
    adapter = session.hub.adapters.get(metadata.manifest.type, metadata.manifest.version)
    state = await session.hub.adapter_state(metadata.channel_id)
    return {"metadata": metadata.to_dict(), "state": adapter.state_to_dict(state)}


# --- turns ----------------------------------------------------------------------------------------


async def _pending_turns_for(session: Session, params: Params) -> Any:
    agent_id = _own(session, params.text("agent_id")).agent_id
    return [asdict(item) for item in await session.hub.pending_turns_for(agent_id)]


async def _stage(session: Session, params: Params) -> Any:
    ref = _ref(session, params)
    await session.hub.stage(ref, params.maybe_text("call_key"), params.record("body"))


async def _end_silent_turn(session: Session, params: Params) -> Any:
    ref = _ref(session, params)
    await session.hub.end_silent_turn(ref, params.texts("adopted"))


async def _park_turn(session: Session, params: Params) -> Any:
    ref = _ref(session, params)
    await session.hub.park_turn(ref, params.texts("waits_for"))


async def _wake_turn(session: Session, params: Params) -> Any:
    turn_id, store = params.text("turn_id"), session.hub.store
    turn = await store.read(lambda tx: tx.get("turns", turn_id))
    if turn is None or turn["agent_id"] not in session.seats:
        raise NotFoundError(f"there is no turn {turn_id} here")
    await store.write(lambda tx: waits.wake_turn(tx, turn_id))
    await session.hub.run_due()


async def _fail_turn(session: Session, params: Params) -> Any:
    ref = _ref(session, params)
    error = failure_from_wire(params.text("error"), params.text("message"))
    await session.hub.fail_turn(ref, error)


async def _release_turn(session: Session, params: Params) -> Any:
    ref = _ref(session, params)
    await session.hub.release_turn(ref)


async def _turn_over(session: Session, params: Params) -> Any:
    turn = params.record("turn")
    for seat in session.seats.values():
        found = seat.rounds.get(str(turn.get("turn_id")))
        if found is not None and found.ref.attempt == turn.get("attempt"):
            seat.end(found, params.text("error"), params.text("message"))


OPERATIONS: Mapping[str, Handler] = {
    "register": _register,
    "leave": _leave,
    "unregister": _unregister,
    "get_agent": _get_agent,
    "list_agents": _list_agents,
    "get_resume": _get_resume,
    "get_rule": _get_rule,
    "get_skill": _get_skill,
    "set_resume": _set_resume,
    "set_rule": _set_rule,
    "set_skill": _set_skill,
    "create_channel": _create_channel,
    "post_envelope": _post_envelope,
    "close_channel": _close_channel,
    "get_channel": _get_channel,
    "list_channels": _list_channels,
    "read_wal": _read_wal,
    "window": _window,
    "adapter_state": _adapter_state,
    "pending_turns_for": _pending_turns_for,
    "stage": _stage,
    "end_silent_turn": _end_silent_turn,
    "park_turn": _park_turn,
    "wake_turn": _wake_turn,
    "fail_turn": _fail_turn,
    "release_turn": _release_turn,
    "turn_over": _turn_over,
}
"""Every question, by the name that a request gives as its `op`."""

READS = frozenset(
    {
        "get_agent",
        "list_agents",
        "get_resume",
        "get_rule",
        "get_skill",
        "get_channel",
        "list_channels",
        "read_wal",
        "window",
        "adapter_state",
        "pending_turns_for",
    }
)
"""Questions that change nothing: asked again after a cut, they are answered anew."""


def _own(session: Session, agent_id: str) -> Seat:
    seat = session.seats.get(agent_id)
    if seat is None:
        raise _not_own(session, agent_id)
    return seat


def _not_own(session: Session, agent_id: str) -> AccessDeniedError:
    own = ", ".join(f"{item.passport.name} ({item.agent_id})" for item in session.seats.values())
    return AccessDeniedError(
        f"this connection acts for {own or 'nobody yet'}, not for {agent_id!r}; register it first"
    )


async def _channel(session: Session, params: Params) -> ChannelMetadata:
    channel_id = params.text("channel_id")
    metadata = await session.hub.get_channel(channel_id)
    if not any(agent_id in session.seats for agent_id in metadata.participant_ids()):
        raise NotFoundError(f"there is no channel {channel_id!r} here")
    return metadata


def _ref(session: Session, params: Params) -> TurnRef:
    """The hub's own name of the attempt that a process elsewhere names."""
    turn = params.record("turn")
    for seat in session.seats.values():
        if turn.get("turn_id") in seat.rounds:
            return seat.round_of(turn).ref
    raise StaleTurn(f"turn {turn.get('turn_id')} is not under way here")


async def _tainted(session: Session, sender: Seat, envelope: Envelope) -> None:
    """Mark the channel before it has the words of somebody who is not trusted."""
    name = sender.passport.name
    if session.is_trusted(name):
        return
    scope, label = f"thread::{envelope.channel_id}", f"remote participant {name}"
    await session.hub.store.write(lambda tx: taint.mark(tx, [scope], label))
