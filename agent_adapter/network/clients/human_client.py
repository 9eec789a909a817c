"""`HumanClient`: a person in a channel, with whatever page or prompt they sit at."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from agent_adapter.core.errors import NetworkError
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
    """A participant without a model: somebody else reads its messages and writes its answers.

    Messages are pushed to `on_envelope` callbacks, and can be pulled with `next_envelope` and
    `envelopes`; of unread ones the newest 10,000 are kept. The channel's log has all.
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
        """Say `text` in a channel; the id of the accepted envelope.

        Sent again with the same `message_id`, it is the same message: it is accepted once, and the
        first acceptance is returned. `causation_id` names the envelope that is answered, `turn_id`
        the turn (of `pending_turns`): `StaleTurn` when somebody has closed or taken it meanwhile.
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
        return await self._hub_client.pending_turns_for(self.agent_id)

    async def post_envelope(self, envelope: Envelope) -> str:
        """Send any envelope as this person; the id of the accepted one."""
        return await self.send_envelope(envelope)

    async def close_channel(self, channel_id: str, reason: str = "human_closed") -> ChannelMetadata:
        """Close a channel that the person is in; one that has ended stays as it is."""
        return await super().close_channel(channel_id, reason)

    def on_envelope(self, callback: Callback) -> None:
        """Call `callback` for each envelope that arrives, after those registered before it.

        What a callback raises is logged and hurts neither the channel nor the other callbacks.
        """
        self._callbacks.append(callback)

    def remove_envelope_callback(self, callback: Callback) -> None:
        """Call `callback` no more; one that was never registered is no error."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    async def next_envelope(
        self,
        *,
        predicate: Predicate | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # its public name
    ) -> Envelope:
        """The next envelope that arrives, or has arrived and was not pulled, and fits.

        Those before it that do not fit are passed over. `asyncio.TimeoutError` after `timeout`
        seconds; `NetworkError` when the person is disconnected.
        """
        async with asyncio.timeout(timeout):
            while True:
                envelope = await self._pulled()
                if envelope is None:
                    raise NetworkError(f"{self.name} is disconnected")
                if predicate is None or predicate(envelope):
                    return envelope

    async def envelopes(self) -> AsyncIterator[Envelope]:
        """Every envelope as it arrives, until the person is disconnected."""
        while (envelope := await self._pulled()) is not None:
            yield envelope

    async def disconnect(self) -> None:
        """Stop receiving, and release everyone who waits for a message."""
        await super().disconnect()
        self._arrived.set()

    def hub_lost(self, why: str) -> None:
        """What the link calls when there is no coming back to the hub."""
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
        """The oldest envelope not pulled yet; `None` at the end."""
        while not self._inbox:
            if not self.connected:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return self._inbox.popleft()
