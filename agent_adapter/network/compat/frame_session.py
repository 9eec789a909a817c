"""`FrameSession`: a hub as one connection of AG2's frames may use it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agent_adapter.core.errors import AccessDeniedError, AuthError, NetworkError, NotFoundError
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.clients.waiting import from_elsewhere
from agent_adapter.network.compat.endpoints import LinkEndpoint
from agent_adapter.network.compat.frames import (
    ErrorFrame,
    Frame,
    HelloFrame,
    NotifyFrame,
    PingFrame,
    PongFrame,
    ReceiptFrame,
    RequestFrame,
    ResponseFrame,
    WelcomeFrame,
)
from agent_adapter.network.identity import AuthBlock, Passport, Resume
from agent_adapter.network.links.remote_participant import RemoteParticipant
from agent_adapter.network.links.remote_participants import RemoteParticipants
from agent_adapter.network.links.served_hub import ServedHub
from agent_adapter.network.links.session_hub import SessionHub
from agent_adapter.network.links.wire import error_to_wire
from agent_adapter.network.rules import Rule
from agent_adapter.network.turns.turn_types import TurnRef

_log = logging.getLogger("agent_adapter.network")

_CODES = {"auth-error": "auth_failed"}
_NOT_HERE = ("adapter_state", "check_turn", "fail_turn", "leave", "release_turn", "turn_over")

Cursors = dict[tuple[str, str], str]
"""The last envelope that a participant acknowledged, by participant and channel."""


class FrameSession(SessionHub):
    """Answers the frames of one endpoint; `cursors` are shared by all sessions of the hub.

    Its participants take their turns themselves, by sending: the hub starts none for them.
    """

    def __init__(self, hub: ServedHub, endpoint: LinkEndpoint, cursors: Cursors) -> None:
        super().__init__(RemoteParticipants(hub, (), 0.0), self, "", ["*"])
        self._endpoint = endpoint
        self._cursors = cursors

    async def run(self) -> None:
        """Answer until the connection ends; then its participants are detached."""
        try:
            async for frame in self._endpoint.frames():
                await self._answer(frame)
        except asyncio.CancelledError:
            raise
        except Exception:
            _log.exception("the connection %s was dropped", self._endpoint.endpoint_id)
        finally:
            for agent_id in tuple(self.participants):
                await self.leave(agent_id)

    async def push(self, frame: Any) -> None:
        """Nothing: the frames of the package's own connections are not for this one."""

    async def _answer(self, frame: Frame) -> None:
        send = self._endpoint.send_frame
        if isinstance(frame, HelloFrame):
            try:
                await self._welcome(frame)
            except NetworkError as exc:
                await send(ErrorFrame(_code(exc.kind), str(exc)))
        elif isinstance(frame, RequestFrame):
            await send(await self._response(frame))
        elif isinstance(frame, ReceiptFrame):
            self._note(frame)
        elif isinstance(frame, PingFrame):
            await send(PongFrame())

    async def _response(self, frame: RequestFrame) -> ResponseFrame:
        try:
            result = await self.perform(frame.op, dict(frame.params))
        except Exception as exc:
            if not isinstance(exc, NetworkError):
                _log.exception("the request %s failed", frame.op)
            kind, message = error_to_wire(exc)
            return ResponseFrame(
                frame.request_id, False, error_code=_code(kind), error_message=message
            )
        return ResponseFrame(frame.request_id, True, result)

    async def perform(self, op: str, params: Mapping[str, Any]) -> Any:
        """The result of an operation as JSON; see `SessionHub.perform`."""
        if op in _NOT_HERE:
            raise AccessDeniedError(f"{op!r} is for the package's own connections")
        result = await super().perform(op, params)
        return result["envelopes"] if op == "read_wal" else result

    # --- participants -------------------------------------------------------------------------

    async def _welcome(self, hello: HelloFrame) -> None:
        known = self._hub.find_agent_id(hello.name)
        if known is None:
            raise NotFoundError(f"unknown name: {hello.name}")
        passport = await self._hub.get_agent(known)
        if passport.effective_kind == "remote_agent":
            raise AuthError(f"{hello.name} is a remote agent: its proxy speaks for it")
        auth = AuthBlock(scheme=hello.auth_scheme, claim=dict(hello.auth_claim))
        await self._hub.authenticate(passport, auth, passport)
        await self.bind(passport)
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        await self._endpoint.send_frame(WelcomeFrame(self._endpoint.endpoint_id, now))
        if hello.since_envelope_id is not None:
            await self._replay(known, hello.since_envelope_id)

    async def register(
        self,
        passport: Passport,
        resume: Resume,
        rule: Rule | None,
        cursors: Mapping[str, str] | None,
        seen_at: str | None,
        running: Sequence[TurnRef],
    ) -> Passport:
        """Register a participant of this connection."""
        if passport.kind == "remote_agent":
            raise AccessDeniedError("a remote agent is registered by the hub's own program")
        stamped = await self._hub.register_identity(passport, resume, rule=rule, claimed=True)
        await self.bind(stamped)
        return stamped

    async def bind(self, passport: Passport) -> None:
        """Deliver to this connection what the participant may see; an earlier connection ends."""
        agent_id = passport.agent_id or ""
        if self._hub.is_connected(agent_id):
            await self._hub.detach(agent_id)
        self.bind_free(passport)

    def bind_free(self, passport: Passport) -> None:
        """Deliver to this connection what a participant without a connection may see."""
        agent_id = passport.agent_id or ""
        self.participants[agent_id] = RemoteParticipant(self._hub, passport, "")
        self._hub.attach(agent_id, _Receiver(agent_id, self._endpoint, self._detached))
        self._endpoint.agent_id = agent_id

    async def leave(self, agent_id: str) -> None:
        """Stop delivering to a participant, unless another connection has taken it."""
        self.participants.pop(agent_id, None)
        receiver = self._hub.receiver_of(agent_id)
        if isinstance(receiver, _Receiver) and receiver.endpoint is self._endpoint:
            await self._hub.detach(agent_id)

    def _detached(self, agent_id: str) -> None:
        self.participants.pop(agent_id, None)

    # --- receipts -----------------------------------------------------------------------------

    def _note(self, receipt: ReceiptFrame) -> None:
        if receipt.recipient_id not in self.participants:
            return
        if receipt.status == "ack" and receipt.envelope_id and receipt.channel_id:
            self._cursors[receipt.recipient_id, receipt.channel_id] = receipt.envelope_id
        elif receipt.status == "nack":
            name = self.participants[receipt.recipient_id].passport.name
            _log.warning("%s did not take %s: %s", name, receipt.envelope_id, receipt.reason)

    async def _replay(self, agent_id: str, since: str) -> None:
        """Send what was not acknowledged in the channels that go on."""
        active = await self._hub.list_channels(agent_id=agent_id, state="active", limit=1000)
        for metadata in active:
            found = await self._hub.read_wal(metadata.channel_id)
            ids = [item.envelope_id for item in found]
            marks = (since, self._cursors.get((agent_id, metadata.channel_id), ""))
            start = max((ids.index(mark) + 1 for mark in marks if mark in ids), default=0)
            for envelope in found[start:]:
                if from_elsewhere(envelope, agent_id):
                    await self._endpoint.send_frame(NotifyFrame(envelope, agent_id))


class _Receiver:
    """Delivers to an endpoint; its participant takes its turns by itself."""

    run_turn = None

    def __init__(
        self, agent_id: str, endpoint: LinkEndpoint, detached: Callable[[str], None]
    ) -> None:
        self._agent_id = agent_id
        self.endpoint = endpoint
        self._detached = detached

    async def deliver(self, envelope: Envelope, seq: int) -> None:
        """Send what others, or the hub, have written."""
        if from_elsewhere(envelope, self._agent_id):
            await self.endpoint.send_frame(NotifyFrame(envelope, self._agent_id))


def _code(kind: str) -> str:
    return _CODES.get(kind, kind.replace("-", "_"))
