"""Markers for tool parameters that a channel fills in, also in native AG2 tools.

If AG2 is installed, the markers also carry AG2's own annotation: `@agent.tool` functions then get
the channel and its state, and AG2 leaves the parameters out of the schema for the model.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Annotated, Any, Literal

from agent_adapter.core.routing import ChannelMarker
from agent_adapter.network.compat.dependencies import (
    AGENT_CLIENT_DEP,
    CHANNEL_DEP,
    CHANNEL_STATE_DEP,
    HUB_DEP,
    TASK_DEP,
)

__all__ = [
    "AgentClientInject",
    "ChannelInject",
    "ChannelStateInject",
    "HubInject",
    "TaskInject",
]

_What = Literal["channel", "channel_state", "agent_client", "hub", "task"]


def _ag2_field(key: str) -> Any:
    """AG2's annotation for a parameter whose value is a dependency of the turn, else `None`.

    AG2's own class is not imported: that takes seconds, and a program may need only the marker.
    """
    from fast_depends.library import CustomField

    class FromDependencies(CustomField):
        """One dependency of an AG2 conversation."""

        def use(self, /, **kwargs: Any) -> dict[str, Any]:
            """Add the value; outside of a channel it is `None`."""
            from ag2.utils import CONTEXT_OPTION_NAME

            context = kwargs.get(CONTEXT_OPTION_NAME)
            found = getattr(context, "dependencies", {})
            return {**kwargs, str(self.param_name): found.get(key)}

    return FromDependencies(cast=False, required=False)


def _marked(what: _What, key: str) -> Any:
    markers: list[Any] = [ChannelMarker(what)]
    if all(importlib.util.find_spec(name) is not None for name in ("ag2", "fast_depends")):
        markers.append(_ag2_field(key))
    return Annotated[Any, *markers]


if TYPE_CHECKING:
    from agent_adapter.core.routing import ChannelInject, ChannelStateInject

    AgentClientInject = Annotated[Any, ChannelMarker("agent_client")]
    """A parameter that receives the participant whose turn it is; `None` off a channel."""

    HubInject = Annotated[Any, ChannelMarker("hub")]
    """A parameter that receives the participant's `HubClient`; `None` off a channel."""

    TaskInject = Annotated[Any, ChannelMarker("task")]
    """A parameter that receives AG2's running task; `None` outside of `agent.task(...)`."""
else:
    ChannelInject = _marked("channel", CHANNEL_DEP)
    ChannelStateInject = _marked("channel_state", CHANNEL_STATE_DEP)
    AgentClientInject = _marked("agent_client", AGENT_CLIENT_DEP)
    HubInject = _marked("hub", HUB_DEP)
    TaskInject = _marked("task", TASK_DEP)
