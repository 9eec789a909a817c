"""Tells people outside of the console: an outbox in the store, sent by webhook, e-mail and chat.

What a receiver of webhooks needs is `verify_webhook`; the rest is run by `agent-adapter serve` and
`agent-adapter notify run`.
"""

from __future__ import annotations

from agent_adapter.notify.signing import WebhookInvalid, verify_webhook

__all__ = ["WebhookInvalid", "verify_webhook"]
