"""The calls that one process is running, per store."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import StoreError, ToolError
from agent_adapter.core.tool import ToolSpec
from agent_adapter.store import waits
from agent_adapter.store.base import Operation, Store, Transaction
from agent_adapter.store.calls import end_call
from agent_adapter.store.intents import Begun, Outcome
from agent_adapter.store.keys import call_key_of, once_key_of
from agent_adapter.store.recording import end_abandoned

_REMEMBERED = 10_000


class Claimant(Protocol):
    """The parts of a call that decide its identity, and those that `claim` fills in."""

    spec: ToolSpec
    ctx: ToolContext
    run_id: str
    position_key: str | None
    once_key: str | None
    call_key: str | None
    n: int | None
    claim: tuple[Any, int] | None

    @property
    def raw_digest(self) -> str:
        """The digest of the arguments as they were given."""
        ...


Beginning = tuple[list[Begun], Operation[Any]]
"""An intent that is being written: what came of it, and how it is taken back."""


class InFlightCalls:
    """Calls under way, claimed identities, and outcomes that could not be written yet (`lost`).

    `beginning` are the intents whose callers have not learned yet that they are durable.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        # Calls of several event loops, such as those of sync tools, run at the same time.
        self._lock = threading.Lock()
        # A future for those who wait; `None` while nobody does.
        self._running: dict[str, Future[None] | None] = {}
        self.beginning: dict[asyncio.AbstractEventLoop, dict[object, Beginning]] = {}
        self._by_loop: dict[asyncio.AbstractEventLoop, set[str]] = {}
        self._claimed: dict[tuple[str, str, str], dict[int, Claimant]] = {}
        self._issued: OrderedDict[tuple[str, str, str], int] = OrderedDict()
        self.lost: list[Outcome] = []
        self._tainted: OrderedDict[str, None] = OrderedDict()

    def claim(self, call: Claimant, first_free: int = 1) -> str:
        """Give the call the lowest `n` that no other call here holds; `release` frees it.

        Calls at one place are one call: they share their `n`.
        """
        if call.once_key is not None:
            call.n = 1
            key = call.call_key = once_key_of(call.ctx.tenant, call.spec.name, call.once_key)
            return key
        same = (call.position_key or call.run_id, call.spec.name, call.raw_digest)
        with self._lock:
            taken = self._claimed.setdefault(same, {})
            n = first_free
            if call.position_key is None:
                n = max(n, self._issued.get(same, 0) + 1)
                while n in taken:
                    n += 1
            if n not in taken:
                taken[n] = call
                call.claim = (same, n)
        call.n = n
        key = call.call_key = call_key_of(*same, n)
        return key

    def held(self, run_id: str, tool: str, digest: str) -> int:
        """The highest `n` among equal calls under way here; an uncounted one takes the next."""
        return max(self._claimed.get((run_id, tool, digest), ()), default=0)

    def spend(self, call: Claimant) -> None:
        """Use up the claimed ordinal before the call is recorded, so that no other call gets it."""
        if call.claim is None:
            return
        same, n = call.claim
        self._issued[same] = max(n, self._issued.pop(same, 0))
        while len(self._issued) > _REMEMBERED:
            self._issued.popitem(last=False)

    def twin(self, call: Claimant) -> str | None:
        """The key of the same call, under way here.

        It is the one at the same place, with the same native id, or of an earlier making of the
        run, whose tools may go on when their caller has given up.
        """
        ctx, placed = call.ctx, call.position_key is not None
        same = (call.position_key or call.run_id, call.spec.name, call.raw_digest)
        for other in self._claimed.get(same, {}).values():
            theirs = other.ctx
            if other is call or (theirs.principal, theirs.tenant) != (ctx.principal, ctx.tenant):
                continue
            if placed or theirs.call_id == ctx.call_id or theirs.attempt < ctx.attempt:
                return other.call_key
        return None

    def release(self, call: Claimant) -> None:
        """Free the identity that the call claimed, if it did."""
        if call.claim is None:
            return
        same, n = call.claim
        call.claim = None
        with self._lock:
            taken = self._claimed.get(same)
            if taken is not None:
                taken.pop(n, None)
                if not taken:
                    del self._claimed[same]

    def enter(self, call_key: str) -> None:
        """Mark the call as under way here, until `leave`."""
        with self._lock:
            self._running[call_key] = None
            self._by_loop.setdefault(asyncio.get_running_loop(), set()).add(call_key)

    def leave(self, call_key: str | None) -> None:
        """The call has ended; wake those who wait for it."""
        if call_key is None:
            return
        with self._lock:
            for loop, keys in list(self._by_loop.items()):
                keys.discard(call_key)
                if not keys:
                    del self._by_loop[loop]
            done = self._running.pop(call_key, None)
        if done is not None:
            done.set_result(None)

    async def ended(self, call_key: str) -> None:
        """Return when the call is no longer under way here."""
        self.abandon_closed()
        with self._lock:
            if call_key not in self._running:
                return
            running = self._running[call_key]
            if running is None:
                running = self._running[call_key] = Future()
        await asyncio.shield(asyncio.wrap_future(running))

    # No lock for what is beginning: the calls of one loop are begun in its thread alone, and a
    # collected call ends wherever the garbage collector runs.
    def begin(
        self,
        loop: asyncio.AbstractEventLoop,
        mark: object,
        begun: list[Begun],
        undo: Operation[Any],
    ) -> None:
        """Note that an intent is being written for a call of this event loop."""
        self.beginning.setdefault(loop, {})[mark] = (begun, undo)

    def begun(self, loop: asyncio.AbstractEventLoop, mark: object) -> bool:
        """Its caller has learned what came of it, or never will; `False` if that was noted."""
        of_loop = self.beginning.get(loop, {})
        known = of_loop.pop(mark, None) is not None
        if known and not of_loop:
            self.beginning.pop(loop, None)
        return known

    def abandon_closed(self) -> None:
        """End the calls whose event loop was closed: nothing else would."""
        with self._lock:
            keys = [key for loop, held in self._by_loop.items() if loop.is_closed() for key in held]
        for call_key in keys:
            self._store.post(partial(end_abandoned, call_key=call_key))
            self.leave(call_key)
        for loop in list(self.beginning):
            if loop.is_closed():
                for _, undo in list(self.beginning.pop(loop, {}).values()):
                    self._store.post(undo)

    def under_way(self) -> set[str]:
        """The keys of the calls that are under way here, or are about to be."""
        beginning = [each for held in list(self.beginning.values()) for each in list(held.values())]
        return {*list(self._running), *(found[0].call_key for found, _ in beginning if found)}

    def knows_label(self, scope_and_label: str) -> bool:
        """Whether this label is known to be durable."""
        return scope_and_label in self._tainted

    def remember_label(self, scope_and_label: str) -> None:
        """Remember that the label is durable."""
        self._tainted[scope_and_label] = None
        while len(self._tainted) > _REMEMBERED:
            self._tainted.popitem(last=False)

    def lose(self, outcome: Outcome) -> None:
        """Keep an outcome that could not be written; later writes wait for it."""
        self.lost.append(outcome)

    async def settle_lost(self) -> None:
        """Write what could not be written before; `ToolError` where it still fails."""
        self.abandon_closed()
        while self.lost:
            outcome = self.lost[0]
            try:
                await self._store.write(partial(_ending, outcome=outcome))
            except StoreError as exc:
                raise ToolError(
                    f"writes are refused: the outcome of {outcome.call_key} is not recorded ({exc})"
                ) from exc
            # Another call may have written it meanwhile.
            if self.lost and self.lost[0] is outcome:
                del self.lost[0]


def _ending(tx: Transaction, outcome: Outcome) -> None:
    end_call(tx, outcome)
    # A turn may be parked because the outcome of the call was unknown.
    waits.wake(tx, outcome.call_key)


_known: WeakKeyDictionary[Any, InFlightCalls] = WeakKeyDictionary()


def in_flight_of(store: Store) -> InFlightCalls:
    """The one `InFlightCalls` of `store` in this process."""
    found = _known.get(store)
    if found is None:
        found = _known[store] = InFlightCalls(store)
    return found
