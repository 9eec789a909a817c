"""Routing: the next turn that a round's tool calls ask for, and the packet that carries it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.errors import ToolError
from agent_adapter.core.routing import Finish, Handoff


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundCall:
    """One tool call of a round; `ok` is whether it succeeded, `result` its return value."""

    tool: str
    ok: bool = True
    result: Any = None
    arguments: Mapping[str, Any] | None = None


def resolved_handoff(target: str, participants: Mapping[str, str]) -> str:
    """The id of the participant that `target` names; `participants` maps names to ids.

    An id is returned unchanged. Raises `ToolError`, listing the names, for an unknown target.
    """
    if target in participants.values():
        return target
    if target in participants:
        return participants[target]
    names = ", ".join(sorted(participants))
    raise ToolError(f"cannot hand off to {target!r}: the channel's participants are {names}")


def round_routing(
    calls: Iterable[RoundCall], tool_names: frozenset[str], participants: Mapping[str, str]
) -> dict[str, Any]:
    """The packet's `routing`: that of the first successful call, in the model's order, that routes.

    Within one call `Finish` takes precedence over `Handoff`, and that over a tool of `tool_names`
    (`TransitionGraph.tool_names()`).
    """
    for call in calls:
        if not call.ok:
            continue
        routing = _call_routing(call, tool_names, participants)
        if routing is not None:
            return routing
    return {"kind": "text"}


def packet_data(
    routing: Mapping[str, Any], body: str, context_updates: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """The event data of a round's packet; `None` for a silent round.

    A round is silent if it has neither a body nor a routing call.
    """
    if not body and routing.get("kind", "text") == "text":
        return None
    updates = context_updates or {}
    return {
        "routing": dict(routing),
        "context_updates": {
            "set": dict(updates.get("set") or {}),
            "delete": list(updates.get("delete") or ()),
        },
        "body": body,
    }


def _call_routing(
    call: RoundCall, tool_names: frozenset[str], participants: Mapping[str, str]
) -> dict[str, Any] | None:
    found = _typed_results(call.result)
    if found[0] is not None:
        reason = found[0].reason or "finished"
        return {
            "kind": "finish",
            "tool": call.tool,
            "reason": reason,
            "summary": found[0].summary,
        }
    if found[1] is not None:
        target = resolved_handoff(found[1].target, participants)
        return {"kind": "handoff", "tool": call.tool, "reason": found[1].reason, "target": target}
    if call.tool in tool_names:
        said = (call.arguments or {}).get("reason")
        shown = said if isinstance(said, str) else ""
        return {"kind": "handoff", "tool": call.tool, "reason": shown}
    return None


def _typed_results(result: Any) -> tuple[Finish | None, Handoff | None]:
    parts = result if isinstance(result, (list, tuple)) else (result,)
    finish = next((part for part in parts if isinstance(part, Finish)), None)
    handoff = next((part for part in parts if isinstance(part, Handoff)), None)
    return finish, handoff
