"""`context`: search a channel's messages, and read or change its variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from agent_adapter.core.errors import NetworkError, NotFoundError, ToolError
from agent_adapter.core.routing import ChannelInject, ChannelStateInject
from agent_adapter.core.tool import ToolSpec
from agent_adapter.flow.envelope import Envelope, is_turn, visible_to
from agent_adapter.network.clients.agent_client import AgentClient
from agent_adapter.network.tools.reading import read_from
from agent_adapter.network.workflow_helpers import delete_context, set_context

_EXCERPT = 240


def context_tool(client: AgentClient) -> ToolSpec:
    """The tool, bound to one participant."""

    async def context(
        action: Literal["search", "quote", "read", "write", "delete"],
        query: str | None = None,
        scope: Literal["channel", "knowledge"] = "channel",
        speaker: str | None = None,
        key: str | None = None,
        value: Any = None,
        recent_n: Annotated[int, Field(ge=1)] = 1,
        limit: Annotated[int, Field(ge=1)] = 10,
        channel_id: str | None = None,
        current: ChannelInject = None,
        state: ChannelStateInject = None,
    ) -> Any:
        """Search or quote what was said in a channel; read and change its variables.

        Args:
            action: "search" finds messages with `query`, "quote" gives the last of `speaker`,
                "read" gives the variables or the one called `key`, "write" sets `key` to `value`,
                "delete" removes `key`.
            query: for "search": the words, in any case.
            scope: for "search": the channel; what the agent itself knows is not searched.
            speaker: for "quote": the participant's name, or its id.
            key: for "read", "write" and "delete": the variable.
            value: for "write": its new value.
            recent_n: for "quote": how many messages.
            limit: for "search": how many messages at most.
            channel_id: which channel; without it the current one.
            current: the channel of the turn.
            state: its folded state.
        """
        if scope == "knowledge":
            raise ToolError('context(scope="knowledge") is not searched here; leave scope out')
        here = current is not None and channel_id in (None, current.channel_id)
        chosen = current.channel_id if here else channel_id
        if not chosen:
            raise ToolError("context needs `channel_id` outside of a channel")
        try:
            channel = current if here else await client.channel(chosen)
            if not here:
                await read_from(client, [chosen])
            if action == "search":
                return await _searched(client, chosen, query, limit)
            if action == "quote":
                return await _quoted(client, chosen, speaker, recent_n)
            if action == "read":
                folded = state if here else await client.hub_client.adapter_state(chosen)
                return _read(getattr(folded, "context_vars", {}), key)
            return await _changed(channel, action, key, value)
        except NetworkError as exc:
            raise ToolError(f"context: {exc}") from exc

    return ToolSpec.from_function(context, effects="write")


async def _searched(
    client: AgentClient, channel_id: str, query: str | None, limit: int
) -> list[dict[str, Any]]:
    if not query:
        raise ToolError('context(action="search") needs `query`')
    needle = query.lower()
    found = []
    for envelope, text in _said(client, await client.hub_client.read_wal(channel_id)):
        if needle in text.lower():
            ids = {"envelope_id": envelope.envelope_id, "sender_id": envelope.sender_id}
            found.append({**ids, "when": envelope.created_at, "excerpt": _excerpt(text)})
        if len(found) >= limit:
            break
    return found


async def _quoted(
    client: AgentClient, channel_id: str, speaker: str | None, recent_n: int
) -> list[dict[str, Any]]:
    if not speaker:
        raise ToolError('context(action="quote") needs `speaker`')
    try:
        wanted = (await client.hub_client.get_agent(speaker)).agent_id
    except NotFoundError as exc:
        raise ToolError(f"speaker {speaker!r} not found: {exc}") from exc
    log = await client.hub_client.read_wal(channel_id)
    said = [item for item in _said(client, log) if item[0].sender_id == wanted]
    return [
        {"envelope_id": envelope.envelope_id, "when": envelope.created_at, "text": text}
        for envelope, text in said[-recent_n:]
    ]


def _read(variables: dict[str, Any], key: str | None) -> Any:
    return dict(variables) if key is None else variables.get(key)


async def _changed(channel: Any, action: str, key: str | None, value: Any) -> str:
    if not key:
        raise ToolError(f'context(action="{action}") needs `key`')
    if action == "delete":
        await delete_context(channel, key)
        return f"{key} removed"
    await set_context(channel, key, value)
    return f"{key} set"


def _said(client: AgentClient, log: Sequence[Envelope]) -> Iterator[tuple[Envelope, str]]:
    """The texts and packets that the participant may see, with their text."""
    for envelope in log:
        if is_turn(envelope) and visible_to(envelope, client.agent_id):
            text = envelope.event_data.get("text") or envelope.event_data.get("body")
            if isinstance(text, str) and text:
                yield envelope, text


def _excerpt(text: str) -> str:
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"
