"""`make_id` and `parse_hub_urn`."""

from __future__ import annotations

import secrets
import time

_URN = "hub://"


def make_id() -> str:
    """A new id of 32 hexadecimal characters; later ids sort after earlier ones.

    Ids of the same nanosecond are in no order.
    """
    return f"{time.time_ns():016x}{secrets.token_hex(8)}"


def parse_hub_urn(s: str) -> tuple[str | None, str]:
    """The hub id and the agent id of `hub://HUB/AGENT`; `(None, s)` for any other text."""
    if str(s).startswith(_URN):
        hub_id, _, agent_id = s.removeprefix(_URN).partition("/")
        if hub_id and agent_id:
            return hub_id, agent_id
    return None, s
