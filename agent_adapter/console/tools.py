"""The tools pages: policies, schemas, and how tools were used."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, page
from agent_adapter.console.paging import page_links
from agent_adapter.console.parameters import Parameters, Text, read_query
from agent_adapter.console.problems import Problem
from agent_adapter.core.tool import ToolSpec
from agent_adapter.store import queries
from agent_adapter.store.base import Transaction
from agent_adapter.store.conditions import has_text

_PAGE_SIZE = 25
_SEARCHED = 10_000


class _ToolListQuery(Parameters):
    q: Text = None
    after: str = ""


async def _list(console: Console, request: Request, person: Person) -> Response:
    query = read_query(request, _ToolListQuery)
    uses, more = await console.tool_uses.get(
        (console.settings.tenant, query.after, query.q),
        lambda: tool_uses(console, query.after, _PAGE_SIZE, query.q),
    )
    known = {spec.name: _policy(spec) for spec in console.settings.registry or ()}
    filters = {"q": query.q}
    links = page_links(request, filters, start=query.after, following=more, name="after")
    return console.render(
        request, "tools.html", uses=uses, links=links, known=known, filters=filters
    )


async def _show(console: Console, request: Request, person: Person) -> Response:
    name = request.path_params["name"]
    tenant = console.settings.tenant
    spec = next((each for each in console.settings.registry or () if each.name == name), None)
    use = await console.store.read(lambda tx: queries.tool_use(tx, name, tenant))
    if spec is None and not use.calls:
        raise Problem(404, "not-found", f"no tool {name} in the registry, and no call of it")
    return console.render(
        request,
        "tool.html",
        use=use,
        facts=None if spec is None else _policy(spec),
        schema=None if spec is None else spec.json_schema(),
        name=name,
    )


async def tool_uses(
    console: Console, after: str, limit: int, text: str | None = None
) -> tuple[list[queries.ToolUse], str | None]:
    """One page of tools and their use, by name, with the registry's uncalled tools.

    `text` is a part of the name, whatever the case.
    """
    tenant = console.settings.tenant
    declared = [spec.name for spec in console.settings.registry or () if spec.name > after]

    def op(tx: Transaction) -> tuple[list[queries.ToolUse], str | None]:
        called = queries.tool_names(tx, tenant, after, limit + 1 if text is None else _SEARCHED)
        names = sorted(
            name for name in {*called, *declared} if text is None or has_text(name, text)
        )
        shown = names[:limit]
        more = shown[-1] if len(names) > limit else None
        return [queries.tool_use(tx, name, tenant) for name in shown], more

    return await console.store.read(op)


def _policy(spec: ToolSpec) -> dict[str, Any]:
    rules = {
        True: "always",
        False: "never",
        "tainted": "when tainted",
        "provenance": "by provenance",
    }
    confirm = spec.confirm
    return {
        "description": spec.description,
        "effects": spec.effects,
        "confirmation": rules[confirm] if isinstance(confirm, (bool, str)) else "by a function",
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


ROUTES: list[Route] = [
    page("/tools", _list),
    page("/tools/{name}", _show),
]
