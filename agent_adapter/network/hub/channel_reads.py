"""`ChannelReads`: what can be read of a hub's channels."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from agent_adapter.core.errors import NotFoundError, ProtocolError
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.channels import log
from agent_adapter.network.channels.metadata import ChannelMetadata, ChannelState
from agent_adapter.network.channels.snapshot import ChannelSnapshot, load_snapshot
from agent_adapter.network.channels.transaction import HubContext
from agent_adapter.network.channels.windows import window
from agent_adapter.network.hub.at_once import snapshot_now
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.store.base import Row, Transaction

_PAGE = 500
_KEPT_OPENINGS = 128
"""The openings that are kept: each may have 512 KB, and one that is not kept is read again."""
_log = logging.getLogger("agent_adapter.network")


class ChannelReads:
    """Reads the channels of a hub."""

    def __init__(self, service: ChannelService, context: HubContext) -> None:
        self._service = service
        self._context = context
        self._openings: OrderedDict[tuple[str, str], Envelope] = OrderedDict()

    async def get_channel(self, channel_id: str) -> ChannelMetadata:
        """Everything about a channel except its messages; `NotFoundError` for an unknown id."""
        return (await self._service.snapshot(channel_id)).metadata

    async def list_channels(
        self,
        *,
        agent_id: str | None = None,
        state: ChannelState | str | None = None,
        limit: int = 50,
    ) -> list[ChannelMetadata]:
        """Channels, newest first: of a participant, in a state."""
        wanted = ChannelState(state).value if state is not None else None
        adapters = self._context.adapters

        def op(tx: Transaction) -> list[ChannelMetadata]:
            rows = _channel_rows(tx, agent_id, wanted, limit)
            return [found for row in rows if (found := _readable_metadata(tx, row, adapters))]

        return await self._service.read(op)

    async def read_wal(
        self, channel_id: str, since: int = 0, until: int | None = None
    ) -> list[Envelope]:
        """The log from entry `since`, counted from 0, up to and without `until`.

        Includes envelopes with a restricted audience: for the hub's own process only.
        """
        found: list[Envelope] = []
        at = since
        while until is None or at < until:
            limit = _PAGE if until is None else min(_PAGE, until - at)
            page = await self._service.read(_page(channel_id, at, limit))
            found += [envelope for _, envelope in page]
            at += len(page)
            if len(page) < limit:
                break
        return found

    async def window(
        self, channel_id: str, participant_id: str, recent_n: int, pinned: bool = False
    ) -> Sequence[Envelope]:
        """The newest texts and packets that the participant may see, oldest first.

        If `pinned`, the first one comes before them where it is older.
        """
        key = (channel_id, participant_id)
        opening = self._openings.get(key) if pinned else None
        newest = await self._service.read(
            lambda tx: window(
                tx, channel_id, participant_id, recent_n, pinned=pinned and opening is None
            )
        )
        if opening is not None:  # read before; it never changes
            held = len(newest) < recent_n or newest[0].envelope_id == opening.envelope_id
            return newest if held else [opening, *newest]
        if len(newest) > recent_n:
            self._openings[key] = newest[0]
            if len(self._openings) > _KEPT_OPENINGS:
                self._openings.popitem(last=False)
        return newest

    def adapter_state(self, channel_id: str) -> Any:
        """The folded state as a copy, read now, which may block; `None` for no such channel."""
        snapshot = snapshot_now(self._service, channel_id)
        return None if snapshot is None else _copied_state(snapshot)

    def adapter_for(self, channel_id: str) -> ChannelAdapter:
        """The adapter of a channel; `NotFoundError` for an unknown one."""
        snapshot = snapshot_now(self._service, channel_id)
        if snapshot is None:
            raise NotFoundError(f"channel not found: there is no channel {channel_id!r}")
        return snapshot.adapter

    async def folded_state(self, channel_id: str) -> Any:
        """The folded state of a channel, as a copy; `NotFoundError` for an unknown one."""
        return _copied_state(await self._service.snapshot(channel_id))

    async def find_envelope_by_causation(
        self, channel_id: str, *, sender_id: str, causation_id: str
    ) -> Envelope | None:
        """The newest envelope of `sender_id` that answers the envelope `causation_id`."""
        found = await self.read_wal(channel_id)
        answers = (item for item in reversed(found) if item.causation_id == causation_id)
        return next((item for item in answers if item.sender_id == sender_id), None)


def _page(channel_id: str, since: int, limit: int) -> Callable[[Transaction], Any]:
    return lambda tx: log.read_from(tx, channel_id, since, limit)


def _copied_state(snapshot: ChannelSnapshot) -> Any:
    data = snapshot.adapter.state_to_dict(snapshot.state)
    return snapshot.adapter.state_from_dict(snapshot.metadata, data)


def _channel_rows(
    tx: Transaction, agent_id: str | None, state: str | None, limit: int
) -> list[Row]:
    """Rows of channels, newest first: of a participant, in a state."""
    where: Row = {} if state is None else {"state": state}
    if agent_id is None:
        return tx.select("channels", where, order_by="created_at", descending=True, limit=limit)
    member = {"agent_id": agent_id}
    most = limit if state is None else None
    mine = tx.select("channel_members", member, order_by="joined_at", descending=True, limit=most)
    rows = [tx.get("channels", item["channel_id"]) for item in mine]
    return [row for row in rows if row and (state is None or row["state"] == state)][:limit]


def _readable_metadata(
    tx: Transaction, row: Row, adapters: AdapterRegistry
) -> ChannelMetadata | None:
    """The metadata of a channel; `None` for one whose row was changed so that it has none."""
    try:
        return load_snapshot(tx, row, adapters).metadata
    except (ValueError, KeyError, TypeError, ProtocolError) as exc:
        _log.error("channel %s cannot be read: %s", row["channel_id"], exc)
        return None
