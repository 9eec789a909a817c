"""Every other service: the address is a URL that Apprise knows."""

from __future__ import annotations

import asyncio

from agent_adapter.core.extras import check_installed
from agent_adapter.notify.channels.sending import Outgoing, SendFailed


async def send_by_apprise(outgoing: Outgoing) -> None:
    """Give title and text to Apprise, as text without markup."""
    check_installed("notify", ["apprise"])
    await asyncio.to_thread(_send, outgoing)


def _send(outgoing: Outgoing) -> None:
    import apprise

    service = apprise.Apprise()
    if not service.add(outgoing.to):
        raise SendFailed("Apprise does not know such an address")
    taken = service.notify(
        title=outgoing.message.title,
        body=outgoing.message.text(),
        body_format=apprise.NotifyFormat.TEXT,
        interpret_escapes=False,
    )
    if not taken:
        raise SendFailed("Apprise could not send it")
