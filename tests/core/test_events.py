"""Events are plain values: they say what happened to which call."""

from __future__ import annotations

import time

import pytest

from agent_adapter.core import events


def test_event_carries_the_call_and_the_time() -> None:
    """The time is now unless it is given."""
    before = time.time()
    event = events.CallFinished("tool", "call_1", "run_1", "key", "ok", 0.5)
    assert before <= event.at <= time.time()
    assert repr(event) == (
        f"CallFinished(tool='tool', call_id='call_1', run_id='run_1', call_key='key', "
        f"ending='ok', error_kind=None, seconds=0.5, at={event.at!r})"
    )


@pytest.mark.parametrize("name", sorted(set(events.__all__) - {"CallEvent"}))
def test_events_hold_nothing_but_their_fields(name: str) -> None:
    """Each is one slotted class of the common base."""
    kind = getattr(events, name)
    assert issubclass(kind, events.CallEvent)
    assert not hasattr(kind, "__dict__") or "__dict__" not in kind.__slots__
    assert kind.__doc__
