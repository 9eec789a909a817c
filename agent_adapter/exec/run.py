"""The function itself, with its time-out, retries and worker thread."""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic_core import from_json

from agent_adapter.core.errors import (
    AgentAdapterError,
    ToolBusy,
    ToolError,
    ToolFailed,
    ToolInDoubt,
    ToolInFlight,
    ToolTimeout,
)
from agent_adapter.core.types import RetryPolicy
from agent_adapter.exec.call import Call
from agent_adapter.exec.scope import current_scope
from agent_adapter.exec.threads import Late, pool
from agent_adapter.exec.timing import Countdown, TimeUp, within

NOT_THE_AUTHORS = (ToolFailed, ToolTimeout, ToolInDoubt, ToolInFlight, ToolBusy)
"""The tool errors that only this library raises; they are not promises of a tool's author."""


async def function(call: Call, late: Late | None = None) -> Any:
    """The tool's return value; other ends are errors of this library or pass through.

    `late` is called with the outcome of a function whose caller had given up.
    """
    token = current_scope.set(call)
    try:
        if call.spec.retries is not None:
            return await _retried(call, call.spec.retries, late)
        return await _once(call, late)
    finally:
        # A call that is collected after its loop was closed is left in another context.
        try:  # noqa: SIM105 -- `suppress` costs as much as the validation of a bare call
            current_scope.reset(token)
        except ValueError:
            pass


async def bare(call: Call, values: Mapping[str, Any]) -> Any:
    """`function` for an async one without time-out, retries and injected parameters."""
    token = current_scope.set(call)
    call.entered = True
    try:
        return await call.spec.entry(**values)
    except ToolError as exc:
        raise _redacted(call, exc) from exc.__cause__
    except AgentAdapterError:
        raise
    except Exception as exc:
        raise _failed(call, exc) from exc
    finally:
        try:  # noqa: SIM105 -- see `function`
            current_scope.reset(token)
        except ValueError:
            pass


async def _once(call: Call, late: Late | None) -> Any:
    timeout = call.spec.timeout
    try:
        if timeout is None:
            return await _enter(call, late)
        call.ctx.deadline = asyncio.get_running_loop().time() + timeout
        call.countdown = Countdown(timeout)
        return await within(call.countdown, _enter(call, late), late)
    except TimeUp as exc:
        raise ToolTimeout(f"{call.spec.name} did not end within {timeout:g} s") from exc
    except ToolError as exc:
        raise _redacted(call, exc) from exc.__cause__
    except AgentAdapterError:
        raise
    except Exception as exc:
        raise _failed(call, exc) from exc


async def _enter(call: Call, late: Late | None) -> Any:
    spec = call.spec
    bound = call.values or {}
    if spec.retries is not None:
        # Changes of the arguments in one try must not reach the next.
        bound = copy.deepcopy(bound)
    arguments = {**bound, **call.injected} if call.injected else bound
    if spec.is_async:
        call.entered = True
        return await spec.entry(**arguments)
    entered = partial(setattr, call, "entered", True)
    value = await pool.run(partial(spec.entry, **arguments), late, entered=entered)
    return await value if inspect.isawaitable(value) else value


async def _retried(call: Call, policy: RetryPolicy, late: Late | None) -> Any:
    from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt
    from tenacity import wait_random_exponential as jittered

    attempts = AsyncRetrying(
        stop=stop_after_attempt(policy.attempts),
        wait=jittered(multiplier=policy.wait_initial, max=policy.wait_max),
        retry=retry_if_exception(lambda exc: _worth_retrying(exc, policy)),
        reraise=True,
    )
    async for attempt in attempts:
        with attempt:
            call.ctx.try_number = attempt.retry_state.attempt_number
            if call.ctx.try_number > 1 and call.entry is not None:
                call.entry += 1  # its own calls recur
            return await _once(call, late)
    raise AssertionError("tenacity either returns or raises")


def _worth_retrying(exc: BaseException, policy: RetryPolicy) -> bool:
    if isinstance(exc, ToolTimeout):
        return True
    return isinstance(exc, ToolFailed) and isinstance(exc.__cause__, policy.on)


def _failed(call: Call, exc: BaseException | None) -> ToolFailed:
    return ToolFailed(f"{call.spec.name} failed: {type(exc).__name__}")


def names_only(call: Call, error: ToolError) -> bool:
    """Whether the error's text comes from this library and not from the tool."""
    return isinstance(error, ToolFailed) and str(error) == str(_failed(call, error.__cause__))


def _redacted(call: Call, exc: ToolError) -> ToolError:
    """The same error, without the text of the call's secrets."""
    text = str(exc)
    hidden = text
    for plain in sorted(_secret_texts(call), key=len, reverse=True):
        hidden = hidden.replace(plain, "***")
    if hidden == text:
        return exc
    clean = ToolError(hidden)
    clean.kind = exc.kind  # type: ignore[misc]  # the class stands for a kind, an instance may too
    # An error of another call, or one of this library's, promises nothing however it is written.
    promised = exc.raised_in is None and not isinstance(exc, NOT_THE_AUTHORS)
    clean.raised_in = None if promised else exc.raised_in or call.spec.name
    return clean


def _secret_texts(call: Call) -> set[str]:
    """All texts in the call's secrets, nested ones included."""
    found: set[str] = set()
    parts = call.spec.secret_parts
    for name, value in call.bound.items():
        _collect(value, name in call.spec.secrets and name not in parts, found)
        if name in parts:
            (clear,) = from_json(call.spec.dump({name: value})).values()
            found.update(each.text for each in parts[name].values(clear) if each.text)
    return found


def _collect(value: Any, secret: bool, found: set[str]) -> None:
    if isinstance(value, (SecretStr, SecretBytes)):
        value, secret = value.get_secret_value(), True
    if isinstance(value, BaseModel):
        value = dict(value)
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            _collect(item, secret, found)
    elif secret and value is not None:
        text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        found.update({text} - {""})
