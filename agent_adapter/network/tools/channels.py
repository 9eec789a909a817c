"""`channels`: list, open, read about and close channels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agent_adapter.core.errors import NetworkError, ToolError
from agent_adapter.core.routing import ChannelInject
from agent_adapter.core.tool import ToolSpec
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.clients.agent_client import AgentClient


def channels_tool(client: AgentClient) -> ToolSpec:
    """The tool, bound to one participant."""

    async def channels(
        action: Literal["list", "open", "info", "close"],
        type: str | None = None,
        target: list[str] | None = None,
        knobs: dict[str, Any] | None = None,
        intent: str | None = None,
        ttl: str | None = None,
        message: str | None = None,
        channel_id: str | None = None,
        state: Literal["active", "all"] = "active",
        current: ChannelInject = None,
    ) -> Any:
        """List, open, inspect or close the channels you take part in.

        Args:
            action: "list", "open", "info" or "close".
            type: for "open": the type of channel, such as "consulting" or "conversation".
            target: for "open": the names of the others.
            knobs: for "open": settings of the type.
            intent: for "open": what it is for.
            ttl: for "open": how long it may live, such as "30m".
            message: for "open": the first message, sent at once.
            channel_id: for "info" and "close": which one; "close" without it is the current one.
            state: for "list": only those that go on, or all.
            current: the channel of the turn.
        """
        try:
            if action == "list":
                return await _listed(client, state == "all")
            if action == "open":
                settings = {"type": type, "knobs": knobs, "intent": intent, "ttl": ttl}
                return await _opened(client, settings, target, message)
            if action == "info":
                return await _info(client, channel_id)
            return await _closed(client, channel_id, current)
        except NetworkError as exc:
            raise ToolError(f"channels: {exc}") from exc

    return ToolSpec.from_function(channels, effects="write")


async def _listed(client: AgentClient, ended: bool) -> list[dict[str, Any]]:
    found = await client.hub_client.list_channels(agent_id=client.agent_id, include_terminal=ended)
    return [_shown(item) for item in found]


async def _opened(
    client: AgentClient,
    settings: Mapping[str, Any],
    target: list[str] | None,
    message: str | None,
) -> dict[str, Any]:
    if not settings["type"] or not target:
        raise ToolError('channels(action="open") needs `type` and `target`')
    channel = await client.open(target=target, **settings)
    if message:
        try:
            await channel.send(message)
        except NetworkError:
            await channel.close("seed_failed")
            raise
    return _shown(channel.metadata)


async def _info(client: AgentClient, channel_id: str | None) -> dict[str, Any]:
    if not channel_id:
        raise ToolError('channels(action="info") needs `channel_id`')
    held = await client.channel(channel_id)
    metadata = held.metadata
    return {
        **_shown(metadata),
        "created_at": metadata.created_at,
        "expires_at": metadata.expires_at,
        "close_reason": metadata.close_reason,
        "labels": dict(metadata.labels),
    }


async def _closed(client: AgentClient, channel_id: str | None, current: Any) -> dict[str, Any]:
    reason = "closed_by_agent"
    if current is not None and channel_id in (None, current.channel_id):
        await current.close(reason)
        return {"channel_id": current.channel_id, "closes": "after this turn", "reason": reason}
    if channel_id is None:
        raise ToolError('channels(action="close") needs `channel_id` outside of a channel')
    held = await client.channel(channel_id)
    return _shown(await held.close(reason))


def _shown(metadata: ChannelMetadata) -> dict[str, Any]:
    return {
        "channel_id": metadata.channel_id,
        "type": metadata.manifest.type,
        "state": metadata.state.value,
        "participants": list(metadata.names().values()),
    }
