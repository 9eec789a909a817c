"""Provenance: whether the user or a trusted source named what decides where something goes.

Trusted texts are the messages of the user and the results of tools declared `source=True` whose
arguments held nothing but words of such texts: else a source that repeats its arguments would make
a foreign value a trusted one.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic_core import from_json

from agent_adapter.core.errors import StoreError
from agent_adapter.core.inert import short
from agent_adapter.core.results import OPAQUE
from agent_adapter.core.schema.forms import names, words
from agent_adapter.core.schema.sinks import SinkValue, is_default
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec import taint
from agent_adapter.exec.call import Call
from agent_adapter.exec.scope import RunScope
from agent_adapter.store import ledger, trusted
from agent_adapter.store.base import Store, Transaction
from agent_adapter.store.keys import run_key, run_scope_of

log = logging.getLogger(__name__)

_UNKNOWN = "it is not known what its conversation has read: no run or conversation is given"
_APART = "\n|\n"
"""Between the texts of a result: words of two of them are not next to each other."""

_LARGE = 100_000
_LOOKED_THROUGH = 100
_SHOWN = 10
_SMALL_NUMBER = 1000


async def why_to_ask(call: Call) -> str | None:
    """Why a person must see the call: a sink gets what no trusted text names; else `None`."""
    if call.conversation is None and not call.run_is_known:
        return _UNKNOWN
    labels = await taint.labels(call)
    if not labels:
        return None
    values = call.spec.sink_values(call.bound)
    texts = await _trusted_texts(call) if values else []
    if sum(map(len, texts)) > _LARGE:
        strange = await asyncio.to_thread(_unnamed, values, texts)
    else:
        strange = _unnamed(values, texts)
    if not strange:
        return None
    found = [
        f"{short(value.path)} ({value.kind}) {await _origin(call, value)}"
        for value in strange[:_SHOWN]
    ]
    if len(strange) > _SHOWN:
        found.append(f"{len(strange) - _SHOWN} more")
    return (
        f"neither the user nor a trusted source named {'; '.join(found)}; "
        f"the conversation has read {', '.join(labels)}"
    )


async def trust(call: Call, value: Any) -> None:
    """Trust what a source has just given, unless its call carried or met anything foreign."""
    known = call.conversation is not None or call.run_is_known
    if not known or not call.entered or call.foreign:
        return
    text = _text_of_result(call.spec, value)
    try:
        call.labels = None  # what was read since then counts
        if await taint.labels(call) and not _carries_only(call, await _trusted_texts(call)):
            return
        where, run, source = _conversation(call), call.run_id, call.spec.name
        await call.runtime.store.write(lambda tx: trusted.keep(tx, where, run, source, text))
    except StoreError:
        log.warning("%s: that its result is trusted is not recorded", call.spec.name)


async def keep_said(store: Store, scope: RunScope) -> None:
    """Keep what the user said for the scope's whole conversation."""
    run, where = run_key(scope.tenant, scope.run_id), scope.conversation()

    def op(tx: Transaction) -> None:
        for text in scope.said:
            trusted.keep(tx, where, run, trusted.USER, text)

    await store.write(op)


def _conversation(call: Call) -> str:
    return call.conversation or run_scope_of(call.root_run_id)


async def _trusted_texts(call: Call) -> list[str]:
    where = _conversation(call)
    kept = await call.runtime.store.read(lambda tx: trusted.texts(tx, where))
    scope = call.scope.said if call.scope is not None else ()
    return [*scope, *await _said(call), *kept]


async def _said(call: Call) -> Sequence[str]:
    """What the integration found of the user's messages; nothing where it fails."""
    said: Any = call.ctx.said
    if callable(said):
        try:
            said = said()
            if inspect.isawaitable(said):
                said = await said
        except Exception:
            log.exception("%s: the user's messages could not be read", call.spec.name)
            return ()
    texts = [said] if isinstance(said, str) else list(said or ())
    return [text for text in texts if isinstance(text, str)]


def _unnamed(values: Iterable[SinkValue], texts: Sequence[str]) -> list[SinkValue]:
    return [
        value for value in values if not any(names(text, value.kind, value.text) for text in texts)
    ]


async def _origin(call: Call, value: SinkValue) -> str:
    """Where the value stands among the results of the run."""
    store, runs = call.runtime.store, list({call.run_id, call.root_run_id})
    with suppress(StoreError):
        await store.flush()  # results of reads are recorded in the background

    def op(tx: Transaction) -> str | None:
        where = {"run_id in": runs, "result !=": None}
        for row in tx.select(
            "calls", where, order_by="started_at", descending=True, limit=_LOOKED_THROUGH
        ):
            data = ledger.payload(tx, row["result"])
            text = _APART.join(_leaves(_parsed(data)))[: trusted.LONGEST] if data else ""
            if value.text in text or names(text, value.kind, value.text):
                return f"which stands in what {row['tool']} gave ({short(row['call_id'])})"
        return None

    return await store.read(op) or "which stands in no recorded result of its run"


def _text_of_result(spec: ToolSpec, value: Any) -> str:
    tag, data = spec.encode_result(value)
    return "" if tag == OPAQUE else _APART.join(_leaves(_parsed(data)))


def _parsed(data: bytes) -> Any:
    try:
        return from_json(data)
    except ValueError:
        return data.decode("utf-8", "replace")


def _leaves(value: Any) -> Iterator[str]:
    """Every text and number inside a JSON value, names of members included."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield str(key)
            yield from _leaves(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _carries_only(call: Call, texts: Sequence[str]) -> bool:
    """Whether the arguments hold nothing but words of these texts, defaults and small numbers."""
    spec = call.spec
    declared = spec.arguments.schema.get("properties", {})
    members = frozenset(_members(spec.arguments.schema))
    known = frozenset().union(*map(words, texts))
    for name, value in from_json(spec.dump(call.bound)).items():
        small = type(value) in (int, float) and abs(value) < _SMALL_NUMBER
        if small or is_default(declared.get(name), value):
            continue
        held = {word for leaf in _leaves(value) if leaf not in members for word in words(leaf)}
        if not held <= known:
            return False
    return True


def _members(schema: Any) -> Iterator[str]:
    """The names of members that a schema declares, which the model did not choose."""
    if isinstance(schema, Mapping):
        for key, part in schema.items():
            if key == "properties" and isinstance(part, Mapping):
                yield from map(str, part)
            yield from _members(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _members(part)
