"""`OwnExpectations`: the evaluators and handlers that a program has added to its hub."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.channels import lifecycle
from agent_adapter.network.channels.evaluators import default_evaluators
from agent_adapter.network.channels.integrity import ChannelAltered
from agent_adapter.network.channels.metadata import Expectation
from agent_adapter.network.channels.snapshot import ChannelSnapshot, iso
from agent_adapter.network.channels.transaction import HubContext
from agent_adapter.network.channels.violations import (
    ExpectationContext,
    ExpectationEvaluator,
    Violation,
    ViolationHandler,
)
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.network.hub.channels import Channels
from agent_adapter.network.hub.violation_handlers import default_handlers
from agent_adapter.store.base import Row, Transaction

_log = logging.getLogger("agent_adapter.network")

_PATIENCE = 60.0
"""Seconds after which an evaluator or a handler that has not returned is given up."""

_BUILT_IN = tuple(type(item) for item in (*default_evaluators(), *default_handlers()))


class OwnExpectations:
    """Asks evaluators and calls handlers of the program at each sweep of expectations."""

    def __init__(
        self,
        hub: Any,
        service: ChannelService,
        context: HubContext,
        channels: Channels,
        adapters: AdapterRegistry,
    ) -> None:
        self._hub = hub
        self._service = service
        self._context = context
        self._channels = channels
        self._adapters = adapters
        self._evaluators: dict[str, ExpectationEvaluator] = {}
        self._handlers: dict[str, ViolationHandler] = {}
        self._failing: set[tuple[str, int]] = set()
        self._recovered = False

    def register_evaluator(self, evaluator: ExpectationEvaluator) -> None:
        """Let `evaluator` judge the expectations of its name, in channels opened from now on.

        Register it before the channel type that expects it. The hub's own evaluators change
        nothing: it keeps those deadlines itself.
        """
        name = _name_of(evaluator, "evaluate")
        if type(evaluator) not in _BUILT_IN:
            self._evaluators[name] = evaluator
            self._adapters.own_evaluators.add(name)

    def register_handler(self, handler: ViolationHandler) -> None:
        """Let `handler` act on violations with its name as `on_violation`, in place of the hub.

        Register it before the channel type that names it.
        """
        name = _name_of(handler, "handle")
        if type(handler) not in _BUILT_IN:
            self._handlers[name] = handler
            self._adapters.own_handlers.add(name)

    async def announce(self, channel_id: str, violation: Violation) -> None:
        """Tell a channel of a violation; one that has ended is left unchanged."""
        told = {
            "expectation": violation.expectation.name,
            "violators": list(violation.violator_ids),
            "detail": dict(violation.detail),
        }
        await self._service.change(
            channel_id,
            lambda tx, cached: lifecycle.announce(tx, self._context, channel_id, told, cached),
        )

    async def run(self) -> None:
        """Call the handlers that an earlier hub has not, then ask every evaluator."""
        if self._handlers and not self._recovered:
            self._recovered = True
            for row in await self._service.read(_owed):
                await self.handle(row)
        if self._evaluators:
            names = list(self._evaluators)
            for row in await self._service.read(lambda tx: _asked(tx, names)):
                await self._ask(row)

    async def handle(self, row: Row) -> None:
        """Call the handler of a violation that is recorded, and note that it was called."""
        handler = self._handlers.get(row["handler"])
        if handler is None or row["told"] is None:
            return
        told = json.loads(row["told"])
        expectation = Expectation(row["name"], row["handler"], json.loads(row["params"]))
        violation = Violation(expectation, list(told["owed"]), dict(told["detail"]))
        try:
            call = partial(handler.handle, self._hub, row["channel_id"], violation)
            await _finished(call)
        except Exception:
            _log.exception(
                "the handler %r failed on %s in %s", row["handler"], row["name"], row["channel_id"]
            )
        await self._service.write(partial(_note_handled, row=row))

    async def handle_fired(self, row: Row) -> None:
        """Call the handler of a deadline that may have fired."""
        key = [row[name] for name in ("channel_id", "turn", "position")]
        found = await self._service.read(lambda tx: tx.get("expectations", *key))
        if found is not None and found["told"] is not None and found["handled_at"] is None:
            await self.handle(found)

    async def _ask(self, row: Row) -> None:
        channel_id, evaluator = row["channel_id"], self._evaluators[row["name"]]
        key = channel_id, row["position"]
        try:
            snapshot = await self._service.snapshot(channel_id)
            violation = await self._judged(evaluator, row, snapshot)
        except ChannelAltered:
            return
        except Exception as exc:
            if key not in self._failing:
                self._failing.add(key)
                _log.error("the evaluator %r failed in %s", row["name"], channel_id, exc_info=exc)
            return
        self._failing.discard(key)
        if violation is None:
            return
        fired: list[Row] = []

        def op(tx: Transaction, cached: ChannelSnapshot | None) -> Any:
            change, changed = lifecycle.fire_own(tx, self._context, row, violation, cached)
            fired[:] = [] if changed is None else [changed]
            return change

        await self._service.change(channel_id, op)
        for changed in fired:
            await self.handle(changed)

    async def _judged(
        self, evaluator: ExpectationEvaluator, row: Row, snapshot: ChannelSnapshot
    ) -> Violation | None:
        wal = await self._channels.read_wal(row["channel_id"])
        now: float = await self._service.read(lambda tx: tx.now)
        context = ExpectationContext(snapshot.metadata, snapshot.state, wal, iso(now), now)
        expectation = snapshot.metadata.manifest.expectations[row["position"]]
        found: Violation | None = await _finished(partial(evaluator.evaluate, expectation, context))
        return found


async def _finished(call: Callable[[], Any]) -> Any:
    """The result of a function, which may be a coroutine function, of the program."""
    async with asyncio.timeout(_PATIENCE):
        result = call()
        return await result if inspect.isawaitable(result) else result


def _name_of(given: Any, method: str) -> str:
    name = getattr(given, "name", None)
    if not isinstance(name, str) or not name or not callable(getattr(given, method, None)):
        raise TypeError(
            f"{type(given).__name__} needs a `name` (text) and a method `{method}` to be "
            "registered with a hub"
        )
    return name


def _asked(tx: Transaction, names: list[str]) -> list[Row]:
    where = {"fired_at": None, "due_at": None, "name in": names}
    return [row for row in tx.select("expectations", where) if row["left"] is None]


def _owed(tx: Transaction) -> list[Row]:
    return tx.select("expectations", {"handled_at": None, "told !=": None})


def _note_handled(tx: Transaction, row: Row) -> None:
    key = {name: row[name] for name in ("channel_id", "turn", "position")}
    tx.update("expectations", key, {"handled_at": tx.now})
