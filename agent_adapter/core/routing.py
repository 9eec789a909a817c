"""Typed tool results that route a turn, and the markers a channel fills in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal


@dataclass(frozen=True, slots=True)
class Handoff:
    """The next turn goes to the participant whose Passport name is `target`."""

    target: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Finish:
    """The channel ends with `summary`; `reason` is why it is closed."""

    summary: str = ""
    reason: str = "finished"


@dataclass(frozen=True, slots=True)
class ChannelMarker:
    """Marks a parameter that receives a value of the current turn, or of the running task."""

    what: Literal["channel", "channel_state", "agent_client", "hub", "task"]


ChannelInject = Annotated[Any, ChannelMarker("channel")]
"""A parameter that receives the current channel; `None` off a channel."""

ChannelStateInject = Annotated[Any, ChannelMarker("channel_state")]
"""A parameter that receives the folded channel state; `None` off a channel."""
