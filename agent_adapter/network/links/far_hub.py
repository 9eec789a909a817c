"""`FarHub`: a hub in another process, asked over a wire as if it were here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent_adapter.core.errors import NetworkError
from agent_adapter.flow.envelope import (
    Envelope,
)
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.channels.metadata import ChannelMetadata, ChannelState
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.links.connection import Connection, Socket
from agent_adapter.network.links.frames import Notify, TurnStart
from agent_adapter.network.links.hosted import Hosted
from agent_adapter.network.links.wire import error_to_wire
from agent_adapter.network.rules import Rule
from agent_adapter.network.turns.turn_types import PendingTurn, Receiver, TurnRef

__all__ = ["FarHub"]

_log = logging.getLogger("agent_adapter.network")

_GOODBYE_SECONDS = 5.0


class FarHub:
    """The methods of a hub that clients use, each asked over the wire.

    `adapters` are the types of channel that this process knows.
    """

    def __init__(
        self, dial: Callable[[], Awaitable[Socket]], *, reconnect_for: float = 60.0
    ) -> None:
        self.adapters = AdapterRegistry()
        self._hosted: dict[str, Hosted] = {}
        self._early: dict[str, list[Notify | TurnStart]] = {}
        self._registering = 0
        self._wire = Connection(
            dial,
            on_frame=self._arrived,
            on_return=self._returned,
            on_end=self._ended,
            reconnect_for=reconnect_for,
        )

    async def open(self) -> None:
        """Connect; the error says why that failed."""
        await self._wire.open()

    async def aclose(self) -> None:
        """Disconnect; the participants stay registered with the hub."""
        await self._wire.close()
        stopped = [task for hosted in self._hosted.values() for task in hosted.stop()]
        await asyncio.gather(*stopped, return_exceptions=True)
        self._hosted.clear()

    # --- participants -------------------------------------------------------------------------

    async def register_identity(
        self, passport: Passport, resume: Resume, rule: Rule | None = None
    ) -> Passport:
        """The passport with its id; the hub checks that this connection may go by its name."""
        params = {
            "passport": passport.to_dict(),
            "resume": resume.to_dict(),
            "rule": None if rule is None else rule.to_dict(),
        }
        self._registering += 1
        try:
            stamped = Passport.from_dict(await self._wire.ask("register", **params))
        finally:
            self._registering -= 1
        hosted = Hosted(self, stamped, params, self._wire.hub_time)
        self._hosted[stamped.agent_id or ""] = hosted
        return stamped

    def attach(self, agent_id: str, receiver: Receiver) -> None:
        """Hand `receiver` what has come for the participant, and what will."""
        self._hosted[agent_id].receiver = receiver
        for frame in self._early.pop(agent_id, []):
            self._arrived(frame)

    async def detach(self, agent_id: str) -> None:
        """Hand out nothing more; the hub gives the rounds under way back."""
        hosted = self._forget(agent_id)
        if hosted is None or not self._wire.is_up:
            return
        try:
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await self._wire.ask("leave", agent_id=agent_id)
        except (NetworkError, TimeoutError) as exc:
            _log.info("the hub was not told that %s left: %s", hosted.passport.name, exc)

    async def unregister(self, agent_id: str) -> None:
        """Forget a participant; its name is free again."""
        await self._wire.ask("unregister", agent_id=agent_id)
        self._forget(agent_id)

    async def get_agent(self, name_or_id: str) -> Passport:
        """The passport of a participant."""
        return Passport.from_dict(await self._wire.ask("get_agent", name_or_id=name_or_id))

    async def list_agents(
        self,
        *,
        capability: str | None = None,
        query: str | None = None,
        kind: str | None = None,
        limit: int = 50,
    ) -> list[Passport]:
        """Participants that fit."""
        found = await self._wire.ask(
            "list_agents", capability=capability, query=query, kind=kind, limit=limit
        )
        return [Passport.from_dict(item) for item in found]

    async def get_resume(self, agent_id: str) -> Resume:
        """What a participant can do."""
        return Resume.from_dict(await self._wire.ask("get_resume", agent_id=agent_id))

    async def get_rule(self, agent_id: str) -> Rule:
        """What a participant may do."""
        return Rule.from_dict(await self._wire.ask("get_rule", agent_id=agent_id))

    async def get_skill(self, agent_id: str) -> str | None:
        """The page that a participant has published about itself."""
        found: str | None = await self._wire.ask("get_skill", agent_id=agent_id)
        return found

    async def set_resume(self, agent_id: str, resume: Resume) -> None:
        """Replace what an own participant says it can do."""
        await self._wire.ask("set_resume", agent_id=agent_id, resume=resume.to_dict())

    async def set_rule(self, agent_id: str, rule: Rule) -> None:
        """Refused: rules are set where the hub is."""
        await self._wire.ask("set_rule", agent_id=agent_id, rule=rule.to_dict())

    async def set_skill(self, agent_id: str, skill_md: str | None) -> None:
        """Replace the page that an own participant publishes."""
        await self._wire.ask("set_skill", agent_id=agent_id, skill_md=skill_md)

    # --- channels -----------------------------------------------------------------------------

    async def create_channel(
        self,
        *,
        creator_id: str,
        manifest_type: str,
        manifest_version: int = 1,
        participants: Sequence[str],
        required_acks: int | None = None,
        ttl: str | int | None = None,
        knobs: Mapping[str, Any] | None = None,
        intent: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ChannelMetadata:
        """Open a channel; returns when it is active."""
        data = await self._wire.ask(
            "create_channel",
            creator_id=creator_id,
            manifest_type=manifest_type,
            manifest_version=manifest_version,
            participants=list(participants),
            required_acks=required_acks,
            ttl=ttl,
            knobs=None if knobs is None else dict(knobs),
            intent=intent,
            labels=None if labels is None else dict(labels),
        )
        return ChannelMetadata.from_dict(data)

    async def post_envelope(
        self,
        envelope: Envelope,
        *,
        turn: TurnRef | None = None,
        adopted: Sequence[str] = (),
        answers: str | None = None,
    ) -> str:
        """Accept an envelope; its id."""
        if envelope.idempotency_key is None:
            # Asked again after a cut, or of a hub that was started anew, it is the same message.
            envelope = replace(envelope, idempotency_key=self._wire.new_key())
        accepted: str = await self._wire.ask(
            "post_envelope",
            envelope=envelope.to_dict(),
            turn=_ref(turn),
            adopted=list(adopted),
            answers=answers,
        )
        return accepted

    async def close_channel(self, channel_id: str, reason: str = "") -> ChannelMetadata:
        """Close a channel."""
        data = await self._wire.ask("close_channel", channel_id=channel_id, reason=reason)
        return ChannelMetadata.from_dict(data)

    async def get_channel(self, channel_id: str) -> ChannelMetadata:
        """All about a channel but its messages."""
        return ChannelMetadata.from_dict(await self._wire.ask("get_channel", channel_id=channel_id))

    async def list_channels(
        self,
        *,
        agent_id: str | None = None,
        state: ChannelState | str | None = None,
        limit: int = 50,
    ) -> list[ChannelMetadata]:
        """Channels that participants of this process are in, the newest first."""
        wanted = None if state is None else ChannelState(state).value
        found = await self._wire.ask("list_channels", agent_id=agent_id, state=wanted, limit=limit)
        return [ChannelMetadata.from_dict(item) for item in found]

    async def read_wal(
        self, channel_id: str, since: int = 0, until: int | None = None
    ) -> list[Envelope]:
        """The log; what no participant of this process may see is blanked out."""
        found: list[Envelope] = []
        while until is None or since + len(found) < until:
            answer = await self._wire.ask(
                "read_wal", channel_id=channel_id, since=since + len(found), until=until
            )
            found += [Envelope.from_dict(item) for item in answer["envelopes"]]
            if not answer["more"]:
                break
        return found

    async def window(
        self, channel_id: str, participant_id: str, recent_n: int
    ) -> Sequence[Envelope]:
        """The newest texts and packets that an own participant may see, oldest first."""
        found = await self._wire.ask(
            "window", channel_id=channel_id, participant_id=participant_id, recent_n=recent_n
        )
        return [Envelope.from_dict(item) for item in found]

    async def adapter_state(self, channel_id: str) -> Any:
        """The folded state of a channel."""
        answer = await self._wire.ask("adapter_state", channel_id=channel_id)
        metadata = ChannelMetadata.from_dict(answer["metadata"])
        adapter = self.adapters.get(metadata.manifest.type, metadata.manifest.version)
        return adapter.state_from_dict(metadata, answer["state"])

    # --- turns --------------------------------------------------------------------------------

    async def pending_turns_for(self, agent_id: str) -> list[PendingTurn]:
        """Turns of an own participant that have not ended."""
        found = await self._wire.ask("pending_turns_for", agent_id=agent_id)
        return [PendingTurn(**item) for item in found]

    async def stage(self, ref: TurnRef, call_key: str | None, body: Mapping[str, Any]) -> None:
        """Keep a change of the running round until its packet."""
        await self._wire.ask("stage", turn=_ref(ref), call_key=call_key, body=dict(body))

    async def end_silent_turn(self, ref: TurnRef, adopted: Sequence[str] = ()) -> None:
        """End a round that says nothing."""
        await self._wire.ask("end_silent_turn", turn=_ref(ref), adopted=list(adopted))

    async def park_turn(self, ref: TurnRef, waits_for: Sequence[str]) -> None:
        """Set a turn aside until a person has decided."""
        await self._wire.ask("park_turn", turn=_ref(ref), waits_for=list(waits_for))

    async def wake_turn(self, turn_id: str) -> None:
        """Let a parked turn go on: what it waits for was decided in this process."""
        await self._wire.ask("wake_turn", turn_id=turn_id)

    async def fail_turn(self, ref: TurnRef, error: BaseException) -> None:
        """Count a failed attempt."""
        kind, message = error_to_wire(error)
        if not isinstance(error, NetworkError):
            message = f"{type(error).__name__}: {error}"
        await self._wire.ask("fail_turn", turn=_ref(ref), error=kind, message=message[:2000])

    async def release_turn(self, ref: TurnRef) -> None:
        """Give a turn back without counting the attempt."""
        await self._wire.ask("release_turn", turn=_ref(ref))

    async def turn_over(self, attempt: tuple[str, int], error: str, message: str) -> None:
        """The round has ended here; `error` is the kind of what it failed with, or empty."""
        turn = {"turn_id": attempt[0], "attempt": attempt[1]}
        await self._wire.ask("turn_over", turn=turn, error=error, message=message)

    # --- what the hub sends of itself ---------------------------------------------------------

    def _arrived(self, frame: Notify | TurnStart) -> None:
        hosted = self._hosted.get(frame.agent_id)
        if hosted is not None and hosted.receiver is not None:
            hosted.take(frame)
        elif hosted is not None or self._registering:
            # The hub may speak to a participant before the answer to its registration is here.
            self._early.setdefault(frame.agent_id, []).append(frame)

    def _forget(self, agent_id: str) -> Hosted | None:
        hosted = self._hosted.pop(agent_id, None)
        self._early.pop(agent_id, None)
        if hosted is not None:
            hosted.stop()
        return hosted

    async def _returned(self) -> None:
        """Tell the hub after a cut who is here, and what has come so far."""
        for hosted in list(self._hosted.values()):
            data = await self._wire.ask(
                "register",
                **hosted.params,
                cursors=dict(hosted.cursors),
                seen_at=hosted.seen_at,
                running=hosted.running,
            )
            if data["agent_id"] != hosted.passport.agent_id:
                name = hosted.passport.name
                raise NetworkError(f"it is another hub: {name} has another id there; register anew")

    def _ended(self, why: str) -> None:
        for hosted in self._hosted.values():
            hear: Any = getattr(hosted.receiver, "hub_lost", None)
            if hear is not None:
                hear(why)


def _ref(turn: TurnRef | None) -> dict[str, Any] | None:
    return None if turn is None else {"turn_id": turn.turn_id, "attempt": turn.attempt}
