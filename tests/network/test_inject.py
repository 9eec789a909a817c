"""Channel parameters that AG2 understands as well."""

from __future__ import annotations

from typing import get_args

import pytest

import agent_adapter as aa
from agent_adapter.core.routing import ChannelMarker
from agent_adapter.network import ChannelInject, ChannelStateInject

pytestmark = pytest.mark.anyio

tools = aa.ToolRegistry()


def test_they_are_still_ours() -> None:
    """A tool of this library leaves them out of its schema, and off a channel they are `None`."""

    @tools.tool
    def look(word: str, channel: ChannelInject, state: ChannelStateInject) -> str:
        """Looks."""
        return f"{word} {channel} {state}"

    assert set(aa.spec_of(look).json_schema()["properties"]) == {"word"}
    assert aa.call(look, word="hi") == "hi None None"


def test_they_carry_ag2s_markers() -> None:
    """AG2 leaves them out of what its model sees, and fills them in from a channel."""
    pytest.importorskip("ag2")
    from ag2.tools import tool

    @tool
    def look(word: str, channel: ChannelInject) -> str:
        """Looks."""
        return word

    assert set(look.schema.function.parameters["properties"]) == {"word"}


def test_both_are_markers_of_their_kind() -> None:
    """The two differ in what they ask for."""
    kinds = [get_args(item)[1] for item in (ChannelInject, ChannelStateInject)]
    assert kinds == [ChannelMarker("channel"), ChannelMarker("channel_state")]
