"""`peers`: find other participants, and read what one can do."""

from __future__ import annotations

from typing import Any, Literal

from agent_adapter.core.errors import NotFoundError, ToolError
from agent_adapter.core.tool import ToolSpec
from agent_adapter.network.clients.agent_client import AgentClient
from agent_adapter.network.identity import ObservedStat, Passport, Resume
from agent_adapter.network.tools.skills import render_fallback_skill

_Order = Literal["name", "cost", "track_record"]


def peers_tool(client: AgentClient) -> ToolSpec:
    """The tool, bound to one participant."""

    async def peers(
        action: Literal["find", "describe"],
        query: str | None = None,
        capability: str | None = None,
        sort_by: _Order | None = None,
        name: str | None = None,
        limit: int = 20,
    ) -> Any:
        """Find other participants of the network, or describe one of them.

        Args:
            action: "find" lists participants; "describe" gives the details of the one called
                `name`.
            query: for "find": words that their name or summary has.
            capability: for "find": what they must be able to do.
            sort_by: for "find": by name, by cost (cheapest first) or by track record (best first).
            name: for "describe": the participant's name, or its id.
            limit: for "find": how many at most.
        """
        if action == "find":
            return await _found(client, query, capability, sort_by, limit)
        if not name:
            raise ToolError('peers(action="describe") needs `name`')
        return await _described(client, name)

    return ToolSpec.from_function(peers, effects="read")


async def _found(
    client: AgentClient,
    query: str | None,
    capability: str | None,
    sort_by: _Order | None,
    limit: int,
) -> list[dict[str, Any]]:
    hub = client.hub_client
    found = []
    # One more, because the caller is among them.
    for passport in await hub.list_agents(capability=capability, query=query, limit=limit + 1):
        if passport.agent_id and passport.agent_id != client.agent_id:
            found.append(_summary(passport, await hub.get_resume(passport.agent_id)))
    if sort_by is not None:
        found.sort(key=_ORDERS[sort_by])
    return found[:limit]


async def _described(client: AgentClient, name: str) -> dict[str, Any]:
    hub = client.hub_client
    try:
        passport = await hub.get_agent(name)
    except NotFoundError as exc:
        raise ToolError(f"peer {name!r} not found: {exc}") from exc
    agent_id = passport.agent_id or ""
    resume = await hub.get_resume(agent_id)
    skill = await hub.get_skill(agent_id)
    return {
        "passport": {
            "name": passport.name,
            "agent_id": agent_id,
            "owner": passport.owner,
            "provider": passport.provider,
            "model": passport.model,
        },
        "resume": {
            "summary": resume.summary,
            "claimed_capabilities": list(resume.claimed_capabilities),
            "domains": list(resume.domains),
            "observed": {name: _counts(stat) for name, stat in resume.observed.items()},
        },
        "skill_md": skill or render_fallback_skill(passport, resume),
    }


def _counts(stat: ObservedStat) -> dict[str, int]:
    return {
        "n": stat.n,
        "completed": stat.completed,
        "failed": stat.failed,
        "expired": stat.expired,
    }


def _summary(passport: Passport, resume: Resume) -> dict[str, Any]:
    seen = resume.observed.values()
    total = sum(item.n for item in seen)
    return {
        "name": passport.name,
        "agent_id": passport.agent_id,
        "summary": resume.summary,
        "capabilities": list(resume.claimed_capabilities),
        "observed_success_rate": sum(item.completed for item in seen) / total if total else None,
        "cost": None if passport.cost is None else passport.cost.to_dict(),
    }


def _price(found: dict[str, Any]) -> float:
    price = (found["cost"] or {}).get("input_per_mtok")
    return float("inf") if price is None else float(price)


_ORDERS: dict[str, Any] = {
    "name": lambda item: item["name"],
    "cost": _price,
    "track_record": lambda item: -(item["observed_success_rate"] or 0.0),
}
