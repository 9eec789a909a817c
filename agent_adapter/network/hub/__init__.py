"""The hub of a store. `Hub` is imported on first use: importing one of its parts loads no hub."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_adapter.network.hub.hub import Hub as Hub
else:

    def __getattr__(name: str) -> Any:
        if name != "Hub":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from agent_adapter.network.hub.hub import Hub

        return Hub
