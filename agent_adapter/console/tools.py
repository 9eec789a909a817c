"""Tools and the store's health: what there is, how it is used, and what is wrong."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, page
from agent_adapter.console.problems import Problem
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.installed import survey
from agent_adapter.store import queries
from agent_adapter.store.base import Transaction

__all__ = ["PAGE", "ROUTES", "facts_of", "health_of", "uses_of"]

PAGE = 25


async def _list(console: Console, request: Request, person: Person) -> Response:
    after = request.query_params.get("after", "")
    uses, more = await uses_of(console, after, PAGE)
    known = {spec.name: facts_of(spec) for spec in console.settings.registry or ()}
    return console.render(request, "tools.html", uses=uses, more=more, known=known)


async def _show(console: Console, request: Request, person: Person) -> Response:
    name = request.path_params["name"]
    tenant = console.settings.tenant
    spec = next((each for each in console.settings.registry or () if each.name == name), None)
    use = await console.store.read(lambda tx: queries.tool_use(tx, name, tenant))
    if spec is None and not use.calls:
        raise Problem(404, "not-found", f"no tool {name} in the registry or among the calls")
    return console.render(
        request,
        "tool.html",
        use=use,
        facts=None if spec is None else facts_of(spec),
        schema=None if spec is None else spec.json_schema(),
        name=name,
    )


async def _health(console: Console, request: Request, person: Person) -> Response:
    found = await health_of(console)
    return console.render(request, "health.html", **found)


async def uses_of(
    console: Console, after: str, limit: int
) -> tuple[list[queries.ToolUse], str | None]:
    """How tools were used, by name; those of the registry that nobody called yet among them."""
    tenant = console.settings.tenant
    declared = [spec.name for spec in console.settings.registry or () if spec.name > after]

    def op(tx: Transaction) -> tuple[list[queries.ToolUse], str | None]:
        called = queries.tool_names(tx, after, limit + 1)
        names = sorted({*called, *declared})
        shown = names[:limit]
        more = shown[-1] if len(names) > limit else None
        uses = [queries.tool_use(tx, name, tenant) for name in shown]
        # A tool that only another tenant has called is none here.
        return [use for use in uses if use.calls or use.tool in declared], more

    return await console.store.read(op)


def facts_of(spec: ToolSpec) -> dict[str, Any]:
    """A tool's policy in words."""
    rules = {True: "always", False: "never", "tainted": "when tainted"}
    confirm = spec.confirm
    said = rules[confirm] if isinstance(confirm, (bool, str)) else "a rule decides"
    return {
        "description": spec.description,
        "effects": spec.effects,
        "asks a person": said,
        "trust": spec.trust,
        "frameworks": "all" if spec.targets is None else ", ".join(sorted(spec.targets)),
        "timeout": None if spec.timeout is None else f"{spec.timeout} s",
        "retries": None if spec.retries is None else f"{spec.retries.attempts} attempts",
        "cache": None if spec.cache is None else f"{spec.cache.ttl} s per {spec.cache.scope}",
        "cost": spec.cost if isinstance(spec.cost, (int, float)) else None,
        "tags": ", ".join(spec.tags) or None,
        "version": spec.version,
        "fingerprint": spec.fingerprint,
    }


async def health_of(console: Console) -> dict[str, Any]:
    """The store, what is under way in it, and the integrations that are installed."""
    import agent_adapter

    health = await console.store.read(queries.health)
    found = await asyncio.to_thread(survey)
    return {
        "version": agent_adapter.__version__,
        "store": console.store.url,
        "durable": console.store.durable,
        "health": health,
        "integrations": [asdict(line) for line in found],
    }


ROUTES: list[Route] = [
    page("/tools", _list),
    page("/tools/{name}", _show),
    page("/health", _health),
]
