"""Restores secrets in arguments that were shown masked and then edited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from agent_adapter.exec.call import Call

_ABSENT = object()


def unmasked(call: Call, changed: Mapping[str, Any]) -> Mapping[str, Any]:
    """`changed` with the call's secrets in place of their unchanged masks."""
    shown = call.arguments
    if not has_mask(shown):
        return changed
    restored: Mapping[str, Any] = _restored(changed, shown, from_json(call.spec.dump(call.bound)))
    return restored


def _restored(changed: Any, shown: Any, clear: Any) -> Any:
    if is_mask(shown):
        return clear if changed == shown else changed
    if isinstance(changed, Mapping) and isinstance(shown, dict) and isinstance(clear, dict):
        return {
            name: _restored(value, shown.get(name, _ABSENT), clear.get(name))
            for name, value in changed.items()
        }
    if isinstance(changed, list) and isinstance(shown, list) and isinstance(clear, list):
        known = list(zip(shown, clear, strict=False))
        return [
            _restored(value, *(known[at] if at < len(known) else (_ABSENT, None)))
            for at, value in enumerate(changed)
        ]
    return changed


def has_mask(shown: Any) -> bool:
    """Whether a secret was masked anywhere in these JSON values."""
    if isinstance(shown, dict):
        return is_mask(shown) or any(map(has_mask, shown.values()))
    return isinstance(shown, list) and any(map(has_mask, shown))


def is_mask(shown: Any) -> bool:
    """Whether a JSON value stands for a secret."""
    return isinstance(shown, dict) and shown.keys() == {"$secret"}
