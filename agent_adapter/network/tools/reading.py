"""What a tool reads in another channel labels the conversation of its call as that channel is."""

from __future__ import annotations

from collections.abc import Iterable

from agent_adapter.exec.taint import absorb
from agent_adapter.network.clients.agent_client import AgentClient
from agent_adapter.store import taint
from agent_adapter.store.keys import conversation_key


async def read_from(client: AgentClient, channel_ids: Iterable[str]) -> None:
    """Take over the labels of channels; a hub in another process is foreign as a whole."""
    scopes = [conversation_key("", channel_id) for channel_id in channel_ids]
    if not scopes:
        return
    store = getattr(await client.hub_client.hub_like(), "store", None)
    if store is None:
        await absorb(["remote hub"])
    else:
        await absorb(await store.read(lambda tx: taint.labels(tx, scopes)))
