"""Shares one execution among identical reads, concurrent or within the cache time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from agent_adapter.core.canonical import digest
from agent_adapter.core.errors import ToolDefinitionError
from agent_adapter.core.results import OPAQUE
from agent_adapter.core.types import CachePolicy
from agent_adapter.exec.call import Call
from agent_adapter.exec.record import outcome_of, post_read, post_shared
from agent_adapter.exec.runtime import Flight
from agent_adapter.exec.taint import labels, mark
from agent_adapter.store import cache


async def shared(
    call: Call,
    policy: CachePolicy,
    execute: Callable[[], Awaitable[Any]],
    guard: Callable[[Any], Awaitable[Any]] | None,
) -> Any:
    """The cached value, the value of an identical call in flight, or the value of `execute`.

    Each caller gets its own copy, which has passed its own `guard`. Failures, and values that
    cannot be copied, go to the first caller only: the others execute the call themselves. A caller
    that is cancelled leaves the execution to the others.
    """
    key = _key(call, policy)
    # A task belongs to its event loop: another thread's loop executes for itself.
    flight_key = (id(asyncio.get_running_loop()), key)
    flights = call.runtime.flights
    while True:
        kept = await call.runtime.store.read(lambda tx: cache.kept(tx, key))
        if kept is not None:
            result, of = kept
            for label in of:
                await mark(call, label)
            return await _handed_out(call, guard, *_split(result))
        flight = flights.get(flight_key)
        if flight is None or flight.get_loop().is_closed():
            return await _led(call, flight_key, policy.ttl, execute)
        try:
            tag, data, _ = await asyncio.shield(flight)
        except Exception:  # noqa: S112  # the leader raises it
            continue
        except asyncio.CancelledError:
            if not flight.cancelled():
                raise
            continue
        if tag == OPAQUE:
            return await execute()
        return await _handed_out(call, guard, tag, data)


async def _led(
    call: Call, key: tuple[int, str], seconds: float, execute: Callable[[], Awaitable[Any]]
) -> Any:
    flights = call.runtime.flights
    flight = asyncio.get_running_loop().create_task(_fly(call, key[1], seconds, execute))
    flights[key] = flight
    flight.add_done_callback(lambda done: _landed(flights, key, done))
    tag, data, value = await asyncio.shield(flight)
    return value if tag == OPAQUE else call.spec.decode_result(tag, data)


async def _fly(
    call: Call, key: str, seconds: float, execute: Callable[[], Awaitable[Any]]
) -> tuple[str, bytes, Any]:
    value = await execute()
    tag, data = call.spec.encode_result(value)
    if tag != OPAQUE:
        found = await labels(call) if call.spec.trust == "untrusted" else ()
        result = f"{tag}\n{data.decode()}"
        await call.runtime.store.write(lambda tx: cache.keep(tx, key, result, found, seconds))
    return tag, data, value


def _landed(flights: dict[tuple[int, str], Flight], key: tuple[int, str], done: Flight) -> None:
    if flights.get(key) is done:
        del flights[key]
    if not done.cancelled():
        done.exception()  # a caller that left early must not make it "never retrieved"


async def _handed_out(
    call: Call, guard: Callable[[Any], Awaitable[Any]] | None, tag: str, data: bytes
) -> Any:
    """A copy for a caller that ran nothing; its call gets its own ledger row."""
    value = call.spec.decode_result(tag, data)
    if guard is not None:
        try:
            value = await guard(value)
        except BaseException as exc:
            post_read(call, call.intent(), outcome_of(call, error=exc))
            raise
        tag, data = call.spec.encode_result(value)
    post_shared(call, tag, data)
    return value


def _key(call: Call, policy: CachePolicy) -> str:
    """A digest over everything that the result depends on; joined text could collide."""
    scope = {"run": call.run_id, "thread": call.ctx.thread_id or call.run_id, "global": None}
    parts = [call.spec.fingerprint, call.digest, call.ctx.tenant, call.ctx.principal]
    return digest([*parts, _own_key(call), policy.scope, scope[policy.scope]])


def _own_key(call: Call) -> str | None:
    """The tool's `cache_key`: what its result depends on besides its arguments."""
    rule = call.spec.cache_key
    if rule is None:
        return None
    try:
        key = rule(call.arguments, call.ctx)
    except Exception as exc:
        name = type(exc).__name__
        raise ToolDefinitionError(f"tool {call.spec.name!r}: cache_key raised {name}") from exc
    if type(key) is not str:
        raise ToolDefinitionError(f"tool {call.spec.name!r}: cache_key gave {key!r}, not a text")
    return key


def _split(kept: str) -> tuple[str, bytes]:
    tag, _, data = kept.partition("\n")
    return tag, data.encode()
