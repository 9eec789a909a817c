"""Events are plain values: they say what happened to which call."""

from __future__ import annotations

import time
from dataclasses import fields

import pytest

from agent_adapter.core import events


def test_event_carries_the_call_and_the_time() -> None:
    """The time is now unless it is given."""
    before = time.time()
    event = events.CallFinished("tool", "call_1", "run_1", "key", "ok", 0.5)
    assert before <= event.at <= time.time()
    assert repr(event) == (
        f"CallFinished(tool='tool', call_id='call_1', run_id='run_1', call_key='key', "
        f"at={event.at!r}, ending='ok', seconds=0.5, error_kind=None)"
    )


KINDS = [
    kind
    for kind in vars(events).values()
    if isinstance(kind, type) and issubclass(kind, events.CallEvent)
]


@pytest.mark.parametrize("kind", KINDS)
def test_events_hold_nothing_but_their_fields(kind: type[events.CallEvent]) -> None:
    """An event has no attribute besides its fields."""
    event = kind(**{field.name: "" for field in fields(kind)})
    with pytest.raises(AttributeError, match="has no attribute 'more'"):
        event.more = 1  # type: ignore[attr-defined]  # the case
    assert kind.__doc__
