"""Changing a channel's variables from a tool."""

from __future__ import annotations

from typing import Any, Protocol

from agent_adapter.flow.envelope import EV_CONTEXT_SET


class _Channel(Protocol):
    async def send(
        self, content: str, *, event_type: str = ..., event_data: dict[str, Any] | None = ...
    ) -> Any: ...


async def set_context(channel: _Channel, key: str, value: Any) -> None:
    """Set the channel's variable `key` to `value`, a JSON value.

    Inside a round, its tools see the change at once; other participants see it when the round's
    packet is accepted. Raises `ProtocolError` for a key that the caller may not change.
    """
    await channel.send("", event_type=EV_CONTEXT_SET, event_data={"set": {key: value}})


async def delete_context(channel: _Channel, key: str) -> None:
    """Remove the channel's variable `key`, if it is set."""
    await channel.send("", event_type=EV_CONTEXT_SET, event_data={"delete": [key]})
