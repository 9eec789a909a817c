"""Finding integrations through their entry points; one bad plug-in never stops the others."""

from __future__ import annotations

import difflib
import logging
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from agent_adapter import integrations as _package
from agent_adapter.core.errors import IntegrationError
from agent_adapter.core.ports import AgentDriver
from agent_adapter.integrations.base import Integration, check_requirements

__all__ = ["GROUP", "available_integrations", "driver_for", "get_integration"]

GROUP = "agent_adapter.integrations"
"""The entry-point group that plug-ins register in."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What one look at the entry points gave; `skipped` has the reason by entry-point name."""

    integrations: dict[str, Integration]
    skipped: dict[str, str]


class _Unusable(Exception):
    """An entry is skipped; the text says why."""


_cache: _Found | None = None


def available_integrations(*, refresh: bool = False) -> dict[str, Integration]:
    """Every usable integration by name; looked up once, and again with `refresh=True`.

    Logs one warning per entry that it skips, and never fails because of one.
    """
    return dict(_look_up(refresh).integrations)


def get_integration(name: str) -> Integration:
    """The integration called `name`, ready to export.

    Raises `IntegrationError` for an unknown name, and `MissingDependency` with the pip command
    where its framework is not installed.
    """
    found = _look_up(refresh=False)
    integration = found.integrations.get(name)
    if integration is None:
        raise IntegrationError(_unknown(name, found))
    check_requirements(integration)
    return integration


def driver_for(agent: Any) -> AgentDriver | None:
    """The first integration that drives `agent` in a channel; `None` where none does."""
    for integration in _look_up(refresh=False).integrations.values():
        if isinstance(integration, AgentDriver) and integration.drives(agent):
            return integration
    return None


def _look_up(refresh: bool) -> _Found:
    # No lock: a plug-in's import may look here itself, and a second look gives the same answer.
    global _cache
    found = _cache
    if found is None or refresh:
        found = _cache = _load_all(entry_points(group=GROUP))
    return found


def _unknown(name: str, found: _Found) -> str:
    if name in found.skipped:
        return f"the integration {name!r} was skipped: {found.skipped[name]}"
    names = sorted(found.integrations)
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"there is no integration {name!r}{hint}; available: {', '.join(names) or 'none'}"


def _load_all(entries: Iterable[EntryPoint]) -> _Found:
    integrations: dict[str, Integration] = {}
    skipped: dict[str, str] = {}
    for entry in sorted(entries, key=_order):
        try:
            _check_name(entry, integrations)
            integrations[entry.name] = _usable(entry)
        except _Unusable as exc:
            skipped.setdefault(entry.name, str(exc))
            _log.warning("skipped the integration %r (%s): %s", entry.name, _origin(entry), exc)
    return _Found(integrations=integrations, skipped=skipped)


def _order(entry: EntryPoint) -> tuple[bool, str, str, str]:
    """Our own first, then by distribution and value: the first of two is always the same."""
    return (not _is_ours(entry), _distribution(entry), entry.value, entry.name)


def _check_name(entry: EntryPoint, taken: dict[str, Integration]) -> None:
    if entry.name in taken:
        raise _Unusable("its name is already taken")
    if not _is_ours(entry) and entry.name.replace("-", "_") in _built_in_modules():
        raise _Unusable("its name belongs to a built-in integration")


def _built_in_modules() -> frozenset[str]:
    return frozenset(module.name for module in pkgutil.iter_modules(_package.__path__))


def _is_ours(entry: EntryPoint) -> bool:
    return entry.value.startswith(_package.__name__ + ".")


def _usable(entry: EntryPoint) -> Integration:
    # A plug-in that exits while it is imported must not end the program; an interrupt must.
    try:
        target = entry.load()
        candidate = target() if isinstance(target, type) else target
        fault = _fault(entry.name, candidate)
    except (Exception, SystemExit) as exc:
        raise _Unusable(f"loading {entry.value!r} failed: {_said(exc)}") from exc
    if fault is not None:
        raise _Unusable(fault)
    integration: Integration = candidate
    return integration


def _said(exc: BaseException) -> str:
    try:
        return f"{type(exc).__name__}: {exc}"
    except Exception:  # the plug-in's own `__str__` may fail too
        return type(exc).__name__


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


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else ""


def _origin(entry: EntryPoint) -> str:
    return f"{entry.value} of {_distribution(entry) or 'an unknown distribution'}"
