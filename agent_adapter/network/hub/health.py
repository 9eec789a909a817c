"""`Health`: how a hub is, in a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

from agent_adapter.network.channels.metadata import ChannelState
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.store.base import Transaction


class Health(dict[str, Any]):
    """Numbers of a hub by name: at once those in memory, and those of the store once awaited.

    At once: `registered_agents`, `reachable_agents`, `pending_inbox_total`,
    `max_pending_inbox_depth`, `running_turns`, `registered_listeners`, `adapters_loaded`,
    `sweepers`, `audit_log_bytes`, `active_channels`. Awaited as well: `channels` and `turns`, each
    a number by state, `parked_turns`, `stuck_turns` (due, and nobody here takes them), `waiting`
    (parked turns by what they wait for) and `active_channels` of the store itself.
    """

    def __init__(self, known: Mapping[str, Any], read: Callable[[], Any]) -> None:
        super().__init__(known)
        self._read = read

    def __await__(self) -> Generator[Any, None, Health]:
        return self._filled().__await__()

    async def _filled(self) -> Health:
        self.update(await self._read())
        return self


def numbers_in_memory(service: ChannelService) -> dict[str, Any]:
    """The numbers of a hub about its channels and its attached participants."""
    waiting = service.waiting
    depths = [waiting[agent_id] for agent_id in waiting]
    return {
        "active_channels": service.active_channels,
        "reachable_agents": len(service.attached()),
        "pending_inbox_total": sum(depths),
        "max_pending_inbox_depth": max(depths) if any(depths) else None,
    }


def stored_numbers(tx: Transaction, attached: list[str]) -> dict[str, Any]:
    """The numbers of a hub that are in its store."""
    channels = {state.value: tx.count("channels", {"state": state.value}) for state in ChannelState}
    turns = {
        state: tx.count("turns", {"state": state})
        for state in ("due", "running", "parked", "failed")
    }
    late = {"state": "due", "due_at <=": tx.now}
    here = tx.count("turns", late | {"agent_id in": attached}) if attached else 0
    return {
        "channels": channels,
        "turns": turns,
        "active_channels": channels["active"] + channels["pending"],
        "parked_turns": turns["parked"],
        "stuck_turns": tx.count("turns", late) - here,
        "audit_records": tx.count("audit"),
    }
