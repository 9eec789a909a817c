"""The part of a hub that reads channels: what they are, what was said, how they stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.channels import log
from agent_adapter.network.channels.metadata import ChannelMetadata, ChannelState
from agent_adapter.network.channels.snapshot import load_snapshot
from agent_adapter.store.base import Row, Transaction

if TYPE_CHECKING:
    from agent_adapter.network.hub.channel_service import ChannelService

__all__ = ["HubChannels"]

_PAGE = 500


class HubChannels:
    """Channels, read: nothing here changes one."""

    adapters: AdapterRegistry
    _board: ChannelService

    async def get_channel(self, channel_id: str) -> ChannelMetadata:
        """All about a channel but its messages; `NotFoundError` where there is none."""
        return (await self._board.known(channel_id)).metadata

    async def list_channels(
        self,
        *,
        agent_id: str | None = None,
        state: ChannelState | str | None = None,
        limit: int = 50,
    ) -> list[ChannelMetadata]:
        """Channels, the newest first: of a participant, in a state."""
        wanted = ChannelState(state).value if state is not None else None

        def op(tx: Transaction) -> list[ChannelMetadata]:
            rows = _channel_rows(tx, agent_id, wanted, limit)
            return [load_snapshot(tx, row, self.adapters).metadata for row in rows]

        return await self._board.read(op)

    async def read_wal(
        self, channel_id: str, since: int = 0, until: int | None = None
    ) -> list[Envelope]:
        """The log from its entry `since`, counted from 0, up to and without `until`.

        It is raw, hidden messages included: for the hub's own process.
        """
        found: list[Envelope] = []
        at = since
        while until is None or at < until:
            limit = _PAGE if until is None else min(_PAGE, until - at)
            page = await self._board.read(_page(channel_id, at, limit))
            found += [envelope for _, envelope in page]
            at += len(page)
            if len(page) < limit:
                break
        return found

    async def window(
        self, channel_id: str, participant_id: str, recent_n: int
    ) -> Sequence[Envelope]:
        """The newest texts and packets that the participant may see, oldest first."""
        return await self._board.read(
            lambda tx: log.window(tx, channel_id, participant_id, recent_n)
        )

    async def adapter_state(self, channel_id: str) -> Any:
        """The folded state of a channel, as a copy."""
        known = await self._board.known(channel_id)
        data = known.adapter.state_to_dict(known.state)
        return known.adapter.state_from_dict(known.metadata, data)

    async def adapter_for(self, channel_id: str) -> ChannelAdapter:
        """The code of a channel's type."""
        return (await self._board.known(channel_id)).adapter


def _channel_rows(
    tx: Transaction, agent_id: str | None, state: str | None, limit: int
) -> list[Row]:
    where: Row = {} if state is None else {"state": state}
    if agent_id is None:
        return tx.select("channels", where, order_by="created_at", descending=True, limit=limit)
    member = {"agent_id": agent_id}
    most = limit if state is None else None
    mine = tx.select("channel_members", member, order_by="joined_at", descending=True, limit=most)
    rows = [tx.get("channels", item["channel_id"]) for item in mine]
    return [row for row in rows if row and (state is None or row["state"] == state)][:limit]


def _page(channel_id: str, since: int, limit: int) -> Callable[[Transaction], Any]:
    return lambda tx: log.read_from(tx, channel_id, since, limit)
