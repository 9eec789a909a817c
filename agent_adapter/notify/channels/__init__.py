"""The ways to send a message; the scheme of a rule's address says which."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from agent_adapter.notify.channels.sending import Outgoing


async def send(outgoing: Outgoing) -> None:
    """Send a message; `SendFailed` says why it was not taken, and when to try again."""
    await _sender(outgoing.to)(outgoing)


def _sender(url: str) -> Callable[[Outgoing], Awaitable[None]]:
    scheme, _, rest = url.partition("://")
    if scheme in ("smtp", "smtps"):
        from agent_adapter.notify.channels.email import send_email

        return send_email
    if scheme in ("slack+https", "slack+http") or _is_slack(scheme, rest):
        from agent_adapter.notify.channels.slack import send_slack

        return send_slack
    if scheme in ("http", "https"):
        from agent_adapter.notify.channels.webhook import send_webhook

        return send_webhook
    from agent_adapter.notify.channels.by_apprise import send_by_apprise

    return send_by_apprise


def _is_slack(scheme: str, rest: str) -> bool:
    return scheme == "https" and urlsplit(f"https://{rest}").hostname == "hooks.slack.com"
