"""What a tool's policy may say; everything else is refused when the tool is defined."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

from agent_adapter.core.errors import ToolDefinitionError
from agent_adapter.core.names import NAME_PATTERN
from agent_adapter.core.schema.sinks import checked_paths
from agent_adapter.core.types import CachePolicy, Effects, RetryPolicy, Trust, checked_cost


def checked_name(name: Any) -> str:
    """`name` if every provider accepts it, else `ToolDefinitionError`."""
    if isinstance(name, str) and NAME_PATTERN.fullmatch(name):
        return name
    raise ToolDefinitionError(
        f"tool {name!r}: a name has 1 to 64 letters, digits, `_` and `-`, and begins with a letter "
        "or `_`; give one with `name=`"
    )


def checked_policy(name: str, policy: Mapping[str, Any]) -> dict[str, Any]:
    """`policy` in its final form; `ToolDefinitionError` names the field, the reason and the fix."""
    checked = dict(policy)
    for field, check in _CHECKS.items():
        checked[field] = check(f"tool {name!r}: {field}", policy[field])
    _check_combinations(f"tool {name!r}", checked)
    return checked


_UNSAID: Mapping[str, Any] = {
    "effects": "read",
    "retries": None,
    "source": False,
    "trust": "trusted",
    "cache": None,
    "cache_key": None,
    "confirm": False,
}


def checked_options(where: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a policy that says nothing of all others, in their final form."""
    checked = {name: _CHECKS[name](f"{where}: {name}", value) for name, value in given.items()}
    _check_combinations(where, {**_UNSAID, **checked})
    return checked


def _check_combinations(where: str, policy: Mapping[str, Any]) -> None:
    if policy["retries"] is not None and policy["effects"] == "write":
        raise ToolDefinitionError(
            f"{where}: retries on a tool with effects='write' could do it twice; remove "
            "`retries`, or say effects='read' or 'idempotent' if that is true"
        )
    if policy["source"] and policy["trust"] == "untrusted":
        raise ToolDefinitionError(
            f"{where}: source=True says that nobody else writes into its results, and "
            "trust='untrusted' that somebody does; remove source, or say trust='trusted'"
        )
    if policy["cache"] is None:
        if policy["cache_key"] is not None:
            raise ToolDefinitionError(
                f"{where}: cache_key does nothing without cache; say cache=CachePolicy(...)"
            )
        return
    if policy["effects"] != "read":
        raise ToolDefinitionError(
            f"{where}: cache needs effects='read', not {policy['effects']!r}; only what "
            "changes nothing can be answered from a cache"
        )
    if policy["confirm"] is not False:
        raise ToolDefinitionError(
            f"{where}: cache and confirm exclude each other: an answer from the cache would "
            "pass the person by; remove one of them"
        )


def _confirm(where: str, value: Any) -> Any:
    named = isinstance(value, str) and value in ("tainted", "provenance")
    if isinstance(value, bool) or named or callable(value):
        return value
    raise ToolDefinitionError(
        f"{where} is True, False, 'tainted', 'provenance' or a callable (args, ctx) -> bool, not "
        f"{value!r}"
    )


def _choice(choices: tuple[str, ...]) -> Callable[[str, Any], Any]:
    def check(where: str, value: Any) -> Any:
        if isinstance(value, str) and value in choices:
            return value
        raise ToolDefinitionError(
            f"{where} is one of {', '.join(map(repr, choices))}, not {value!r}"
        )

    return check


def _flag(where: str, value: Any) -> Any:
    if isinstance(value, bool):
        return value
    raise ToolDefinitionError(f"{where} is True or False, not {value!r}")


def _timeout(where: str, value: Any) -> Any:
    if value is None or (_is_number(value) and math.isfinite(value) and value > 0):
        return value
    raise ToolDefinitionError(
        f"{where} is a positive, finite number of seconds, or None for no limit, not {value!r}"
    )


def _retries(where: str, value: Any) -> Any:
    if value is None:
        return value
    if not isinstance(value, RetryPolicy):
        raise ToolDefinitionError(f"{where} is a RetryPolicy or None, not {value!r}")
    attempts: Any = value.attempts
    if not _is_number(attempts) or attempts != int(attempts) or attempts < 1:
        raise ToolDefinitionError(f"{where}.attempts is 1 or more, not {attempts!r}")
    for field in ("wait_initial", "wait_max"):
        wait = getattr(value, field)
        if not _is_number(wait) or not math.isfinite(wait) or wait < 0:
            raise ToolDefinitionError(f"{where}.{field} is a number of seconds >= 0, not {wait!r}")
    kinds: Any = value.on
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise ToolDefinitionError(f"{where}.on holds exception classes, not {value.on!r}")
    return value


def _cache(where: str, value: Any) -> Any:
    if value is None:
        return value
    if not isinstance(value, CachePolicy):
        raise ToolDefinitionError(f"{where} is a CachePolicy or None, not {value!r}")
    if not _is_number(value.ttl) or not math.isfinite(value.ttl) or value.ttl <= 0:
        raise ToolDefinitionError(f"{where}.ttl is a positive number of seconds, not {value.ttl!r}")
    _choice(("run", "thread", "global"))(f"{where}.scope", value.scope)
    return value


def _cost(where: str, value: Any) -> Any:
    if value is None or callable(value):
        return value
    return checked_cost(value, where)


def _names(kind: type) -> Callable[[str, Any], Any]:
    def check(where: str, value: Any) -> Any:
        if value is None and kind is frozenset:
            return None
        if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
            raise ToolDefinitionError(f"{where} is a list of names such as ['ag2'], not {value!r}")
        if not all(isinstance(item, str) and item.strip() for item in value):
            raise ToolDefinitionError(f"{where} has an entry that is empty or no text: {value!r}")
        return kind(value)

    return check


def _version(where: str, value: Any) -> Any:
    if value is None or (isinstance(value, str) and value):
        return value
    raise ToolDefinitionError(f"{where} is a text such as '2', or None, not {value!r}")


def _once_key(where: str, value: Any) -> Any:
    if value is None or callable(value):
        return value
    raise ToolDefinitionError(f"{where} is a callable (args) -> str, or None, not {value!r}")


def _cache_key(where: str, value: Any) -> Any:
    if value is None or callable(value):
        return value
    raise ToolDefinitionError(f"{where} is a callable (args, ctx) -> str, or None, not {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "targets": _names(frozenset),
    "confirm": _confirm,
    "effects": _choice(get_args(Effects)),
    "trust": _choice(get_args(Trust)),
    "egress": _flag,
    "timeout": _timeout,
    "retries": _retries,
    "cache": _cache,
    "cost": _cost,
    "tags": _names(tuple),
    "version": _version,
    "once_key": _once_key,
    "cache_key": _cache_key,
    "json_text": _flag,
    "workflow": _flag,
    "source": _flag,
    "irreversible": _flag,
    "sinks": checked_paths,
}
