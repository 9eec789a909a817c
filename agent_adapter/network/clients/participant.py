"""`ParticipantClient`: the common base of agents and people; `Channel`: their channel handle."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent_adapter.core.errors import AgentAdapterError, NotConnected, NotFoundError, ProtocolError
from agent_adapter.exec.scope import current_run_scope
from agent_adapter.flow.envelope import (
    EV_CHANNEL_INVITE,
    EV_CHANNEL_INVITE_ACK,
    EV_CHANNEL_INVITE_REJECT,
    EV_TEXT,
    Envelope,
)
from agent_adapter.network.channels.metadata import ChannelMetadata, ChannelState
from agent_adapter.network.clients.connection import HubConnection
from agent_adapter.network.clients.waiting import (
    Predicate,
    Wakes,
    from_elsewhere,
    wait_for_event,
)
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.rules import Rule
from agent_adapter.network.turns.turn_types import RunTurn

_log = logging.getLogger("agent_adapter.network")


class Channel:
    """One participant's handle of a channel; `metadata` is a snapshot that `info()` renews."""

    __slots__ = ("_client", "metadata")

    def __init__(self, *, metadata: ChannelMetadata, client: ParticipantClient) -> None:
        self.metadata = metadata
        self._client = client

    @property
    def channel_id(self) -> str:
        """The channel's id."""
        return self.metadata.channel_id

    @property
    def state(self) -> ChannelState:
        """The channel's lifecycle state at the last `info()`."""
        return self.metadata.state

    async def send(
        self,
        content: str,
        *,
        audience: list[str] | None = None,
        causation_id: str | None = None,
        event_type: str = EV_TEXT,
        event_data: dict[str, Any] | None = None,
        depth: int | None = None,
    ) -> str:
        """Send a message as the participant; returns the id of the accepted envelope.

        `content` is the text of an `EV_TEXT`; other events take `event_data`. `audience` holds the
        ids of participants who may see it, `None` is everybody. `depth` counts delegations; inside
        a turn its default is one more than the depth of the message that the turn answers. Raises
        `ProtocolError`, with nothing written, if it is not the participant's turn or the channel
        has ended.
        """
        return await self._client.send_envelope(
            Envelope(
                channel_id=self.channel_id,
                sender_id=self._client.agent_id,
                audience=audience,
                event_type=event_type,
                event_data={"text": content} if event_data is None else event_data,
                causation_id=causation_id,
                depth=self._client.next_depth() if depth is None else depth,
            )
        )

    async def info(self) -> ChannelMetadata:
        """The channel as it is now."""
        self.metadata = await self._client.hub_client.get_channel(self.channel_id)
        return self.metadata

    async def close(self, reason: str = "") -> ChannelMetadata:
        """Close the channel; a channel that has ended is left unchanged."""
        self.metadata = await self._client.close_channel(self.channel_id, reason)
        return self.metadata

    def is_terminal(self) -> bool:
        """Whether the channel had ended at the last `info()`."""
        return self.metadata.is_terminal()

    def __repr__(self) -> str:
        return f"Channel({self.channel_id}, {self.metadata.manifest.type}, {self.state})"


