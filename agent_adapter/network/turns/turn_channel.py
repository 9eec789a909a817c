"""The channel as a round sees it: its changes are kept until the round's packet is accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_adapter.core.errors import ProtocolError
from agent_adapter.flow.context_vars import check_updates
from agent_adapter.flow.envelope import EV_CONTEXT_SET, EV_TEXT, Envelope, envelope_problems
from agent_adapter.flow.wire import json_copy

if TYPE_CHECKING:
    from agent_adapter.network.turns.turn import Turn

__all__ = ["TurnChannel"]


class TurnChannel:
    """A channel bound to one turn: what `ChannelInject` gives a tool."""

    __slots__ = ("_turn",)

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    @property
    def channel_id(self) -> str:
        """The channel's id."""
        return self._turn.channel_id

    @property
    def metadata(self) -> Any:
        """The channel's metadata as it was when the round began."""
        return self._turn.metadata

    @property
    def state(self) -> Any:
        """Where the channel is in its life."""
        return getattr(self._turn.metadata, "state", None)

    async def send(
        self,
        content: str,
        *,
        audience: list[str] | None = None,
        causation_id: str | None = None,
        event_type: str = EV_TEXT,
        event_data: dict[str, Any] | None = None,
        depth: int | None = None,
    ) -> None:
        """Change the channel's variables: the only event a round may send besides its packet.

        The change is visible to this round's tools at once, and is written before the packet, in
        one step with it. `ProtocolError` for any other event, and for a key that the speaker may
        not change.
        """
        if event_type != EV_CONTEXT_SET:
            raise ProtocolError(
                f"a tool cannot send {event_type} during its own turn: what the round returns is "
                "the turn's message; return the text instead"
            )
        if audience is not None:
            raise ProtocolError("a channel's variables belong to all: audience must be None")
        turn = self._turn
        where = "the change of variables"
        body: dict[str, Any] = json_copy(dict(event_data or {}), where, ProtocolError)
        problems = envelope_problems(
            Envelope(turn.channel_id, turn.agent_id, None, EV_CONTEXT_SET, body)
        )
        if problems:
            raise ProtocolError(f"the {event_type} is malformed: {'; '.join(problems)}")
        acl = (getattr(turn.metadata, "knobs", None) or {}).get("context_acl")
        check_updates(body, turn.context_vars, writer=turn.agent_name, acl=acl)
        await turn.stage(body)

    async def info(self) -> Any:
        """The channel's metadata, read again where there is a hub to ask."""
        hub = self._turn.hub_client
        return self.metadata if hub is None else await hub.get_channel(self.channel_id)

    async def close(self, reason: str = "") -> None:
        """Close the channel with `reason`, after this round's packet."""
        await self._turn.stage({"close": reason})

    def is_terminal(self) -> bool:
        """Whether the channel had ended when the round began."""
        check = getattr(self._turn.metadata, "is_terminal", None)
        return bool(check()) if check is not None else False
