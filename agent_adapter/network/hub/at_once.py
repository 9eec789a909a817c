"""Reads of a hub's channels without awaiting."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor

from agent_adapter.core.errors import NotFoundError
from agent_adapter.network.channels.snapshot import ChannelSnapshot
from agent_adapter.network.hub.channel_service import ChannelService


def snapshot_now(service: ChannelService, channel_id: str) -> ChannelSnapshot | None:
    """The channel: from memory, else by a read that blocks; `None` for an unknown one."""
    cached = service.snapshots.get(channel_id)
    if cached is not None:
        return cached
    with ThreadPoolExecutor(1) as pool, contextlib.suppress(NotFoundError):
        # A loop of its own: this one is blocked, and a store may be used from several.
        return pool.submit(lambda: asyncio.run(service.snapshot(channel_id))).result()
    return None
