"""Markers for tool parameters that a channel fills in, also in native AG2 tools.

If AG2 is installed, the markers also carry AG2's own annotation: `@agent.tool` functions then get
the channel and its state, and AG2 leaves the parameters out of the schema for the model.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Annotated, Any

from agent_adapter.core.routing import ChannelMarker

__all__ = ["ChannelInject", "ChannelStateInject"]


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


def _marked(what: str) -> Any:
    markers: list[Any] = [ChannelMarker(what)]
    if all(importlib.util.find_spec(name) is not None for name in ("ag2", "fast_depends")):
        markers.append(_ag2_field(f"ag2.network.{what}"))
    return Annotated[Any, *markers]


if TYPE_CHECKING:
    from agent_adapter.core.routing import ChannelInject, ChannelStateInject
else:
    ChannelInject = _marked("channel")
    ChannelStateInject = _marked("channel_state")
