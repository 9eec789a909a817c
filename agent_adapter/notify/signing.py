"""Signatures of webhooks, as standardwebhooks.com defines them.

The signature is HMAC-SHA256 over `<id>.<timestamp>.<body>`. A repeat has the same id and a new
timestamp: a receiver refuses old timestamps and drops ids that it knows.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.core.ports import Clock

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"

_PREFIX = "whsec_"


class WebhookInvalid(AgentAdapterError):
    """A webhook is not signed with the secret, or too old; the message says which."""

    kind = "webhook-invalid"


def signed_headers(secret: str, id: str, body: bytes, at: float) -> dict[str, str]:
    """The headers that identify and sign a webhook sent at that time."""
    stamp = str(int(at))
    return {ID: id, TIMESTAMP: stamp, SIGNATURE: f"v1,{_signature(secret, id, stamp, body)}"}


def verify_webhook(
    secret: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance: float = 300.0,
    clock: Clock = time.time,
) -> str:
    """The id of a webhook whose signature and time are right; drop it if you know the id already.

    `body` is the request's body as it came, `tolerance` how many seconds its time may be off.

    Raises:
        WebhookInvalid: a header is missing, the time is out of the tolerance, or no signature
            in the header was made with `secret`.
    """
    given = {name.lower(): value for name, value in headers.items()}
    missing = [name for name in (ID, TIMESTAMP, SIGNATURE) if not given.get(name)]
    if missing:
        raise WebhookInvalid(f"the webhook has no header {', '.join(missing)}")
    id, stamp = given[ID], given[TIMESTAMP]
    if not (stamp.isascii() and stamp.isdecimal() and len(stamp) <= 15):
        raise WebhookInvalid("the webhook's timestamp is not a number of seconds")
    if abs(clock() - int(stamp)) > tolerance:
        raise WebhookInvalid(f"the webhook's time is more than {tolerance:g} s away from now")
    right = _signature(secret, id, stamp, body).encode()
    for each in given[SIGNATURE].split():
        version, _, signature = each.partition(",")
        if version == "v1" and hmac.compare_digest(signature.encode("utf-8", "replace"), right):
            return id
    raise WebhookInvalid("the webhook is not signed with this secret")


def key_of(secret: str) -> bytes:
    """The key of a secret: Base64 after `whsec_`, else the text itself."""
    if not secret.startswith(_PREFIX):
        return secret.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise WebhookInvalid("a secret that begins with whsec_ goes on with Base64") from None


def _signature(secret: str, id: str, stamp: str, body: bytes) -> str:
    signed = f"{id}.{stamp}.".encode("utf-8", "surrogatepass") + body
    return base64.b64encode(hmac.digest(key_of(secret), signed, hashlib.sha256)).decode()
