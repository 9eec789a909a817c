"""Which integrations there are, which of their frameworks are installed, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from agent_adapter.core.errors import IntegrationError, MissingDependency
from agent_adapter.core.extras import requirement_of
from agent_adapter.integrations.base import check_requirements
from agent_adapter.integrations.discovery import look_up


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrationState:
    """One integration: `available`, `not installed`, `unsupported`, or an entry that was `skipped`.

    `note` has the reason and the command that helps.
    """

    name: str
    state: str
    note: str | None
    installed: str | None
    supported: str | None


def integration_states() -> list[IntegrationState]:
    """Every integration by name, then the entries that had to be skipped."""
    plugins = look_up(refresh=True)
    lines = [_line(name, integration) for name, integration in sorted(plugins.found.items())]
    return lines + [
        IntegrationState(name=name, state="skipped", note=reason, installed=None, supported=None)
        for name, reason in sorted(plugins.skipped.items())
    ]


def _line(name: str, integration: Any) -> IntegrationState:
    state, note = "available", None
    try:
        check_requirements(integration)
    except MissingDependency as exc:
        state, note = "not installed", str(exc)
    except IntegrationError as exc:
        state, note = "unsupported", str(exc)
    requirements = _requirements(integration.extra)
    return IntegrationState(
        name=name,
        state=state,
        note=note,
        installed=", ".join(filter(None, map(_installed, requirements))) or None,
        supported=", ".join(f"{each.name}{each.specifier}" for each in requirements) or None,
    )


def _requirements(extra: str | None) -> list[Any]:
    try:
        return list(requirement_of(extra)) if extra is not None else []
    except Exception:  # an extra of somebody else's distribution
        return []


def _installed(requirement: Any) -> str | None:
    try:
        return f"{requirement.name} {version(requirement.name)}"
    except PackageNotFoundError:
        return None
