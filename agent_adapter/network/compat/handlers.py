"""Handlers for `AgentClient.on_envelope`: what a participant does without one, and its parts."""

from __future__ import annotations

from typing import Any

from agent_adapter.flow.envelope import EV_CHANNEL_INVITE, Envelope
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.channels.views import ViewPolicy
from agent_adapter.network.clients.agent_client import AgentClient
from agent_adapter.network.clients.participant import Channel
from agent_adapter.network.compat.dependencies import (
    AGENT_CLIENT_DEP,
    CHANNEL_DEP,
    CHANNEL_STATE_DEP,
    HUB_DEP,
)


async def default_handler(envelope: Envelope, client: AgentClient) -> None:
    """What `client` does with an envelope by itself: accept an invitation, or take its turn.

    For a handler that treats some envelopes differently and leaves the rest to this one. A turn is
    taken once: by the hub, which then runs the agent as always. Returns when the turn has ended.
    """
    if envelope.event_type == EV_CHANNEL_INVITE:
        await client.accept_invite(envelope)
        return
    await client.take_turn(envelope)


async def read_wal_until(client: AgentClient, envelope: Envelope) -> list[Envelope]:
    """The log of the envelope's channel before it."""
    found = await client.hub_client.read_wal(envelope.channel_id)
    ids = [item.envelope_id for item in found]
    return found[: ids.index(envelope.envelope_id)] if envelope.envelope_id in ids else found


def resolve_view_policy(client: AgentClient, metadata: ChannelMetadata) -> ViewPolicy:
    """The participant's own view, else that of the channel type."""
    if client.view is not None:
        return client.view
    adapter = client.hub_client.adapter_for_metadata(metadata)
    return adapter.default_view_policy(metadata, client.agent_id)


def stamp_dependencies(client: AgentClient, channel: Channel, state: Any) -> dict[Any, Any]:
    """The dependencies of an `agent.ask` for which tools find the channel of a turn."""
    return {
        CHANNEL_DEP: channel,
        AGENT_CLIENT_DEP: client,
        HUB_DEP: client.hub_client,
        CHANNEL_STATE_DEP: state,
    }
