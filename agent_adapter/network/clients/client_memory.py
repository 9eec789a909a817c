"""`ClientMemory`: names and channels that a client has read, to answer without asking."""

from __future__ import annotations

from collections import OrderedDict

from agent_adapter.core.errors import NotFoundError
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.identity import Passport

_MOST_NAMES = 100_000
_MOST_CHANNELS = 1024


class ClientMemory:
    """What a client remembers of a hub; the least recently read is forgotten.

    Attributes:
        names: names of participants by id.
    """

    def __init__(self) -> None:
        self.names: OrderedDict[str, str] = OrderedDict()
        self._channels: OrderedDict[str, ChannelMetadata] = OrderedDict()

    def passport(self, passport: Passport) -> Passport:
        """Remember the name; returns the passport."""
        self._name(passport.agent_id or "", passport.name)
        return passport

    def metadata(self, metadata: ChannelMetadata) -> ChannelMetadata:
        """Remember the channel and the names of its participants; returns the metadata."""
        for agent_id, name in metadata.names().items():
            self._name(agent_id, name)
        self._channels[metadata.channel_id] = metadata
        self._channels.move_to_end(metadata.channel_id)
        if len(self._channels) > _MOST_CHANNELS:
            self._channels.popitem(last=False)
        return metadata

    def channel(self, channel_id: str) -> ChannelMetadata:
        """The channel as it was read last; `NotFoundError` if it was not."""
        try:
            return self._channels[channel_id]
        except KeyError:
            raise NotFoundError(
                f"channel {channel_id!r} was not read here; await get_channel(...) first"
            ) from None

    def _name(self, agent_id: str, name: str) -> None:
        self.names[agent_id] = name
        self.names.move_to_end(agent_id)
        if len(self.names) > _MOST_NAMES:
            self.names.popitem(last=False)
