"""`RemoteHub`: a hub in another process, used over a connection like a local one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from agent_adapter.core.errors import NetworkError
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.events.event import checked_kinds, position_of
from agent_adapter.network.events.feed import Subscription
from agent_adapter.network.hub.task_records import TaskMetadata, metadata_from
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.links.connection import Connection, Socket
from agent_adapter.network.links.frames import Notify, TurnStart
from agent_adapter.network.links.hosted_participant import HostedParticipant, TakenTurn
from agent_adapter.network.links.operation import HubOperation, operations_of, to_wire
from agent_adapter.network.links.operations import OPERATIONS, HubLike
from agent_adapter.network.links.remote_feed import RemoteFeed
from agent_adapter.network.links.wire import error_to_wire
from agent_adapter.network.rules import Rule
from agent_adapter.network.turns import causes
from agent_adapter.network.turns.turn_types import Receiver, RunTurn, TurnRef

_log = logging.getLogger("agent_adapter.network")

_GOODBYE_SECONDS = 5.0

C = TypeVar("C", bound="type[RemoteHub]")


@runtime_checkable
class LossListener(Protocol):
    """A receiver that is notified when its hub is lost."""

    def hub_lost(self, why: str) -> None:
        """The connection has ended for good."""
        ...


def _asked_over_the_connection(declared: HubOperation) -> Callable[..., Awaitable[Any]]:
    async def ask(self: RemoteHub, *args: Any, **kwargs: Any) -> Any:
        answer = await self.request(declared.name, declared.written(args, kwargs))
        return declared.result.validate_python(answer)

    return ask


def _complete(remote: C) -> C:
    """Add the operations of `HubLike` that `remote` does not define."""
    for name, declared in operations_of(HubLike).items():
        if name not in vars(remote):
            setattr(remote, name, _asked_over_the_connection(declared))
    return remote


@_complete
class RemoteHub(HubLike):
    """The operations of `HubLike`, each a request to the hub at the other end.

    Those that need more are methods here; the others are made from the table.
    """

    def __init__(
        self, dial: Callable[[], Awaitable[Socket]], *, reconnect_for: float = 60.0
    ) -> None:
        self.adapters = AdapterRegistry()
        self._hosted: dict[str, HostedParticipant] = {}
        self._early: dict[str, list[Notify | TurnStart]] = {}
        self._registering = 0
        self.taken: dict[str, TakenTurn] = {}
        self._back = asyncio.Event()
        self._connection = Connection(
            dial,
            on_frame=self._arrived,
            on_return=self._returned,
            on_end=self._ended,
            reconnect_for=reconnect_for,
        )
        self.request = self._connection.request

    async def open(self) -> None:
        """Connect; the error has the reason of a failure."""
        await self._connection.open()

    async def aclose(self) -> None:
        """Disconnect; the participants stay registered with the hub."""
        await self._connection.close()
        stopped = [task for hosted in self._hosted.values() for task in hosted.stop()]
        await asyncio.gather(*stopped, return_exceptions=True)
        self._hosted.clear()

    async def register_identity(
        self, passport: Passport, resume: Resume, rule: Rule | None = None
    ) -> Passport:
        """The passport with its id; the hub checks that this connection may use its name."""
        params = OPERATIONS["register"].written((passport, resume, rule), {})
        # A record leaves the claim out; here it is what proves the name.
        params["passport"]["auth"]["claim"] = dict(passport.auth.claim)
        self._registering += 1
        try:
            stamped = Passport.from_dict(await self.request("register", params))
        finally:
            self._registering -= 1
        self._hosted[stamped.agent_id or ""] = HostedParticipant(
            self, stamped, params, self._connection.hub_time
        )
        return stamped

    def attach(self, agent_id: str, receiver: Receiver) -> None:
        """Deliver the participant's envelopes to `receiver`, beginning with those already here."""
        self._hosted[agent_id].receiver = receiver
        for frame in self._early.pop(agent_id, []):
            self._arrived(frame)

    async def detach(self, agent_id: str) -> None:
        """Stop delivering; the hub releases the running attempts."""
        hosted = self._forget(agent_id)
        if hosted is None or not self._connection.is_up:
            return
        try:
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await self.request("leave", {"agent_id": agent_id})
        except (NetworkError, TimeoutError) as exc:
            _log.info("the hub was not notified that %s left: %s", hosted.passport.name, exc)

    async def unregister(self, agent_id: str) -> None:
        """Remove a participant; its name is free again."""
        await self.request("unregister", {"agent_id": agent_id})
        self._forget(agent_id)

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
            # A repeated request, also to a hub that was restarted, must be the same message.
            envelope = replace(envelope, idempotency_key=self._connection.new_key())
        details = {"turn": turn, "adopted": adopted, "answers": answers}
        params = OPERATIONS["post_envelope"].written((envelope,), details)
        accepted: str = await self.request("post_envelope", params)
        return accepted

    async def read_wal(
        self, channel_id: str, since: int = 0, until: int | None = None
    ) -> list[Envelope]:
        """The log; entries that no participant of this process may see are blank."""
        found: list[Envelope] = []
        while until is None or since + len(found) < until:
            params = {"channel_id": channel_id, "since": since + len(found), "until": until}
            page = await self.request("read_wal", params)
            found += [Envelope.from_dict(item) for item in page["envelopes"]]
            if not page["more"]:
                break
        return found

    async def folded_state(self, channel_id: str) -> Any:
        """The folded state of a channel, as a copy."""
        answer = await self.request("adapter_state", {"channel_id": channel_id})
        metadata = ChannelMetadata.from_dict(answer["metadata"])
        adapter = self.adapters.get(metadata.manifest.type, metadata.manifest.version)
        return adapter.state_from_dict(metadata, answer["state"])

    def subscribe(
        self, kinds: str | Iterable[str] | None = None, *, after: str | None = None
    ) -> Subscription:
        """The events that participants of this process may see, behind `after` or from now on."""
        asked = checked_kinds(kinds)
        position = None if after is None else position_of(after)
        return Subscription(RemoteFeed(self.request, position), asked, position)

    async def observe_task(self, metadata: Any) -> TaskMetadata:
        """Keep a task that its owner has begun, or what its owner says of a known one."""
        params = {"metadata": metadata_from(metadata).to_dict()}
        return TaskMetadata.from_dict(await self.request("observe_task", params))

    async def run_turn(self, turn_id: str, run_turn: RunTurn) -> None:
        """Run a due turn of a participant of this process with `run_turn`; waits for its end."""
        taken = self.taken[turn_id] = TakenTurn(run_turn)
        over = asyncio.ensure_future(taken.over.wait())
        try:
            while await self.request("take_turn", {"turn_id": turn_id}):
                back = asyncio.ensure_future(self._back.wait())
                await asyncio.wait([over, back], return_when=asyncio.FIRST_COMPLETED)
                back.cancel()
                if over.done():
                    return
                # The hub may be another one, which runs no attempt of the turn.
        finally:
            over.cancel()
            del self.taken[turn_id]

    async def set_by_hand(self, agent_id: str, by_hand: bool) -> None:
        """Let the hub start no turns of a participant, or start them again."""
        await self.request("set_by_hand", {"agent_id": agent_id, "by_hand": by_hand})

    async def fail_turn(self, turn: TurnRef, /, error: BaseException) -> None:
        """Count a failed attempt."""
        # The traceback is known here alone.
        _log.error("turn %s failed: %s", turn.turn_id, causes.cause_of(error), exc_info=error)
        params: dict[str, Any] = {"turn": to_wire(turn), "error": error_to_wire(error)[0]}
        params |= {"message": causes.text_of(error), "error_class": causes.class_of(error)}
        await self.request("fail_turn", params | {"outage": causes.is_outage(error)})

    # --- what the hub sends ---------------------------------------------------------

    def _arrived(self, frame: Notify | TurnStart) -> None:
        hosted = self._hosted.get(frame.agent_id)
        if hosted is not None and hosted.receiver is not None:
            hosted.take(frame)
        elif hosted is not None or self._registering:
            # The hub may send to a participant before the answer to its registration arrives.
            self._early.setdefault(frame.agent_id, []).append(frame)

    def _forget(self, agent_id: str) -> HostedParticipant | None:
        hosted = self._hosted.pop(agent_id, None)
        self._early.pop(agent_id, None)
        if hosted is not None:
            hosted.stop()
        return hosted

    async def _returned(self) -> None:
        """Register all participants again after a reconnection, with what they have received."""
        for hosted in list(self._hosted.values()):
            data = await self.request("register", hosted.registration())
            if data["agent_id"] != hosted.passport.agent_id:
                name = hosted.passport.name
                raise NetworkError(f"it is another hub: {name} has another id there; register anew")
        self._back.set()
        self._back = asyncio.Event()

    def _ended(self, why: str) -> None:
        for hosted in self._hosted.values():
            listener: object = hosted.receiver
            if isinstance(listener, LossListener):
                listener.hub_lost(why)
