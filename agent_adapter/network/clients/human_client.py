"""`HumanClient`: a person in a channel, behind a page or a prompt."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from agent_adapter.core.errors import NotConnected
from agent_adapter.flow.envelope import EV_TEXT, Envelope
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.clients.connection import HubConnection
from agent_adapter.network.clients.participant import ParticipantClient
from agent_adapter.network.clients.waiting import Predicate, from_elsewhere
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.rules import Rule
from agent_adapter.network.turns.turn_types import PendingTurn

_log = logging.getLogger("agent_adapter.network")

_KEPT = 10_000

Callback = Callable[[Envelope], Awaitable[None]]


class HumanClient(ParticipantClient):
    """A participant without a model: a person reads its messages and writes its answers.

    Envelopes are pushed to `on_envelope` callbacks and can be pulled with `next_envelope` and
    `envelopes`. Of envelopes that are not pulled, the newest 10,000 are kept.
    """

    def __init__(
        self,
        *,
        passport: Passport,
        resume: Resume,
        rule: Rule,
        hub_client: HubConnection,
        auto_ack_invites: bool = True,
    ) -> None:
        super().__init__(passport=passport, resume=resume, rule=rule, hub_client=hub_client)
        self._auto_ack = auto_ack_invites
        self._callbacks: list[Callback] = []
        self._inbox: deque[Envelope] = deque(maxlen=_KEPT)
        self._arrived = asyncio.Event()

    async def send(
        self,
        channel_id: str,
        text: str,
        *,
        audience: list[str] | None = None,
        causation_id: str | None = None,
        message_id: str | None = None,
        turn_id: str | None = None,
    ) -> str:
        """Send `text` to a channel; returns the id of the accepted envelope.

        A `message_id` makes the message idempotent: sent again, the first acceptance is returned.
        `causation_id` is the envelope that is answered, `turn_id` the turn (of `pending_turns`):
        `StaleTurn` if the turn has ended meanwhile.
        """
        return await self.send_envelope(
            Envelope(
                channel_id=channel_id,
                sender_id=self.agent_id,
                audience=audience,
                event_type=EV_TEXT,
                event_data={"text": text},
                causation_id=causation_id,
                idempotency_key=None if message_id is None else f"{self.agent_id}:{message_id}",
            ),
            answers=turn_id,
        )

    async def pending_turns(self) -> list[PendingTurn]:
        """The turns that wait for this person, oldest first."""
        self.check_connected()
        return await self.hub_client.pending_turns_for(self.agent_id)

    async def post_envelope(self, envelope: Envelope) -> str:
        """Send an envelope as this person; returns the id of the accepted one."""
        return await self.send_envelope(envelope)

    async def close_channel(self, channel_id: str, reason: str = "human_closed") -> ChannelMetadata:
        """Close a channel of the person; a channel that has ended is left unchanged."""
        return await super().close_channel(channel_id, reason)

    def on_envelope(self, callback: Callback) -> None:
        """Call `callback` for each envelope that arrives, in the order of registration.

        Exceptions of a callback are logged; the channel and other callbacks are not affected.
        """
        self._callbacks.append(callback)

    def remove_envelope_callback(self, callback: Callback) -> None:
        """Remove `callback`; an unknown one is ignored."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    async def next_envelope(
        self,
        *,
        predicate: Predicate | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # its public name
    ) -> Envelope:
        """The next envelope, waiting or yet to arrive, that `predicate` accepts.

        Envelopes before it are discarded. Raises `TimeoutError` after `timeout` seconds, and
        `NotConnected` if the person is disconnected.
        """
        async with asyncio.timeout(timeout):
            while True:
                envelope = await self._pulled()
                if envelope is None:
                    raise NotConnected(f"{self.name} is disconnected")
                if predicate is None or predicate(envelope):
                    return envelope

    async def envelopes(self) -> AsyncIterator[Envelope]:
        """Every envelope as it arrives, until the person is disconnected."""
        while (envelope := await self._pulled()) is not None:
            yield envelope

    async def disconnect(self) -> None:
        """Stop receiving; waiting calls of `next_envelope` raise `NotConnected`."""
        await super().disconnect()
        self._arrived.set()

    def hub_lost(self, why: str) -> None:
        """Called by the link when the hub is lost for good."""
        super().hub_lost(why)
        self._arrived.set()

    async def _received(self, envelope: Envelope) -> None:
        if not from_elsewhere(envelope, self._agent_id):
            return
        self._inbox.append(envelope)
        self._arrived.set()
        for callback in tuple(self._callbacks):
            try:
                await callback(envelope)
            except Exception:
                _log.exception(
                    "a callback of %s failed on %s of %s",
                    self.name,
                    envelope.event_type,
                    envelope.channel_id,
                )

    async def _pulled(self) -> Envelope | None:
        """The oldest envelope not pulled yet; `None` once disconnected."""
        while not self._inbox:
            if not self.connected:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return self._inbox.popleft()