class ParticipantClient:
    """A registered participant, in the program that runs it.

    Attributes:
        passport: its identity record.
        resume: its résumé; change it with `set_resume`.
        rule: its permissions and limits; change them with `set_rule`.
        hub_client: the client that it was registered with.
    """

    def __init__(
        self, *, passport: Passport, resume: Resume, rule: Rule, hub_client: HubConnection
    ) -> None:
        self.passport = passport
        self._agent_id = passport.agent_id or ""
        self.resume = resume
        self.rule = rule
        self.hub_client = hub_client
        self._wakes = Wakes()
        self._auto_ack = True
        self._acks: set[asyncio.Task[None]] = set()
        self._inboxes: dict[str, asyncio.Queue[Envelope]] = {}

    @property
    def agent_id(self) -> str:
        """The id that the hub gave it."""
        if not self._agent_id:
            raise NotConnected(f"{self.passport.name} is not registered with a hub")
        return self._agent_id

    @property
    def name(self) -> str:
        """Its name within the hub."""
        return self.passport.name

    @property
    def connected(self) -> bool:
        """Whether it still receives messages and turns."""
        return self._wakes.ended is None

    @property
    def run_turn(self) -> RunTurn | None:
        """Runs one round; `None` for a person."""
        return None

    async def open(
        self,
        *,
        type: str,
        target: str | Sequence[str],
        ttl: str | int | None = None,
        knobs: Mapping[str, Any] | None = None,
        intent: str | None = None,
        labels: Mapping[str, str] | None = None,
        required_acks: int | None = None,
    ) -> Channel:
        """Open a channel with the participants that `target` names, by name or id.

        Returns when the channel is active. Raises `ProtocolError`, with no channel left open, if
        the channel is invalid, or an invitation is declined or not answered in time.
        """
        self.check_connected()
        targets = [target] if isinstance(target, str) else list(target)
        hub = await self.hub_client.hub_like()
        ids = [(await hub.get_agent(item)).agent_id or "" for item in targets]
        metadata = await hub.create_channel(
            creator_id=self.agent_id,
            manifest_type=type,
            participants=ids,
            required_acks=required_acks,
            ttl=ttl,
            knobs=knobs,
            intent=intent,
            labels=labels,
        )
        return Channel(metadata=metadata, client=self)

    async def channel(self, channel_id: str) -> Channel:
        """The handle of an existing channel of the participant, for example after a restart.

        Raises `NotFoundError` if the participant is not in it.
        """
        self.check_connected()
        metadata = await self.hub_client.get_channel(channel_id)
        if self.agent_id not in metadata.participant_ids():
            raise NotFoundError(
                f"channel not found: there is no channel {channel_id!r} that {self.name} is in"
            )
        return Channel(metadata=metadata, client=self)

    async def wait_for_channel_event(
        self,
        *,
        channel_id: str,
        predicate: Predicate,
        timeout: float = 300.0,  # noqa: ASYNC109  # its public name
    ) -> Envelope:
        """The first envelope of the channel, sent by others or the hub, that `predicate` accepts.

        Reads the log from its start, then waits for new entries. Raises `TimeoutError` after
        `timeout` seconds, or at once if the channel has ended without such an envelope.
        """
        self.check_connected()
        return await wait_for_event(
            await self.hub_client.hub_like(),
            self._wakes,
            agent_id=self.agent_id,
            channel_id=channel_id,
            predicate=predicate,
            timeout=timeout,
        )

    async def send_envelope(self, envelope: Envelope, *, answers: str | None = None) -> str:
        """Send an envelope as this participant; returns the id of the accepted one.

        An empty `sender_id` is filled in; any other than the participant's own raises
        `ProtocolError`. `answers` is the turn that is answered: `StaleTurn` if it has ended.
        """
        self.check_connected()
        if not envelope.sender_id:
            envelope = replace(envelope, sender_id=self.agent_id)
        if envelope.sender_id != self.agent_id:
            raise ProtocolError(
                f"{self.name} ({self.agent_id}) cannot send as {envelope.sender_id!r}"
            )
        hub = await self.hub_client.hub_like()
        return await hub.post_envelope(envelope, answers=answers)

    async def close_channel(self, channel_id: str, reason: str = "") -> ChannelMetadata:
        """Close a channel of the participant; a channel that has ended is left unchanged."""
        self.check_connected()
        return await self.hub_client.close_channel(
            channel_id, reason=reason, sender_id=self.agent_id
        )

    async def accept_invite(self, invite: Envelope) -> str:
        """Agree to take part in the channel of an `EV_CHANNEL_INVITE`."""
        return await self._answer_invite(invite, EV_CHANNEL_INVITE_ACK, {})

    async def reject_invite(self, invite: Envelope, reason: str = "") -> str:
        """Decline to take part; the opener of the channel gets `reason`."""
        return await self._answer_invite(invite, EV_CHANNEL_INVITE_REJECT, {"reason": reason})

    def next_depth(self) -> int:
        """The delegation depth of a message sent now: one more than that of the current turn."""
        around = self.current_handling_depth
        return 0 if around is None else around + 1

    @property
    def current_handling_depth(self) -> int | None:
        """The depth of the message that the current turn answers; `None` outside of a turn."""
        scope = current_run_scope()
        turn = None if scope is None else scope.extras.get("turn")
        if turn is None:
            return None
        return 0 if turn.trigger is None else int(turn.trigger.depth)

    async def set_resume(self, resume: Resume) -> None:
        """Replace the participant's résumé; the hub's observed record stays."""
        await self.hub_client.set_resume(self.agent_id, resume)
        self.resume = await self.hub_client.get_resume(self.agent_id)

    async def set_rule(self, rule: Rule) -> None:
        """Change what the participant may do."""
        await self.hub_client.set_rule(self.agent_id, rule)
        self.rule = rule

    async def deliver(self, envelope: Envelope, seq: int = 0) -> None:
        """Called by the hub for each envelope that the participant may see."""
        if not self.connected:
            return
        if (
            self._auto_ack
            and envelope.event_type == EV_CHANNEL_INVITE
            and envelope.sender_id != self._agent_id
        ):
            # A task of its own: later envelopes must not wait for the acceptance of this one.
            task = asyncio.create_task(self._ack(envelope))
            self._acks.add(task)
            task.add_done_callback(self._acks.discard)
        if envelope.channel_id in self._inboxes and from_elsewhere(envelope, self._agent_id):
            self._inboxes[envelope.channel_id].put_nowait(envelope)
        await self._received(envelope)
        self._wakes.wake(envelope.channel_id)

    async def receive(self, envelope: Envelope) -> None:
        """Handle an envelope as if the hub had delivered it now."""
        await self.deliver(envelope)

    def ensure_channel_inbox(self, channel_id: str) -> asyncio.Queue[Envelope]:
        """The queue of what arrives in a channel from the first call on.

        `wait_for_channel_event` needs none: it reads the channel's log.
        """
        return self._inboxes.setdefault(channel_id, asyncio.Queue())

    def discard_channel_inbox(self, channel_id: str) -> None:
        """Forget the queue of a channel."""
        self._inboxes.pop(channel_id, None)

    async def disconnect(self) -> None:
        """Stop receiving; the participant stays registered and can register again by name."""
        if self.connected:
            self._wakes.end(f"{self.name} is disconnected")
            for task in tuple(self._acks):
                task.cancel()
            await self.hub_client.drop(self)

    def hub_lost(self, why: str) -> None:
        """Called by the link when the hub is lost for good."""
        self._wakes.end(f"{self.name} has lost its hub: {why}")

    async def close(self) -> None:
        """The same as `disconnect`."""
        await self.disconnect()

    async def unregister(self) -> None:
        """Remove the participant from the hub; its name is free again."""
        if self.connected:
            self._wakes.end(f"{self.name} is disconnected: it is no longer registered")
            await self.hub_client.drop(self, unregister=True)

    def check_connected(self) -> None:
        """Raises `NotConnected` once the participant has been disconnected."""
        if self._wakes.ended is not None:
            raise NotConnected(f"{self._wakes.ended}; register it again")

    async def _received(self, envelope: Envelope) -> None:
        """Handle an envelope; subclasses override it."""

    async def _ack(self, invite: Envelope) -> None:
        try:
            await self.accept_invite(invite)
        except AgentAdapterError as exc:
            # The opener's invitation expires by itself; the invited side has nothing to fix.
            _log.warning("%s could not accept %s: %s", self.name, invite.channel_id, exc)

    async def _answer_invite(self, invite: Envelope, event: str, data: dict[str, Any]) -> str:
        if invite.event_type != EV_CHANNEL_INVITE:
            raise ProtocolError(
                f"an invitation is an {EV_CHANNEL_INVITE!r}, not {invite.event_type!r}"
            )
        return await self.send_envelope(
            Envelope(
                channel_id=invite.channel_id,
                sender_id=self.agent_id,
                audience=None,
                event_type=event,
                event_data={"channel_id": invite.channel_id, **data},
                causation_id=invite.envelope_id,
            )
        )

    async def __aenter__(self) -> ParticipantClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {self.passport.agent_id})"
