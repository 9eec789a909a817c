"""Finding integrations through their entry points; one bad plug-in never stops the others."""

from __future__ import annotations

import difflib
import logging
from importlib.metadata import entry_points
from typing import Any

from agent_adapter import integrations as _package
from agent_adapter.core.errors import IntegrationError
from agent_adapter.core.plugins import Plugins, UnusablePlugin, load_plugins
from agent_adapter.core.ports import AgentDriver
from agent_adapter.integrations.base import Integration, check_requirements

GROUP = "agent_adapter.integrations"
"""The entry-point group that plug-ins register in."""

_log = logging.getLogger(__name__)


_cache: Plugins[Integration] | None = None


def available_integrations(*, refresh: bool = False) -> dict[str, Integration]:
    """Every usable integration by name; looked up once, and again with `refresh=True`.

    Logs one warning per entry that it skips, and never fails because of one.
    """
    return dict(look_up(refresh=refresh).found)


def get_integration(name: str) -> Integration:
    """The integration called `name`, ready to export.

    Raises `IntegrationError` for an unknown name, and `MissingDependency` with the pip command
    where its framework is not installed.
    """
    found = look_up(refresh=False)
    integration = found.found.get(name)
    if integration is None:
        raise IntegrationError(_unknown(name, found))
    check_requirements(integration)
    return integration


def driver_for(agent: Any) -> AgentDriver | None:
    """The first integration that drives `agent` in a channel; `None` where none does."""
    for integration in look_up(refresh=False).found.values():
        if isinstance(integration, AgentDriver) and integration.drives(agent):
            return integration
    return None


def look_up(*, refresh: bool) -> Plugins[Integration]:
    """The usable integrations, and why the others are skipped."""
    # No lock: a plug-in's import may look here itself, and a second look gives the same answer.
    global _cache
    found = _cache
    if found is None or refresh:
        found = _cache = load_plugins(
            entry_points(group=GROUP),
            _accept,
            package=_package.__name__,
            noun="integration",
            log=_log,
        )
    return found


def _unknown(name: str, found: Plugins[Integration]) -> str:
    if name in found.skipped:
        return f"the integration {name!r} was skipped: {found.skipped[name]}"
    names = sorted(found.found)
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"there is no integration {name!r}{hint}; available: {', '.join(names) or 'none'}"


def _accept(name: str, loaded: Any) -> Integration:
    candidate = loaded() if isinstance(loaded, type) else loaded
    fault = _fault(name, candidate)
    if fault is not None:
        raise UnusablePlugin(fault)
    integration: Integration = candidate
    return integration


def _fault(entry_name: str, candidate: Any) -> str | None:
    """What makes `candidate` unusable, or `None`."""
    if not isinstance(candidate, Integration):
        return f"{type(candidate).__name__} is not an Integration: {_lacking(candidate)}"
    # A plug-in may hold anything in these, whatever the protocol says.
    name: object = candidate.name
    requires: object = candidate.requires
    extra: object = candidate.extra
    if not isinstance(name, str):
        return f"`name` must be a str, not {type(name).__name__}"
    if not isinstance(requires, tuple) or not all(isinstance(item, str) for item in requires):
        return f"`requires` must be a tuple of str, not {requires!r}"
    if not isinstance(extra, str | None):
        return f"`extra` must be a str or None, not {extra!r}"
    if name != entry_name:
        return f"it is named {name!r}, its entry point {entry_name!r}: they must be the same"
    return None


def _lacking(candidate: Any) -> str:
    members = ("name", "requires", "extra", "export_tool", "bind_context", "bind_approval")
    missing = [member for member in members if not hasattr(candidate, member)]
    return "it lacks " + ", ".join(missing)
