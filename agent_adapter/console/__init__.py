"""The web console: where people approve, watch and repair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_adapter.console.app import create_app
    from agent_adapter.console.settings import TrustedProxy

__all__ = ["TrustedProxy", "create_app"]

_HOMES = {
    "TrustedProxy": "agent_adapter.console.settings",
    "create_app": "agent_adapter.console.app",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
