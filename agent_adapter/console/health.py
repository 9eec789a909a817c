"""The health page: the store, what is under way in it, and the installed integrations."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, page
from agent_adapter.console.row_types import ProcessRow
from agent_adapter.integrations.installed import IntegrationState, integration_states
from agent_adapter.store import queries, retention
from agent_adapter.store.notifications import OutboxSummary
from agent_adapter.store.retention import Hold, Outlook


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreHealth:
    """What is under way in the store, of the person's tenant; `hub` holds the hub's lease."""

    now: float
    processes: list[ProcessRow]
    hub: str | None
    commands_queued: int
    approvals_pending: int
    turns: dict[str, int]
    open_calls: int
    writes_stopped: str | None
    notifications: OutboxSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """The library's version, its store, what it keeps, and the integrations with their versions.

    `retention` is the tenant's policy; `holds` are kept whatever their age.
    """

    version: str
    store: str
    durable: bool
    health: StoreHealth
    retention: list[Outlook]
    holds: list[Hold]
    integrations: list[IntegrationState]


async def health_report(console: Console) -> HealthReport:
    """The state of the store and of the integrations now."""
    import agent_adapter

    tenant = console.settings.tenant
    found: dict[str, Any] = await console.store.read(lambda tx: queries.health(tx, tenant))
    return HealthReport(
        version=agent_adapter.__version__,
        store=console.store.url,
        durable=console.store.durable,
        health=StoreHealth(**found),
        retention=await console.store.read(lambda tx: retention.outlook(tx, tenant)),
        holds=await console.store.read(lambda tx: retention.holds_of(tx, tenant)),
        # In a thread: it reads the metadata of every installed distribution.
        integrations=await console.installed.get("", lambda: asyncio.to_thread(integration_states)),
    )


async def _show(console: Console, request: Request, person: Person) -> Response:
    return console.render(request, "health.html", report=await health_report(console))


ROUTES: list[Route] = [page("/health", _show)]
