"""`AgentClient`: an agent, or a function, as a participant whose turns run in this process."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from agent_adapter.core.native import NO_POLICIES, NativePolicies
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.channels.views import ViewPolicy
from agent_adapter.network.clients.connection import HubConnection
from agent_adapter.network.clients.participant import ParticipantClient
from agent_adapter.network.clients.task_mirror import TaskMirror
from agent_adapter.network.clients.waiting import from_elsewhere
from agent_adapter.network.identity import Passport, Resume, ResumeExample
from agent_adapter.network.rules import Rule
from agent_adapter.network.turns.build_turn import build_turn
from agent_adapter.network.turns.turn_runner import Drive, run_round
from agent_adapter.network.turns.turn_types import RunTurn, StartedTurn

_log = logging.getLogger("agent_adapter.network")

Handler = Callable[[Envelope], Awaitable[None]]


class AgentClient(ParticipantClient):
    """A participant whose turns are run by an agent or a function.

    Attributes:
        agent: the agent or function.
        tools: added to the agent's own in every round.
        native: the policies of the agent's own tools.
        view: replaces the view of the channel type; `None` keeps it.
    """

    def __init__(
        self,
        *,
        agent: Any,
        drive: Drive,
        passport: Passport,
        resume: Resume,
        rule: Rule,
        hub_client: HubConnection,
        native: NativePolicies = NO_POLICIES,
    ) -> None:
        super().__init__(passport=passport, resume=resume, rule=rule, hub_client=hub_client)
        self.agent = agent
        self.native = native
        self._drive = drive
        self._handler: Handler | None = None
        self.tools: Sequence[Any] = ()
        self.view: ViewPolicy | None = None
        self._owns_connection = False

    def task_mirror(self, channel_id: str | None = None) -> TaskMirror:
        """What tells the hub of the agent's tasks, in a channel."""
        return TaskMirror(hub_client=self.hub_client, owner_id=self.agent_id, channel_id=channel_id)

    @property
    def run_turn(self) -> RunTurn | None:
        """Runs one round of the agent; `None` if an `on_envelope` handler replaces it."""
        return None if self._handler is not None else self._run_turn

    def on_envelope(self, handler: Handler | None) -> None:
        """Call `handler` for each envelope instead of running the agent; `None` undoes that.

        The handler answers with `send_envelope`, and accepts invitations with `accept_invite`.
        """
        self._handler = handler
        self._auto_ack = handler is None
        if handler is None:
            self.hub_client.start_turns_of(self._agent_id)

    def own_connection(self) -> None:
        """Make `close` end the connection, too: no other participant was registered with it."""
        self._owns_connection = True

    async def close(self) -> None:
        """Remove the participant from the hub; `disconnect` leaves it registered.

        A connection of its own, as `Hub.register` makes it, ends with it.
        """
        await self.unregister()
        if self._owns_connection:
            await self.hub_client.close()

    async def resume_pending_turns(self) -> int:
        """The number of waiting turns; those that can run are started.

        A hub starts the turns of a connected participant by itself, also after a restart. What this
        starts again are turns that ended without a message though the channel expects one.
        """
        self.check_connected()
        return await self.hub_client.resume_turns(self.agent_id)

    async def take_turn(self, trigger: Envelope) -> None:
        """Run the agent on the turn that `trigger` caused, if it waits; returns when it has ended.

        For a handler of `on_envelope`, in whose place the hub would have run it.
        """
        self.check_connected()
        # A hub in another process may have started it, and is given it back.
        waiting = ("due",) if self.hub_client.hub is not None else ("due", "running")
        for turn in await self.hub_client.pending_turns_for(self.agent_id):
            if turn.triggering_envelope_id == trigger.envelope_id and turn.state in waiting:
                await self.hub_client.run_turn(turn.turn_id, self._run_turn)

    async def add_example(self, example: ResumeExample) -> None:
        """Add an example to the agent's résumé."""
        current = await self.hub_client.get_resume(self.agent_id)
        await self.set_resume(replace(current, examples=[*current.examples, example]))

    async def set_skill(self, skill_md: str | None) -> None:
        """Publish a Markdown page about what the agent can do."""
        await self.hub_client.set_skill(self.agent_id, skill_md)

    async def _received(self, envelope: Envelope) -> None:
        handler = self._handler
        if handler is None or not from_elsewhere(envelope, self._agent_id):
            return
        try:
            await handler(envelope)
        except Exception:
            _log.exception("the handler of %s failed on %s", self.name, envelope.event_type)

    async def _run_turn(self, started: StartedTurn) -> None:
        client = self.hub_client
        hub = await client.hub_like()
        turn = await build_turn(
            started,
            agent_name=self.passport.name,
            adapter=client.adapter_for_metadata(started.metadata),
            executor=client.executor,
            port=client.turn_port(started.ref),
            window=hub.window,
            read_wal=hub.read_wal,
            view=self.view,
            agent_client=self,
            hub_client=client,
            native=self.native,
        )
        turn.tools = (*turn.tools, *self.tools)
        await run_round(self.agent, turn, self._drive)
