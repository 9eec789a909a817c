"""`Continuing`: forks, resumes and reopens a hub's channels."""

from __future__ import annotations

from typing import Any

from agent_adapter.exec.ids import new_secret_id
from agent_adapter.network.channels import forking, reopening
from agent_adapter.network.channels.forking import ReplayReport
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.channels.transaction import Change
from agent_adapter.network.hub.channel_reads import ChannelReads


class Continuing(ChannelReads):
    """Lets channels go on: at an earlier message, after a pause, or after their end."""

    async def reopen(self, channel_id: str, *, sender_id: str | None = None) -> ChannelMetadata:
        """Let a channel go on that has ended while somebody was expected to speak.

        It goes on with the turn at which it ended: calls that ended in it are not made again. The
        log has `sender_id`, the opener, as the one who asked; without it the hub did. An open
        channel is left unchanged.

        Raises:
            ProtocolError: its graph or type has ended it, or it never became active.
            AccessDeniedError: `sender_id` is not its opener.
            NotFoundError: the channel is unknown.
        """
        return await self._changed(
            channel_id,
            lambda tx, cached: reopening.reopen(
                tx, self._context, channel_id, cached, by=sender_id
            ),
        )

    async def fork(self, channel_id: str, at: str, *, new_channel_id: str | None = None) -> str:
        """Copy a channel up to the envelope `at` into a new channel; its id.

        It is paused until `resume_channel`; `writes_after` lists the effects it does not undo.
        """
        made = new_channel_id or new_secret_id("chn")
        await self._service.check(channel_id)
        await self._service.change(
            made,
            lambda tx, cached: forking.fork(tx, self._context, channel_id, at, made),
            delivers=False,
            alone=True,
        )
        return made

    async def resume_channel(self, channel_id: str) -> ChannelMetadata:
        """Continue a paused fork with the turn that it stopped at."""
        return await self._changed(
            channel_id, lambda tx, cached: forking.resume(tx, self._context, channel_id, cached)
        )

    async def writes_after(self, channel_id: str, at: str) -> list[dict[str, Any]]:
        """Write calls of the channel's turns after the envelope `at`, oldest first."""
        return await self._service.read(lambda tx: forking.writes_after(tx, channel_id, at))

    async def replay(self, channel_id: str) -> ReplayReport:
        """Fold the channel's log again and compare the result with the stored state."""
        return await self._service.read(lambda tx: forking.replay(tx, self._context, channel_id))

    async def _changed(self, channel_id: str, op: Any) -> ChannelMetadata:
        change: Change = await self._service.change(channel_id, op)
        return change.snapshot.metadata
