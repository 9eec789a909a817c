"""Parameters that a channel fills in, also in functions that become AG2 tools.

Where AG2 is installed the markers carry what it reads as well, so that `@agent.tool` functions
written with them get the channel and its state, and AG2 leaves them out of what a model sees.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Annotated, Any

from agent_adapter.core.routing import ChannelMarker

__all__ = ["ChannelInject", "ChannelStateInject"]


def _ag2_field(key: str) -> Any:
    """What AG2's tools read a parameter's value with: from the turn's dependencies, else `None`.

    AG2's own class for it is not used, since importing AG2 takes seconds, and code that only takes
    the marker may not need it.
    """
    from fast_depends.library import CustomField

    class FromDependencies(CustomField):
        """One dependency of an AG2 conversation."""

        def use(self, /, **kwargs: Any) -> dict[str, Any]:
            """Put the value in; off a channel it is `None`."""
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
