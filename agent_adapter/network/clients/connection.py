"""`HubConnection`: the connection of one program's participants to their hub."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Protocol, Self, cast

from agent_adapter.core.errors import NotConnected
from agent_adapter.exec.executor import Executor
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.channels.metadata import ChannelMetadata, ChannelState
from agent_adapter.network.channels.views import ViewPolicy
from agent_adapter.network.clients.client_memory import ClientMemory
from agent_adapter.network.clients.hub_tasks import HubTasks
from agent_adapter.network.clients.parked import ParkedTurns, WatchingPort
from agent_adapter.network.clients.turn_port import HubTurnPort
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.links.base import Link
from agent_adapter.network.links.local import InProcessHub
from agent_adapter.network.links.operations import HubLike
from agent_adapter.network.links.remote_hub import RemoteHub
from agent_adapter.network.rules import Rule
from agent_adapter.network.turns.turn import TurnPort
from agent_adapter.network.turns.turn_types import PendingTurn, RunTurn, TurnRef

_log = logging.getLogger("agent_adapter.network")

_CLOSED = "this HubClient is closed; make a new one"


class Registered(Protocol):
    """A participant that was registered over a connection."""

    @property
    def agent_id(self) -> str:
        """The id that the hub gave it."""
        ...

    async def disconnect(self) -> None:
        """Stop receiving."""
        ...


class HubConnection(HubTasks):
    """A connection to the hub at the other end of `link`; made when it is first needed.

    `hub` is the hub if it is in this process, else `None`; a `LocalLink` brings its own. `executor`
    runs the tool calls of participants registered here; without it the hub's own if the hub is in
    this process, else the process's default one.
    """

    def __init__(
        self,
        link: Link,
        *,
        hub: InProcessHub | None = None,
        executor: Executor | None = None,
    ) -> None:
        linked = getattr(link, "hub", None)
        if hub is not None and linked is not None and linked is not hub:
            raise ValueError(
                "the link leads to another hub; leave out hub=, or make LocalLink(hub)"
            )
        self._link = link
        self.hub: InProcessHub | None = hub if hub is not None else linked
        self._far: HubLike | None = None
        self._executor = executor
        self._adapters = AdapterRegistry()
        self._seen = ClientMemory()
        self._clients: list[Registered] = []
        self._connecting = asyncio.Lock()
        self._parked: ParkedTurns | None = None
        self._closed = False
        self._telling: set[asyncio.Future[None]] = set()

    @property
    def remote(self) -> bool:
        """Whether the hub is in another process."""
        return self.hub is None

    @property
    def executor(self) -> Executor:
        """The executor of the tool calls of participants registered here."""
        if self._executor is not None:
            return self._executor
        if self.hub is not None:
            return self.hub.executor
        from agent_adapter.exec.defaults import runner_for

        return cast("Executor", runner_for(None))

    async def drop(self, client: Registered, *, unregister: bool = False) -> None:
        """Detach a participant, and with `unregister` remove it; called by its client."""
        if client in self._clients:
            self._clients.remove(client)
        far = self._far
        if far is None:
            return
        if unregister:
            await far.unregister(client.agent_id)
        await far.detach(client.agent_id)

    # --- participants -------------------------------------------------------------------------

    async def get_agent(self, name_or_id: str) -> Passport:
        """The passport of a participant, by name or id; `NotFoundError` if there is none."""
        return self._seen.passport(await (await self.hub_like()).get_agent(name_or_id))

    async def list_agents(
        self,
        *,
        capability: str | None = None,
        query: str | None = None,
        kind: str | None = None,
        limit: int = 50,
    ) -> list[Passport]:
        """Participants with a capability, of a kind, or whose name or résumé contains `query`."""
        far = await self.hub_like()
        found = await far.list_agents(capability=capability, query=query, kind=kind, limit=limit)
        return [self._seen.passport(item) for item in found]

    async def get_resume(self, agent_id: str) -> Resume:
        """The résumé of a participant."""
        return await (await self.hub_like()).get_resume(agent_id)

    async def get_rule(self, agent_id: str) -> Rule:
        """The rule of a participant."""
        return await (await self.hub_like()).get_rule(agent_id)

    async def get_skill(self, agent_id: str) -> str | None:
        """The page that a participant publishes about itself."""
        return await (await self.hub_like()).get_skill(agent_id)

    async def set_resume(self, agent_id: str, resume: Resume) -> None:
        """Replace a participant's résumé."""
        await (await self.hub_like()).set_resume(agent_id, resume)

    async def set_rule(self, agent_id: str, rule: Rule) -> None:
        """Replace the rule of a participant."""
        await (await self.hub_like()).set_rule(agent_id, rule)

    async def unregister_agent(self, agent_id: str) -> None:
        """Remove a participant; its name is free again."""
        await (await self.hub_like()).unregister(agent_id)

    async def set_skill(self, agent_id: str, skill_md: str | None) -> None:
        """Replace the page that a participant has published about itself."""
        await (await self.hub_like()).set_skill(agent_id, skill_md)

    # --- channels -----------------------------------------------------------------------------

    async def create_channel(
        self, *, creator_id: str, manifest_type: str, participants: Sequence[str], **more: Any
    ) -> ChannelMetadata:
        """Open a channel for a participant registered here; see `Hub.create_channel`."""
        far = await self.hub_like()
        opened = await far.create_channel(
            creator_id=creator_id, manifest_type=manifest_type, participants=participants, **more
        )
        return self._seen.metadata(opened)

    async def get_channel(self, channel_id: str) -> ChannelMetadata:
        """Everything about a channel except its messages."""
        return self._seen.metadata(await (await self.hub_like()).get_channel(channel_id))

    async def list_channels(
        self,
        *,
        agent_id: str | None = None,
        state: ChannelState | str | None = None,
        include_terminal: bool | None = None,
        limit: int = 50,
    ) -> list[ChannelMetadata]:
        """Channels, newest first.

        Channels that have ended are listed with `include_terminal`, or where `state` asks for them.
        """
        far = await self.hub_like()
        if include_terminal is None:
            include_terminal = state is not None
        # Those that go on may be older than many that have ended.
        most = limit if include_terminal else limit * 4
        found = await far.list_channels(agent_id=agent_id, state=state, limit=most)
        return [item for item in found if include_terminal or not item.is_terminal()][:limit]

    async def close_channel(
        self, channel_id: str, *, reason: str = "", sender_id: str | None = None
    ) -> ChannelMetadata:
        """Close a channel in a participant's name; one that has ended is left unchanged."""
        hub = await self.hub_like()
        return await hub.close_channel(channel_id, reason, sender_id=sender_id)

    async def reopen(self, channel_id: str, *, sender_id: str | None = None) -> ChannelMetadata:
        """Let an ended channel go on in its opener's name; see `Hub.reopen`."""
        return await (await self.hub_like()).reopen(channel_id, sender_id=sender_id)

    async def post_envelope(self, envelope: Envelope) -> str:
        """Send an envelope of a participant registered here; the id of the accepted one."""
        return await (await self.hub_like()).post_envelope(envelope)

    async def read_wal(
        self, channel_id: str, *, since: int = 0, until: int | None = None
    ) -> list[Envelope]:
        """The log of a channel from entry `since`, counted from 0, up to and without `until`.

        From a hub in another process, entries that no participant here may see are blank.
        """
        return await (await self.hub_like()).read_wal(channel_id, since, until)

    async def adapter_state(self, channel_id: str) -> Any:
        """The folded state of a channel, as a copy."""
        return await (await self.hub_like()).folded_state(channel_id)

    async def pending_turns_for(self, agent_id: str) -> list[PendingTurn]:
        """Turns of a participant that have not ended."""
        return await (await self.hub_like()).pending_turns_for(agent_id)

    async def can_send(
        self, channel_id: str, sender_id: str, *, event_type: str | None = None
    ) -> bool:
        """Whether the channel would accept a message of `sender_id` now: a text, or that event."""
        return await (await self.hub_like()).may_send(channel_id, sender_id, event_type)

    async def find_envelope_by_causation(
        self, channel_id: str, *, sender_id: str, causation_id: str
    ) -> Envelope | None:
        """The newest envelope of `sender_id` that answers the envelope `causation_id`."""
        found = await self.read_wal(channel_id)
        answers = (item for item in reversed(found) if item.causation_id == causation_id)
        return next((item for item in answers if item.sender_id == sender_id), None)

    def register_adapter(self, adapter: ChannelAdapter) -> None:
        """Add a channel type; a remote hub needs it, too."""
        self._adapters.register(adapter)

    def adapter_for_metadata(self, metadata: ChannelMetadata) -> ChannelAdapter:
        """The adapter of a channel."""
        known = self._adapters if self.hub is None else self.hub.adapters
        return known.get(metadata.manifest.type, metadata.manifest.version)

    # --- what is known without asking ---------------------------------------------------------

    def adapter_for(self, channel_id: str) -> ChannelAdapter:
        """The adapter of a channel; of a remote hub only channels that were read before."""
        if self.hub is not None:
            return self.hub.adapter_for(channel_id)
        return self.adapter_for_metadata(self._seen.channel(channel_id))

    def default_view_policy(self, channel_id: str, participant_id: str) -> ViewPolicy:
        """The view of a participant that has not chosen another one; see `adapter_for`."""
        if self.hub is not None:
            return self.hub.default_view_policy(channel_id, participant_id)
        metadata = self._seen.channel(channel_id)
        return self.adapter_for_metadata(metadata).default_view_policy(metadata, participant_id)

    def find_agent_id(self, name: str) -> str | None:
        """The id of a participant; of a remote hub only of those that were read before."""
        return self.name_to_id_map().get(name)

    def name_for(self, agent_id: str, *, default: str | None = None) -> str:
        """The name of a participant; `default`, else the id itself, for an unknown one."""
        if self.hub is not None:
            return self.hub.name_for(agent_id, default=default)
        return self._seen.names.get(agent_id, agent_id if default is None else default)

    def name_to_id_map(self) -> dict[str, str]:
        """The ids of participants by name; of a remote hub of those that were read before."""
        if self.hub is not None:
            return self.hub.name_to_id_map()
        return {name: agent_id for agent_id, name in self._seen.names.items()}

    def turn_port(self, ref: TurnRef) -> TurnPort:
        """The port of an attempt of a participant registered here."""
        if self._far is None:
            raise NotConnected(_CLOSED)
        if self._shares_store:
            return HubTurnPort(self._far, ref)
        if self._parked is None:
            self._parked = ParkedTurns(self.executor.store, self._wake)
        return WatchingPort(self._far, ref, self._parked)

    async def run_turn(self, turn_id: str, run_turn: RunTurn) -> None:
        """Run a due turn of a participant registered here with `run_turn`."""
        await (await self.hub_like()).run_turn(turn_id, run_turn)

    def start_turns_of(self, agent_id: str) -> None:
        """Let a hub in another process start the turns of a participant again, soon.

        It starts none while a handler takes the participant's place.
        """
        if isinstance(self._far, RemoteHub):
            task = asyncio.ensure_future(self._far.set_by_hand(agent_id, False))
            self._telling.add(task)
            task.add_done_callback(self._told)

    def _told(self, task: asyncio.Future[None]) -> None:
        self._telling.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("the hub was not told that a handler has ended: %s", error)

    async def resume_turns(self, agent_id: str) -> int:
        """The number of waiting turns; those run again that ended without a message.

        So do those parked on decisions in this process's store. A turn whose decision is still
        missing parks again.
        """
        if not self._shares_store:
            for turn in await self.pending_turns_for(agent_id):
                if turn.state == "parked":
                    await self._wake(turn.turn_id)
        return await (await self.hub_like()).resume_turns(agent_id)

    # --- the connection -----------------------------------------------------------------------

    async def hub_like(self) -> HubLike:
        """The hub or its remote stand-in; connects on first use."""
        self.check_open()
        if self._far is None:
            async with self._connecting:
                if self._far is None:
                    far = await self._link.connect()
                    if self.hub is None:
                        far.adapters = self._adapters
                    self._far = far
        return self._far

    def check_open(self) -> None:
        """Raises `NotConnected` once the client is closed."""
        if self._closed:
            raise NotConnected(_CLOSED)

    async def open(self) -> Self:
        """Connect now, instead of when the connection is first needed."""
        await self.hub_like()
        return self

    async def close(self) -> None:
        """Disconnect every participant registered here; they stay registered with the hub."""
        if self._closed:
            return
        for client in tuple(self._clients):
            await client.disconnect()
        if self._parked is not None:
            await self._parked.close()
        self._closed = True
        if self._far is not None:
            await self._link.disconnect(self._far)
            self._far = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @property
    def _shares_store(self) -> bool:
        """Whether decisions for rounds in this process are written to the hub's store."""
        return self.hub is not None and self.executor.store is self.hub.store

    async def _wake(self, turn_id: str) -> None:
        await (await self.hub_like()).wake_turn(turn_id)
