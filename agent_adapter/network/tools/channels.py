"""`channels`: list, open, read about and close channels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agent_adapter.core.errors import NetworkError, NotFoundError, ToolError
from agent_adapter.core.routing import ChannelInject
from agent_adapter.core.tool import ToolSpec
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.clients.agent_client import AgentClient
from agent_adapter.network.turns.turn import TurnChannel


def channels_tool(client: AgentClient) -> ToolSpec:
    """The tool, bound to one participant."""

    async def channels(
        action: Literal["list", "open", "info", "close"],
        type: str | None = None,
        target: str | list[str] | None = None,
        knobs: dict[str, Any] | None = None,
        intent: str | None = None,
        ttl: str | int | None = None,
        message: str | None = None,
        channel_id: str | None = None,
        state: Literal["active", "all"] = "active",
        current: ChannelInject = None,
    ) -> Any:
        """List, open, inspect or close the channels you take part in.

        Args:
            action: "list", "open", "info" or "close".
            type: for "open": the type of channel, such as "consulting" or "conversation".
            target: for "open": the name of the other, or the names of several.
            knobs: for "open": settings of the type.
            intent: for "open": what it is for.
            ttl: for "open": how long it may live, as "30m" or in seconds.
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
    return [
        {
            "channel_id": item.channel_id,
            "type": item.manifest.type,
            "state": item.state.value,
            "participants": item.participant_ids(),
        }
        for item in found
    ]


async def _opened(
    client: AgentClient,
    settings: Mapping[str, Any],
    target: str | list[str] | None,
    message: str | None,
) -> dict[str, Any]:
    if not settings["type"] or not target:
        raise ToolError('channels(action="open") needs `type` and `target`')
    channel = await client.open(target=target, **settings)
    opened = {
        "channel_id": channel.channel_id,
        "type": channel.metadata.manifest.type,
        "participants": channel.metadata.participant_ids(),
    }
    if not message:
        return opened
    try:
        seed = await channel.send(message)
    except NetworkError:
        await channel.close("seed_failed")
        raise
    return {**opened, "seed_envelope_id": seed}


async def _info(client: AgentClient, channel_id: str | None) -> dict[str, Any]:
    if not channel_id:
        raise ToolError('channels(action="info") needs `channel_id`')
    try:
        held = await client.channel(channel_id)
    except NotFoundError as exc:
        raise ToolError(f"channel {channel_id!r} not found: {exc}") from exc
    return _details(held.metadata)


def _details(metadata: ChannelMetadata) -> dict[str, Any]:
    return {
        "channel_id": metadata.channel_id,
        "type": metadata.manifest.type,
        "version": metadata.manifest.version,
        "state": metadata.state.value,
        "creator_id": metadata.creator_id,
        "participants": [
            {"agent_id": item.agent_id, "role": item.role.value, "order": item.order}
            for item in metadata.participants
        ],
        "knobs": dict(metadata.knobs),
        "labels": dict(metadata.labels),
        "expectations": [
            {"name": item.name, "on_violation": item.on_violation, "params": dict(item.params)}
            for item in metadata.manifest.expectations
        ],
        "created_at": metadata.created_at,
        "expires_at": metadata.expires_at,
        "closed_at": metadata.closed_at,
        "close_reason": metadata.close_reason,
    }


async def _closed(client: AgentClient, channel_id: str | None, current: Any) -> dict[str, Any]:
    reason = "closed_by_agent"
    if isinstance(current, TurnChannel) and channel_id in (None, current.channel_id):
        await current.close(reason)
        ends = {"state": current.state.value, "close_reason": reason, "closes": "after this turn"}
        return {"channel_id": current.channel_id, **ends}
    chosen = channel_id or (None if current is None else current.channel_id)
    if chosen is None:
        raise ToolError('channels(action="close") needs `channel_id` outside of a channel')
    closed = await (await client.channel(chosen)).close(reason)
    return {
        "channel_id": chosen,
        "state": closed.state.value,
        "close_reason": closed.close_reason,
    }
