"""Changes of a channel's variables: reading, applying, checking limits and permissions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from agent_adapter.core.errors import ProtocolError
from agent_adapter.flow.envelope import EV_CONTEXT_SET, EV_PACKET, Envelope

VALUE_LIMIT = 16 * 1024
"""The most bytes of JSON in one variable."""

CHANNEL_LIMIT = 64 * 1024
"""The most bytes of JSON in all variables of a channel together."""


def updates_of(envelope: Envelope) -> Mapping[str, Any]:
    """The changes in `envelope` as `{"set", "delete"}`; empty if there are none."""
    data: Any = None
    if envelope.event_type == EV_CONTEXT_SET:
        data = envelope.event_data
    elif envelope.event_type == EV_PACKET:
        data = envelope.event_data.get("context_updates")
    return data if isinstance(data, dict) else {}


def applied(updates: Mapping[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
    """`variables` after `updates`: deletions first, then assignments.

    Returns the same object if nothing changes; never changes it in place.
    """
    removed, changes = updates.get("delete"), updates.get("set")
    removed = removed if isinstance(removed, (list, tuple)) else ()
    changes = changes if isinstance(changes, dict) else {}
    if not removed and not changes:
        return variables
    result = dict(variables)
    for key in removed:
        if isinstance(key, str):
            result.pop(key, None)
    result.update(changes)
    return result


def writers_of(key: str, acl: Mapping[str, Sequence[str]]) -> frozenset[str] | None:
    """The names that may change `key`; `None` means all.

    If several patterns match the key, every one of them must list the name.
    """
    writers: frozenset[str] | None = None
    for pattern, names in acl.items():
        if fnmatchcase(key, pattern):
            writers = frozenset(names) if writers is None else writers & frozenset(names)
    return writers


def check_updates(
    updates: Mapping[str, Any],
    variables: dict[str, Any],
    *,
    writer: str,
    acl: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Raises `ProtocolError` for changes that `writer` (a name) may not make, or too large ones.

    The message names the key and who may change it, or the size and the limit.
    """
    keys = [*(updates.get("delete") or ()), *(updates.get("set") or {})]
    for key in keys:
        allowed = writers_of(key, acl or {})
        if allowed is not None and writer not in allowed:
            names = ", ".join(sorted(allowed)) or "no one"
            raise ProtocolError(f"{writer!r} may not change {key!r}; context_acl allows {names}")
    for key, value in (updates.get("set") or {}).items():
        _check_size(value, VALUE_LIMIT, f"the variable {key!r}")
    if updates.get("set"):
        _check_size(applied(updates, variables), CHANNEL_LIMIT, "the channel's variables together")


def _check_size(value: Any, limit: int, what: str) -> None:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise ProtocolError(f"{what}: not JSON: {exc}") from exc
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise ProtocolError(f"{what}: {size} bytes of JSON, the limit is {limit}")
