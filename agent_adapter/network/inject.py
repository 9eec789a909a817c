"""Parameters that a channel fills in, also in functions that become AG2 tools.

Where AG2 is installed the markers carry its own as well, so that `@agent.tool` functions written
with them get the channel and its state, and AG2 leaves them out of what the model sees.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Annotated, Any

from agent_adapter.core.routing import ChannelMarker

__all__ = ["ChannelInject", "ChannelStateInject"]


def _marked(what: str) -> Any:
    markers: list[Any] = [ChannelMarker(what)]
    if importlib.util.find_spec("ag2") is not None:
        from ag2.annotations import Inject

        markers.append(Inject(f"ag2.network.{what}", default=None))
    return Annotated[Any, *markers]


if TYPE_CHECKING:
    from agent_adapter.core.routing import ChannelInject, ChannelStateInject
else:
    ChannelInject = _marked("channel")
    ChannelStateInject = _marked("channel_state")
