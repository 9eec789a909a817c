"""`say`: send a text to the current channel, or to another one of the participant."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import NetworkError, NotFoundError, ToolError
from agent_adapter.core.routing import ChannelInject
from agent_adapter.core.tool import ToolSpec
from agent_adapter.network.inject import AgentClientInject
from agent_adapter.network.turns.turn import TurnChannel


@cache
def turn_say_tool() -> ToolSpec:
    """The tool for turns: it acts for the participant whose turn it is."""
    return say_tool(None)


def say_tool(client: Any) -> ToolSpec:
    """The tool, bound to one participant."""
    bound = client

    async def say(
        content: str,
        ctx: ToolContext,
        audience: list[str] | None = None,
        channel_id: str | None = None,
        current: ChannelInject = None,
        client: AgentClientInject = None,
    ) -> str:
        """Send a text to the channel, besides what you answer.

        Args:
            content: the text.
            ctx: the call.
            audience: names of those who may read it; without it everybody in the channel.
            channel_id: which channel; without it the current one.
            current: the channel of the turn.
            client: the participant.
        """
        client = bound if client is None else client
        here = current is not None and channel_id in (None, current.channel_id)
        if not here and channel_id is None:
            raise ToolError("no current channel and no channel_id provided")
        try:
            ids = None if audience is None else [await _id_of(client, name) for name in audience]
            if here and isinstance(current, TurnChannel):
                await current.say(content, audience=ids)
                return "posted with this turn"
            channel = current if here else await client.channel(channel_id)
            return await _posted(client, channel, content, ids, ctx.idempotency_key)
        except NetworkError as exc:
            raise ToolError(f"send failed: {exc}") from exc

    return ToolSpec.from_function(say, effects="write")


async def _posted(
    client: Any, channel: Any, content: str, audience: list[str] | None, key: str | None
) -> str:
    adapter = client.hub_client.adapter_for_metadata(channel.metadata)
    envelope = adapter.build_text_envelope(
        channel.channel_id, client.agent_id, content, audience=audience
    )
    accepted = await client.send_envelope(replace(envelope, idempotency_key=key))
    return f"posted envelope {accepted}"


async def _id_of(client: Any, name: str) -> str:
    try:
        return str((await client.hub_client.get_agent(name)).agent_id)
    except NotFoundError as exc:
        raise ToolError(f"peer {name!r} not found: {exc}") from exc
