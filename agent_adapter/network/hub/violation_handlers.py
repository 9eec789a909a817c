"""The handlers of violations that every hub has, for programs that call them or build on them."""

from __future__ import annotations

from typing import Any, Protocol

from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.channels.violations import Violation, ViolationHandler


class ViolationHub(Protocol):
    """What the handlers use of a hub."""

    async def announce_violation(self, channel_id: str, violation: Violation) -> None:
        """Tell a channel of a violation."""
        ...

    async def close_channel(self, channel_id: str, reason: str = "") -> ChannelMetadata:
        """Close a channel."""
        ...


class AuditHandler:
    """Does nothing more: the audit log has every violation."""

    name = "audit"

    async def handle(self, hub: Any, channel_id: str, violation: Violation) -> None:
        """Nothing is left to do."""


class NotifyChannelHandler:
    """Tells everybody in the channel, with an `EV_EXPECTATION_VIOLATED`."""

    name = "notify_channel"

    async def handle(self, hub: ViolationHub, channel_id: str, violation: Violation) -> None:
        """Tell the channel, unless it has ended."""
        await hub.announce_violation(channel_id, violation)


class AutoCloseHandler:
    """Closes the channel; the reason names the expectation."""

    name = "auto_close"

    async def handle(self, hub: ViolationHub, channel_id: str, violation: Violation) -> None:
        """Close the channel; one that has ended stays as it is."""
        reason = f"expectation_violated:{violation.expectation.name}"
        await hub.close_channel(channel_id, reason)


def default_handlers() -> list[ViolationHandler]:
    """One of each handler of this module."""
    return [AuditHandler(), NotifyChannelHandler(), AutoCloseHandler()]
