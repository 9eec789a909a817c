"""`build_turn`: makes the `Turn` of a started turn, with its view and input text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agent_adapter.core.native import NO_POLICIES, NativePolicies
from agent_adapter.exec.executor import Executor
from agent_adapter.flow.envelope import Envelope, visible_to
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.channels.views import (
    BUILT_IN_VIEWS,
    LONGEST_TRANSCRIPT,
    VIEW_KNOB,
    ViewPolicy,
    view_of,
)
from agent_adapter.network.turns.sight import Sight
from agent_adapter.network.turns.turn import Staged, Turn, TurnPort, ViewMessage

Window = Callable[..., Awaitable[Sequence[Any]]]
"""`await window(channel_id, participant_id, recent_n, pinned)`: the newest turns, oldest first.

If `pinned`, the channel's opening message comes before them where it is older.
"""

ReadWal = Callable[..., Awaitable[Sequence[Envelope]]]
"""`await read_wal(channel_id, since, until)` returns entries of the log."""


async def build_turn(
    started: Any,
    *,
    agent_name: str,
    adapter: ChannelAdapter,
    executor: Executor,
    port: TurnPort,
    window: Window,
    read_wal: ReadWal | None = None,
    view: ViewPolicy | None = None,
    agent_client: Any = None,
    hub_client: Any = None,
    native: NativePolicies = NO_POLICIES,
) -> Turn:
    """Make the `Turn` of a started turn: read its view, render its trigger, collect its tools."""
    metadata: ChannelMetadata = started.metadata
    agent_id: str = started.agent_id
    channel_id, state = started.ref.channel_id, started.state
    names, participants = _Names(metadata.names()), metadata.ids_by_name()
    policy: Any = _policy(view, metadata, adapter, agent_id)
    recent_n = getattr(policy, "window", None)
    sight = Sight(
        policy=policy,
        window=recent_n if isinstance(recent_n, int) else None,
        participant_id=agent_id,
        metadata=metadata,
        adapter=adapter,
        name_for=names.__getitem__,
    )
    trigger: Envelope | None = started.trigger
    opening: Envelope | None = None
    if sight.window is None:
        messages = await _from_log(sight, started, read_wal)
    else:
        opening, messages = await _from_window(sight, sight.window, started, window)
    pinned, input_text = await _beside(sight, opening, trigger)
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
        messages=[*pinned, *messages],
        input_text=input_text,
        tools=adapter.tools_for(agent_client, metadata, state, agent_id),
        agent_client=agent_client,
        hub_client=hub_client,
        native=native,
        staged_before=[_staged(item) for item in started.staged],
    )


def _policy(
    view: ViewPolicy | None, metadata: ChannelMetadata, adapter: ChannelAdapter, agent_id: str
) -> ViewPolicy:
    """The participant's own view, else the channel's, else that of its type."""
    if view is not None:
        return view
    knob = metadata.knobs.get(VIEW_KNOB)
    return adapter.default_view_policy(metadata, agent_id) if knob is None else view_of(knob)


async def _from_window(
    sight: Sight, recent_n: int, started: Any, window: Window
) -> tuple[Envelope | None, list[ViewMessage]]:
    """The opening message where it is older and the view pins it, and the newest ones as seen."""
    asked = (started.ref.channel_id, started.agent_id, recent_n + 1)
    pins = getattr(sight.policy, "pins", False) is True
    newest = list(await (window(*asked, True) if pins else window(*asked)))
    opening = newest[:1] if len(newest) > recent_n + 1 else []
    history = [item for item in newest[len(opening) :] if not _is_trigger(item, started)]
    # Each turn is one envelope, so the number of unread ones follows from their count.
    taken = started.spoken - (started.trigger is not None) - len(opening)
    unread = max(0, taken - len(history)) if len(newest) > recent_n else 0
    return next(iter(opening), None), await _seen(sight, history, unread)


async def _beside(
    sight: Sight, opening: Envelope | None, trigger: Envelope | None
) -> tuple[list[ViewMessage], str]:
    """The opening message to pin, and the text of the trigger, as the view shows them."""
    asked = [item for item in (opening, trigger) if item is not None]
    if len(asked) == 2 and type(sight.policy) in BUILT_IN_VIEWS and (sight.window or 0) > 1:
        seen = await _seen(sight, asked)
        pinned = [item for item in seen if item.envelope_id == asked[0].envelope_id]
        shown = [item for item in seen if item.envelope_id != asked[0].envelope_id]
    else:
        pinned = [] if opening is None else await _seen(sight, [opening])
        shown = [] if trigger is None else await _seen(sight, [trigger])
    text = "\n".join(item.text for item in shown)
    if not text and trigger is not None and visible_to(trigger, sight.participant_id):
        text = sight.adapter.render_envelope(trigger) or ""
    return pinned, text


async def _seen(sight: Sight, envelopes: Sequence[Envelope], earlier: int = 0) -> list[ViewMessage]:
    if type(sight.policy) not in BUILT_IN_VIEWS:
        return await sight.of(envelopes, earlier)
    seen: list[ViewMessage] = sight.policy.project(
        envelopes,
        participant_id=sight.participant_id,
        render_envelope=sight.adapter.render_envelope,
        name_for=sight.name_for,
        earlier=earlier,
    )
    return seen


async def _from_log(sight: Sight, started: Any, read_wal: ReadWal | None) -> list[ViewMessage]:
    """What a view makes of the newest entries of the log that the participant may see."""
    if read_wal is None:
        return []
    since = max(0, started.seq - LONGEST_TRANSCRIPT)
    entries = await read_wal(started.ref.channel_id, since, started.seq)
    return await sight.of(
        [
            item
            for item in entries
            if visible_to(item, started.agent_id) and not _is_trigger(item, started)
        ]
    )


def _is_trigger(envelope: Envelope, started: Any) -> bool:
    trigger: Envelope | None = started.trigger
    return trigger is not None and envelope.envelope_id == trigger.envelope_id


class _Names(dict[str, str]):
    """Names by id; an unknown id maps to itself."""

    def __missing__(self, agent_id: str) -> str:
        return agent_id


def _staged(item: Any) -> Staged:
    return item if isinstance(item, Staged) else Staged(call_key=item.call_key, body=item.body)
