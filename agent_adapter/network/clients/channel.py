"""`Channel`: what a participant holds of a channel that it takes part in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_adapter.flow.envelope import EV_TEXT, Envelope
from agent_adapter.network.channels.metadata import ChannelMetadata, ChannelState

if TYPE_CHECKING:
    from agent_adapter.network.clients.participant import ParticipantClient

__all__ = ["Channel"]


class Channel:
    """One participant's hold of a channel; `metadata` is a snapshot that `info()` renews."""

    __slots__ = ("_client", "_metadata")

    def __init__(self, *, metadata: ChannelMetadata, client: ParticipantClient) -> None:
        self._metadata = metadata
        self._client = client

    @property
    def channel_id(self) -> str:
        """The channel's id."""
        return self._metadata.channel_id

    @property
    def metadata(self) -> ChannelMetadata:
        """The channel as it was when it was last asked about."""
        return self._metadata

    @property
    def state(self) -> ChannelState:
        """Where the channel was in its life then."""
        return self._metadata.state

    async def send(
        self,
        content: str,
        *,
        audience: list[str] | None = None,
        causation_id: str | None = None,
        event_type: str = EV_TEXT,
        event_data: dict[str, Any] | None = None,
        depth: int | None = None,
    ) -> str:
        """Send a message as the participant; the id of the accepted envelope.

        `content` is the text of an `EV_TEXT`; other events have `event_data`. `audience` are ids
        of those who may see it, `None` is everybody. `depth` counts delegations; inside a turn it
        follows from the message that the turn answers. `ProtocolError` when it is not the
        participant's turn, or the channel has ended: nothing was written then.
        """
        return await self._client.send_envelope(
            Envelope(
                channel_id=self.channel_id,
                sender_id=self._client.agent_id,
                audience=audience,
                event_type=event_type,
                event_data={"text": content} if event_data is None else event_data,
                causation_id=causation_id,
                depth=self._client.next_depth() if depth is None else depth,
            )
        )

    async def info(self) -> ChannelMetadata:
        """The channel as it is now."""
        self._metadata = await self._client.hub_client.get_channel(self.channel_id)
        return self._metadata

    async def close(self, reason: str = "") -> ChannelMetadata:
        """Close the channel; one that has ended stays as it is."""
        self._metadata = await self._client.close_channel(self.channel_id, reason)
        return self._metadata

    def is_terminal(self) -> bool:
        """Whether the channel had ended when it was last asked about."""
        return self._metadata.is_terminal()

    def __repr__(self) -> str:
        return f"Channel({self.channel_id}, {self._metadata.manifest.type}, {self.state})"
