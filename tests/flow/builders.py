"""Envelopes, states and graphs as the tests of this room write them."""

from __future__ import annotations

from typing import Any

from agent_adapter.flow import (
    EV_CONTEXT_SET,
    EV_PACKET,
    EV_TEXT,
    ChannelFacts,
    Envelope,
    TransitionGraph,
    WorkflowState,
    close_reason,
    fold,
    opening_state,
)

ORDER = ["a", "b", "c"]


def text(sender: str, said: str = "hello", *, id: str = "e1") -> Envelope:
    """A text of `sender`."""
    return Envelope("ch", sender, None, EV_TEXT, {"text": said}, envelope_id=id)


def packet(
    sender: str,
    routing: dict[str, Any] | None = None,
    *,
    set: dict[str, Any] | None = None,
    delete: list[str] | None = None,
    body: str = "done",
) -> Envelope:
    """A round of `sender`."""
    data = {
        "routing": routing or {"kind": "text"},
        "context_updates": {"set": set or {}, "delete": delete or []},
        "body": body,
    }
    return Envelope("ch", sender, None, EV_PACKET, data, envelope_id="e1")


def context_set(sender: str, **data: Any) -> Envelope:
    """A change of variables by `sender`."""
    return Envelope("ch", sender, None, EV_CONTEXT_SET, data, envelope_id="e1")


def opened(
    graph: TransitionGraph, order: list[str] | None = None, **variables: Any
) -> WorkflowState:
    """A channel of `graph` before its first turn, opened by the first participant."""
    participants = order or ORDER
    knobs = {"graph": graph.to_dict(), "context_vars": variables}
    facts = ChannelFacts(participants=participants)
    return opening_state(knobs, facts, creator_id=participants[0])[0]


def folded(graph: TransitionGraph, *envelopes: Envelope, **variables: Any) -> WorkflowState:
    """The state after `envelopes`."""
    state = opened(graph, **variables)
    for envelope in envelopes:
        state = fold(envelope, state)
    return state


def ending(graph: TransitionGraph, *envelopes: Envelope, **variables: Any) -> str | None:
    """Why the channel closes after `envelopes`; `None` while it goes on."""
    return close_reason(folded(graph, *envelopes, **variables))
