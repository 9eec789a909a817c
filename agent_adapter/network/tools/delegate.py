"""`delegate`: ask another participant one question, and wait for the answer."""

from __future__ import annotations

import contextlib
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import NetworkError, NotFoundError, ToolError
from agent_adapter.core.tool import ToolSpec
from agent_adapter.flow.envelope import (
    EV_CHANNEL_CLOSED,
    EV_CHANNEL_EXPIRED,
    EV_CHANNEL_INVITE_REJECT,
    EV_TEXT,
    Envelope,
)
from agent_adapter.network.clients.agent_client import AgentClient
from agent_adapter.network.tools.reading import read_from

_LABEL = "delegation"
_PREFIX = "functions."
_ENDS = frozenset({EV_CHANNEL_CLOSED, EV_CHANNEL_EXPIRED, EV_CHANNEL_INVITE_REJECT})


def delegate_tool(client: AgentClient) -> ToolSpec:
    """The tool, bound to one participant."""

    async def delegate(
        target: str,
        prompt: str,
        ctx: ToolContext,
        capability: str | None = None,
        timeout: float = 300.0,  # noqa: ASYNC109  # an argument of the model's
    ) -> str:
        """Ask another participant one question and return its answer.

        Args:
            target: the participant's name.
            prompt: the question.
            ctx: the call.
            capability: what it is asked for, for its track record.
            timeout: seconds to wait for the answer.
        """
        try:
            target = await _resolved_target(client, target)
            channel_id = await _channel_for(client, target, capability, ctx.idempotency_key)
            await _ask(client, channel_id, prompt, ctx.idempotency_key)
            answer = await _answer(client, channel_id, target, timeout)
            await read_from(client, [channel_id])
            return answer
        except NetworkError as exc:
            raise ToolError(f"delegate: {exc}") from exc

    # Asked again it finds its channel by the call's key, and waits on.
    return ToolSpec.from_function(delegate, effects="idempotent")


async def _resolved_target(client: AgentClient, target: str) -> str:
    """`target`, or what follows a prefix that some models put before every name."""
    hub = client.hub_client
    for name in dict.fromkeys((target, target.removeprefix(_PREFIX))):
        with contextlib.suppress(NotFoundError):
            if (await hub.get_agent(name)).agent_id == client.agent_id:
                raise ToolError(
                    f"cannot delegate to self: {target!r} is you; do it yourself, or ask another "
                    "participant"
                )
            return name
    others = [item.name for item in await hub.list_agents() if item.name != client.name]
    raise ToolError(
        f"target {target!r} not found. Available targets: [{', '.join(sorted(others))}]"
    )


async def _channel_for(
    client: AgentClient, target: str, capability: str | None, key: str | None
) -> str:
    if key is not None:
        known_channels = await client.hub_client.list_channels(
            agent_id=client.agent_id, include_terminal=True
        )
        for known in known_channels:
            if known.labels.get(_LABEL) == key:
                return known.channel_id
    opened = await client.open(
        type="consulting",
        target=target,
        knobs={"capability": capability} if capability else None,
        labels={_LABEL: key} if key is not None else None,
    )
    return opened.channel_id


async def _ask(client: AgentClient, channel_id: str, prompt: str, key: str | None) -> None:
    state: Any = await client.hub_client.adapter_state(channel_id)
    if getattr(state, "initiator_sent", False):
        return
    await client.send_envelope(
        Envelope(
            channel_id,
            client.agent_id,
            None,
            EV_TEXT,
            {"text": prompt},
            depth=client.next_depth(),
            idempotency_key=key,
        )
    )


async def _answer(client: AgentClient, channel_id: str, target: str, seconds: float) -> str:
    try:
        answer = await client.wait_for_channel_event(
            channel_id=channel_id,
            predicate=lambda item: item.event_type == EV_TEXT or item.event_type in _ENDS,
            timeout=seconds,
        )
    except TimeoutError:
        await client.close_channel(channel_id, "delegation_timeout")
        raise ToolError(f"{target} did not answer within {seconds:g} s") from None
    if answer.event_type == EV_TEXT:
        return str(answer.event_data.get("text", ""))
    reason = answer.event_data.get("reason") or answer.event_type
    raise ToolError(f"{target} did not answer: {reason}")
