"""`build_turn`: makes the `Turn` of a started turn, with its view and input text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agent_adapter.core.native import NO_POLICIES, NativePolicies
from agent_adapter.exec.executor import Executor
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.channels.views import ViewPolicy
from agent_adapter.network.turns.turn import Staged, Turn, TurnPort, ViewMessage

Window = Callable[[str, str, int], Awaitable[Sequence[Any]]]
"""`await window(channel_id, participant_id, recent_n)` returns the newest turns, oldest first."""


async def build_turn(
    started: Any,
    *,
    agent_name: str,
    adapter: ChannelAdapter,
    executor: Executor,
    port: TurnPort,
    window: Window,
    view: ViewPolicy | None = None,
    agent_client: Any = None,
    hub_client: Any = None,
    native: NativePolicies = NO_POLICIES,
) -> Turn:
    """Make the `Turn` of a started turn: read its view, render its trigger, collect its tools."""
    metadata: ChannelMetadata = started.metadata
    agent_id: str = started.agent_id
    policy = view if view is not None else adapter.default_view_policy(metadata, agent_id)
    channel_id, recent_n = started.ref.channel_id, policy.window
    newest = await window(channel_id, agent_id, recent_n + 1)
    trigger: Envelope | None = started.trigger
    answered = None if trigger is None else trigger.envelope_id
    history = [item for item in newest if item.envelope_id != answered]
    names, participants = _Names(metadata.names()), metadata.ids_by_name()

    def seen(envelopes: Sequence[Envelope], earlier: int = 0) -> list[ViewMessage]:
        return policy.project(
            envelopes,
            participant_id=agent_id,
            render_envelope=adapter.render_envelope,
            name_for=names.__getitem__,
            earlier=earlier,
        )

    # Each turn is one envelope, so the number of unread ones follows from the turn count.
    taken = getattr(started.state, "turn_count", 0) - (trigger is not None)
    unread = max(0, taken - len(history)) if len(newest) > recent_n else 0
    state = started.state
    return Turn(
        turn_id=started.ref.turn_id,
        channel_id=channel_id,
        agent_id=agent_id,
        agent_name=agent_name,
        state=state,
        participants=participants,
        executor=executor,
        port=port,
        adapter=adapter,
        metadata=metadata,
        attempt=started.ref.attempt,
        trigger=trigger,
        messages=seen(history, unread),
        input_text="\n".join(item.text for item in seen([trigger])) if trigger else "",
        tools=adapter.tools_for(agent_client, metadata, state, agent_id),
        agent_client=agent_client,
        hub_client=hub_client,
        native=native,
        staged_before=[_staged(item) for item in started.staged],
    )


class _Names(dict[str, str]):
    """Names by id; an unknown id maps to itself."""

    def __missing__(self, agent_id: str) -> str:
        return agent_id


def _staged(item: Any) -> Staged:
    return item if isinstance(item, Staged) else Staged(call_key=item.call_key, body=item.body)
