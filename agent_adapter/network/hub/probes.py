"""`HubProbes`: what a hub answers without awaiting, and the short way to register an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_adapter.core.errors import AgentAdapterError, NotFoundError
from agent_adapter.core.native import Policy
from agent_adapter.flow.envelope import EV_PACKET, EV_TEXT, Envelope
from agent_adapter.network.channels.views import ViewPolicy
from agent_adapter.network.clients.agent_client import AgentClient
from agent_adapter.network.clients.connection import HubConnection
from agent_adapter.network.clients.hub_client import HubClient
from agent_adapter.network.hub.at_once import snapshot_now
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.network.hub.identities import Identities
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.links.base import Link
from agent_adapter.network.links.local import InProcessHub, LocalLink
from agent_adapter.network.rules import Rule


class HubProbes:
    """Base of `Hub`: registers agents of its own process, and answers questions at once."""

    _service: ChannelService
    _identities: Identities
    _registered: list[HubConnection]

    async def register(
        self: Any,
        agent: Any,
        passport: Passport | None = None,
        resume: Resume | None = None,
        *,
        rule: Rule | None = None,
        skill_md: str | None = None,
        attach_plugin: bool = True,
        tools: Mapping[str, Policy] | None = None,
        link: Link | None = None,
    ) -> AgentClient:
        """Register an agent, or a function, of this process; see `HubClient.register`.

        The participant has a connection of its own, over `link` or in this process: it ends with
        `AgentClient.close()`, at the latest with the hub. Without `passport` the participant has
        the agent's name.
        """
        hub: InProcessHub = self
        connection = HubClient(link if link is not None else LocalLink(hub), hub=hub)
        try:
            client = await connection.register(
                agent,
                passport,
                resume,
                rule=rule,
                skill_md=skill_md,
                attach_plugin=attach_plugin,
                tools=tools,
            )
        except BaseException:
            await connection.close()
            raise
        client.own_connection()
        self._registered.append(connection)
        return client

    def can_send(self, channel_id: str, sender_id: str, *, event_type: str | None = None) -> bool:
        """Whether the channel would accept a message of `sender_id` now: a text, or that event."""
        snapshot = snapshot_now(self._service, channel_id)
        if snapshot is None or snapshot.metadata.is_terminal():
            return False
        event = event_type or EV_TEXT
        data = {"body": ""} if event == EV_PACKET else {"text": ""}
        probe = Envelope(channel_id, sender_id, None, event, data)
        try:
            snapshot.adapter.validate_send(snapshot.metadata, probe, snapshot.state)
        except AgentAdapterError:
            return False
        return True

    async def may_send(
        self, channel_id: str, sender_id: str, event_type: str | None = None
    ) -> bool:
        """The same as `can_send`; for clients, which cannot ask without awaiting."""
        return self.can_send(channel_id, sender_id, event_type=event_type)

    def default_view_policy(self, channel_id: str, participant_id: str) -> ViewPolicy:
        """The view of a participant that has not chosen another one."""
        snapshot = snapshot_now(self._service, channel_id)
        if snapshot is None:
            raise NotFoundError(f"channel not found: there is no channel {channel_id!r}")
        return snapshot.adapter.default_view_policy(snapshot.metadata, participant_id)

    def agents_with_capability(self, capability: str) -> list[str]:
        """The ids of the participants that claim a capability or were observed to have it."""
        return self._identities.with_capability(capability)

    @property
    def auth_schemes(self) -> list[str]:
        """The schemes of `Passport.auth` that this hub checks."""
        return self._identities.auth.schemes()
