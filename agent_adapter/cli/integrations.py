"""`agent-adapter integrations`: which frameworks are there, and how to install the others."""

from __future__ import annotations

import logging
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from agent_adapter.cli.exits import OK
from agent_adapter.cli.options import AsJson
from agent_adapter.cli.output import console, print_json, table

__all__ = ["command"]


def command(as_json: AsJson = False) -> int:
    """List the integrations, the installed versions, and what installs the missing ones."""
    rows = _rows()
    if as_json:
        print_json(rows)
        return OK
    columns = ("name", "state", "installed", "supported", "note")
    console().print(table(columns, [[row[column] or "-" for column in columns] for row in rows]))
    return OK


def _rows() -> list[dict[str, Any]]:
    from agent_adapter.core.errors import IntegrationError, MissingDependency
    from agent_adapter.integrations.base import check_requirements
    from agent_adapter.integrations.discovery import available_integrations

    skipped = _Skipped()
    logger = logging.getLogger("agent_adapter.integrations")
    logger.addHandler(skipped)
    try:
        found = available_integrations(refresh=True)
    finally:
        logger.removeHandler(skipped)
    rows: list[dict[str, Any]] = []
    for name, integration in sorted(found.items()):
        state, note = "available", None
        try:
            check_requirements(integration)
        except MissingDependency as exc:
            state, note = "not installed", str(exc)
        except IntegrationError as exc:
            state, note = "unsupported", str(exc)
        rows.append({"name": name, "state": state, "note": note} | _versions(integration.extra))
    rows += [
        {"name": "-", "state": "skipped", "installed": None, "supported": None, "note": line}
        for line in skipped.lines
    ]
    return rows


def _versions(extra: str | None) -> dict[str, Any]:
    """What is installed of the packages of one of our extras, and the range that it states."""
    from agent_adapter.core.extras import requirement_of

    try:
        requirements = list(requirement_of(extra)) if extra is not None else []
    except Exception:  # an extra of somebody else's distribution
        requirements = []
    return {
        "installed": ", ".join(filter(None, map(_installed, requirements))) or None,
        "supported": ", ".join(f"{each.name}{each.specifier}" for each in requirements) or None,
    }


def _installed(requirement: Any) -> str | None:
    try:
        return f"{requirement.name} {version(requirement.name)}"
    except PackageNotFoundError:
        return None


class _Skipped(logging.Handler):
    """Collects why discovery skipped an entry."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record's text."""
        self.lines.append(record.getMessage())
