"""Stored keys: each is the hash of the canonical encoding of its parts, tenant included.

Nothing is joined as text, so no choice of names lets two tenants, runs or calls share a key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pydantic_core import to_json

from agent_adapter.core.inert import MAX_NAME, bounded
from agent_adapter.store.text import UNWRITABLE

TENANT_MARK = "tenant:"
"""The prefix of the key of a tenant's run."""

RUN_SCOPE = "run:"
"""The prefix of the key of a dialogue that is known only by its run."""

_encode = json.JSONEncoder(separators=(",", ":")).encode


def run_key(tenant: str, run: str) -> str:
    """The key of a run: its own name without a tenant, so that it is readable."""
    run = run if len(run) <= MAX_NAME else bounded(run)
    return (
        run
        if tenant == "" and not run.startswith(TENANT_MARK)
        else TENANT_MARK + _hash(tenant, run)
    )


def run_scope_of(run: str) -> str:
    """The key of a dialogue that is known only by the run with this key."""
    return RUN_SCOPE + run


def conversation_key(tenant: str, conversation: str) -> str:
    """The key of a conversation's labels."""
    return "conversation:" + _hash("conversation", tenant, conversation)


def place_of(run: str, position: Sequence[str | int]) -> str:
    """The key of a position in the run with that key."""
    return "place:" + _hash("place", run, list(position))


def call_key_of(where: str, tool: str, digest: str, n: int) -> str:
    """The key of the nth equal call at a place, or in a run where calls are told by arrival."""
    return "call_" + _hash("call", where, tool, digest, n)


def once_key_of(tenant: str, tool: str, once_key: str) -> str:
    """The key of a write that happens once over all runs of a tenant."""
    return "call_" + _hash("once", tenant, tool, once_key)


@lru_cache(maxsize=1024)
def asker_of(tenant: str, principal: str | None) -> str:
    """Who makes a call: the principal, or anonymous in the tenant.

    For a call without a principal in a known conversation, the conversation's key stands for it.
    """
    if principal is not None:
        return "asker:" + _hash("principal", tenant, principal)
    return "asker:" + _hash("anonymous", tenant)


def _hash(*parts: Any) -> str:
    return hashlib.sha256(_encoded(parts)).hexdigest()[:40]


def _encoded(parts: tuple[Any, ...]) -> bytes:
    """JSON of texts, whole numbers and lists of them: one value, one encoding."""
    try:
        data = to_json(parts)
    except UNWRITABLE:
        data = b"\x7f"
    if data.isascii() and b"\x7f" not in data:
        return data  # for these it writes what the encoder below writes, in a tenth of the time
    # ASCII escapes also carry what UTF-8 cannot, such as a lone surrogate.
    return _encode(parts).encode()
