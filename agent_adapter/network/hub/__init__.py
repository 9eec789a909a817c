"""The hub of a store. `Hub` is imported on first use: importing one of its parts loads no hub."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_adapter.network.hub.hub import Hub as Hub
else:
    from agent_adapter.core.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
