"""Webhooks: the message as JSON, signed as standardwebhooks.com says."""

from __future__ import annotations

import json

from agent_adapter.notify.channels.sending import Outgoing, post
from agent_adapter.notify.signing import ID, signed_headers


async def send_webhook(outgoing: Outgoing) -> None:
    """POST the message; a repeat has the same `webhook-id`."""
    id = outgoing.message.id
    body = json.dumps(outgoing.message.data()).encode()
    if outgoing.secret is None:
        headers = {ID: id}
    else:
        headers = signed_headers(outgoing.secret, id, body, outgoing.at)
    await post(outgoing.to, body, headers | {"idempotency-key": id})
