"""What a speaker sees: names, windows, audiences, and the line about what is left out."""

from __future__ import annotations

import pytest

from agent_adapter.flow import EV_CONTEXT_SET, EV_PACKET, Envelope
from agent_adapter.network import (
    FullTranscript,
    NamedTranscript,
    NamedWindowedSummary,
    ViewPolicy,
    WindowedSummary,
)
from agent_adapter.network.adapters.workflow import WorkflowAdapter
from tests.network._channels import said

RENDER = WorkflowAdapter().render_envelope
LOG = [said("a", "one"), said("b", "two"), said("a", "three")]


def seen(view: ViewPolicy, log: list[Envelope] = LOG, reader: str = "a", **more: int) -> list[str]:
    """The texts that `reader` sees."""
    shown = view.project(
        log, participant_id=reader, render_envelope=RENDER, name_for=str.upper, **more
    )
    return [message.text for message in shown]


def test_transcript_shows_everything() -> None:
    """A full transcript has every message in its words."""
    assert seen(FullTranscript()) == ["one", "two", "three"]


def test_named_transcript_names_the_others() -> None:
    """A named view names the sender of each message that is not the reader's own."""
    assert seen(NamedTranscript()) == ["one", "[B]: two", "three"]


def test_own_messages_are_marked() -> None:
    """A reader's own messages are told apart from those of others."""
    shown = FullTranscript().project(LOG, participant_id="b", render_envelope=RENDER)
    assert [message.own for message in shown] == [False, True, False]


def test_window_says_what_it_leaves_out() -> None:
    """A windowed view begins with a line about the messages before it."""
    summary, *rest = seen(NamedWindowedSummary(2))
    assert summary == "Earlier in this channel: 1 message from A."
    assert rest == ["[B]: two", "three"]


def test_window_counts_what_was_never_read() -> None:
    """Messages that nobody read for the view are counted without reading them."""
    assert seen(WindowedSummary(3), earlier=40)[0] == "Earlier in this channel: 40 messages."


def test_what_fits_has_no_summary() -> None:
    """Nothing is said about earlier messages where there are none."""
    assert seen(NamedWindowedSummary(3)) == ["one", "[B]: two", "three"]


def test_audience_holds_in_views() -> None:
    """A message for others is neither shown nor counted."""
    log = [said("b", "secret", audience=["c"]), *LOG]
    assert seen(NamedWindowedSummary(3), log) == ["one", "[B]: two", "three"]


def test_bookkeeping_is_not_shown() -> None:
    """Changes of variables are no messages."""
    assert seen(FullTranscript(), [said("b", event=EV_CONTEXT_SET, data={"set": {}})]) == []


def test_handoff_is_a_line_before_the_body() -> None:
    """The next speaker reads by which tool, and why, the turn came to it."""
    routing = {"kind": "handoff", "tool": "escalate", "reason": "too hard", "target": "b"}
    packet = said("b", event=EV_PACKET, data={"routing": routing, "body": "please look"})
    assert seen(FullTranscript(), [packet]) == ["[Handed off via escalate] too hard\nplease look"]


def test_window_must_be_a_number() -> None:
    """A window of nothing is refused."""
    with pytest.raises(ValueError, match="from 1"):
        WindowedSummary(0)
