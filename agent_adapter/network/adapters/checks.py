"""Runs the checks of a channel type, which may be `async`, so that only a clear yes admits.

A check returns `None` to accept and raises `ProtocolError` to refuse. Operations on the store
cannot wait, so an async check is awaited before the operation, while nothing else changes the
channel; the operation itself then leaves it out.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

from agent_adapter.core.errors import NetworkError, ProtocolError

CHECKS = ("validate_create", "validate_send", "check_routes")
"""The checks of a channel type; they may be async."""

_PURE = (
    "initial_state",
    "fold",
    "on_accepted",
    "expected_next",
    "next_turn",
    "default_view_policy",
    "render_envelope",
    "tools_for",
    "build_round_envelope",
    "build_text_envelope",
    "state_to_dict",
    "state_from_dict",
)
_SECONDS = 30.0
_log = logging.getLogger("agent_adapter.network")


def is_async(check: Callable[..., Any] | None) -> bool:
    """Whether the check has to be awaited."""
    if check is None:
        return False
    return inspect.iscoroutinefunction(check) or inspect.iscoroutinefunction(
        getattr(check, "__call__", None)  # noqa: B004  # an object's own, which may be async
    )


def has_async_checks(adapter: Any) -> bool:
    """Whether one of the adapter's checks has to be awaited."""
    return any(is_async(getattr(adapter, name, None)) for name in CHECKS)


def check_pure(adapter: Any) -> None:
    """Raises `ProtocolError` for an async method that a channel's log is folded with."""
    wrong = [name for name in _PURE if is_async(getattr(adapter, name, None))]
    if wrong:
        raise ProtocolError(
            f"the channel type {adapter.manifest.type!r} has async {', '.join(wrong)}: a log must "
            f"fold the same at any time, so only {', '.join(CHECKS)} may be async"
        )


def run_check(check: Callable[..., Any], *about: Any) -> None:
    """Run a check inside an operation; an async one was awaited before it."""
    if is_async(check):
        return
    try:
        said = check(*about)
    except NetworkError:
        raise
    except Exception as exc:
        raise _failed(check, exc) from exc
    _judge(check, said)


async def await_check(check: Callable[..., Any], *about: Any) -> None:
    """Await an async check; one that is not async runs inside the operation."""
    if not is_async(check):
        return
    try:
        async with asyncio.timeout(_SECONDS):
            said = await check(*about)
    except NetworkError:
        raise
    except Exception as exc:
        raise _failed(check, exc) from exc
    _judge(check, said)


def _judge(check: Callable[..., Any], said: Any) -> None:
    if said is None:
        return
    if inspect.iscoroutine(said):
        said.close()
    _log.error("%s returned a %s, which refuses", _name(check), type(said).__name__)
    fix = "declare it with `async def`" if inspect.isawaitable(said) else "return None to accept"
    raise ProtocolError(
        f"{_name(check)} returned a {type(said).__name__}, which refuses: {fix}, and raise "
        "ProtocolError to refuse"
    )


def _failed(check: Callable[..., Any], exc: Exception) -> ProtocolError:
    _log.error("%s failed, which refuses", _name(check), exc_info=exc)
    return ProtocolError(f"{_name(check)} failed, which refuses: {type(exc).__name__}: {exc}")


def _name(check: Callable[..., Any]) -> str:
    return str(getattr(check, "__qualname__", type(check).__name__))
