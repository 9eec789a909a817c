"""A tool that keeps what it ran as and ends as told, and what is asked about it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec import ledger
from agent_adapter.store.base import Row, Store
from agent_adapter.store.sqlite import SqliteStore

YES = ApprovalDecision.approve(reviewer="ann")
NO = ApprovalDecision.deny(reviewer="ann", reason="not today")
ARGS = {"order": "A1", "amount": 5}


def no_key(args: Any, ctx: Any) -> str:
    """The `cache_key` of a tool whose result depends on its arguments alone."""
    return ""


class FakeClock:
    """A clock that moves when told, in seconds since the owner id."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        """The time."""
        return self.now

    def pass_(self, seconds: float) -> None:
        """Let `seconds` go by."""
        self.now += seconds


class Till:
    """`charge(order, amount)`, a tool that ends as `then` says.

    `then` is raised where it is an exception, called (and awaited) where it can be, else returned.
    `ran` holds the arguments of every run, `contexts` the contexts.
    """

    def __init__(self, then: Any = "charged", **policy: Any) -> None:
        self.then = then
        self.ran: list[tuple[str, int]] = []
        self.contexts: list[ToolContext] = []
        self.spec = ToolSpec.from_function(self._function(), **policy)

    @property
    def keys(self) -> list[str | None]:
        """The idempotency key of every run."""
        return [ctx.idempotency_key for ctx in self.contexts]

    def _function(self) -> Callable[..., Any]:
        async def charge(order: str, amount: int, ctx: ToolContext) -> Any:
            """Charges an order."""
            self.ran.append((order, amount))
            self.contexts.append(ctx)
            then = self.then
            if isinstance(then, BaseException):
                raise then
            given = then() if callable(then) else then
            return await given if inspect.isawaitable(given) else given

        return charge


def in_run(run_id: str | None = "run_1", **known: Any) -> ToolContext:
    """The context of one call of that run."""
    return ToolContext(run_id=run_id, **known)


async def rows(store: Store, **where: Any) -> list[Row]:
    """The store's calls, oldest first."""
    await store.flush()
    return await store.read(lambda tx: tx.select("calls", where, order_by=("started_at", "n")))


async def endings(store: Store) -> list[str | None]:
    """How the store's calls ended, oldest first."""
    return [row["ending"] for row in await rows(store)]


async def kinds(store: Store, run_id: str = "run_1") -> list[str]:
    """The kinds of a run's ledger entries, in order."""
    return [entry.kind for entry in await ledger.entries(store, run_id)]


async def is_whole(store: Store) -> bool:
    """Whether the ledger verifies."""
    report = await ledger.verify(store)
    assert report.problems == ()
    return report.ok


@asynccontextmanager
async def another_process(store: SqliteStore, clock: Any) -> AsyncIterator[SqliteStore]:
    """The same file with an owner id of its own, dead on leaving."""
    other = SqliteStore(store.path, clock=clock)
    try:
        yield other
    finally:
        await other.aclose()


async def turns(count: int = 5) -> None:
    """Let the other tasks of the loop go on."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(claim: Callable[[], bool]) -> None:
    """Return when `claim` holds; within a minute."""
    async with asyncio.timeout(60):
        while not claim():
            await asyncio.sleep(0.001)
