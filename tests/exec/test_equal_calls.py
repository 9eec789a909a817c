"""What a call costs does not grow with the equal calls that its run has made before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.identity import Identity, Reentry
from agent_adapter.exec.executor import Executor
from agent_adapter.store import open_store
from tests.exec.costs import Counter
from tests.exec.shop import ARGS, Till, in_run

pytestmark = pytest.mark.anyio

MANY = 4_000


class Approved(aa.DeferredApproval):
    """A port whose records are decided at once."""

    async def request(self, request: Any) -> Any:
        """The approval."""
        decision = await super().request(request)
        if decision.is_pending:
            await aa.Inbox(self.store).approve(decision.record_id or "", reviewer="ann")
            decision = await super().request(request)
        return decision


def placed(number: int, attempt: int = 1) -> Any:
    """The context of one call of a run in which each has a place."""
    context = in_run("r", call_id="c", thread_id="t", principal="ann")
    context.identity = Identity(
        run="r",
        conversation="t",
        position=(f"message {attempt}.{number}", 0),
        attempt=attempt,
        reentry=Reentry.REPLAYED if attempt > 1 else Reentry.NEW,
    )
    return context


def arriving(number: int, **known: Any) -> Any:
    """The context of one call without a place, under an id of its own."""
    return in_run("r", call_id=f"c{number}", thread_id="t", principal="ann", **known)


Case = tuple[dict[str, Any], dict[str, Any], Callable[[int], Any]]

CASES: dict[str, Case] = {
    "write": ({}, {}, arriving),
    "write of an unknown asker": ({}, {}, lambda n: in_run("r")),
    "write at a place": ({}, {}, placed),
    "idempotent": ({"effects": "idempotent"}, {}, arriving),
    "read": ({"effects": "read"}, {}, arriving),
    "write that asks": (
        {"confirm": True},
        {"approval": aa.CallbackApproval(lambda _: True)},
        arriving,
    ),
    "write that is run again": ({}, {}, lambda n: arriving(n, reexecutes=True)),
    "write in a later attempt": ({}, {}, lambda n: arriving(n, attempt=2)),
    "write with limits": (
        {"cost": 1},
        {"limits": aa.RunLimits(max_calls=10**6, max_cost=1e9, max_calls_per_tool=10**6)},
        arriving,
    ),
}


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    """Both stores."""
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 's.db'}"
    opened = open_store(url)
    yield opened
    await opened.aclose()


async def make(executor: Executor, till: Till, contexts: list[Any]) -> None:
    """The calls, a few at a time, so that they share transactions."""
    for start in range(0, len(contexts), 200):
        some = contexts[start : start + 200]
        await asyncio.gather(*(executor.run_spec(till.spec, ARGS, each) for each in some))
    await executor.store.flush()


async def cost(executor: Executor, till: Till, contexts: list[Any]) -> tuple[int, int]:
    """Statements and steps of the cheapest of some calls; an upkeep may fall into any."""
    found = []
    for context in contexts:
        with Counter(executor.store) as counter:
            await executor.run_spec(till.spec, ARGS, context)
            await executor.store.flush()
        found.append((counter.statements, counter.steps))
    return min(found)


@pytest.mark.parametrize("case", CASES)
async def test_i19_equal_calls_cost_the_same_however_many_there_are(store: Any, case: str) -> None:
    """I19: statements and rows read are equal at 400 and at 4,000."""
    policy, options, context = CASES[case]
    till, executor = Till(**policy), Executor(store=store, **options)
    await make(executor, till, [context(n) for n in range(MANY // 10)])
    few = await cost(executor, till, [context(n) for n in range(MANY // 10, MANY // 10 + 5)])
    await make(executor, till, [context(n) for n in range(MANY // 10 + 5, MANY)])
    many = await cost(executor, till, [context(n) for n in range(MANY, MANY + 5)])
    assert len(till.ran) == MANY + 5
    assert many[0] == few[0] and many[1] <= few[1] * 1.05


@pytest.mark.parametrize("where", [placed, arriving])
async def test_i19_equal_calls_of_a_replayed_run_cost_the_same(store: Any, where: Any) -> None:
    """I19: the first outcomes that attempt 2 finds again cost what the last ones do."""
    till, executor = Till(), Executor(store=store)
    await make(executor, till, [where(n) for n in range(MANY)])
    again = [where(n, attempt=2) for n in range(MANY)]
    await make(executor, till, again[:400])
    first = await cost(executor, till, again[400:405])
    await make(executor, till, again[405:3_600])
    last = await cost(executor, till, again[3_600:3_605])
    assert len(till.ran) == MANY
    assert last[0] == first[0] and last[1] <= first[1] * 1.05


async def test_i19_approvals_of_equal_calls_cost_the_same(tmp_path: Any) -> None:
    """I19: to ask, to decide and to use reads no more records when many were used."""
    for url, (few, many) in {
        "memory://": (400, MANY),
        f"sqlite:///{tmp_path / 's.db'}": (40, 400),
    }.items():
        store = open_store(url)
        till, executor = Till(confirm=True), Executor(store=store, approval=Approved(store))
        found = []
        for start, end in ((0, few), (few + 5, many)):
            for number in range(start, end):
                await executor.run_spec(till.spec, ARGS, placed(number))
            found.append(await cost(executor, till, [placed(end + n) for n in range(5)]))
        await store.aclose()
        assert found[1][0] == found[0][0] and found[1][1] <= found[0][1] * 1.05


async def test_a_replay_gives_outcomes_in_the_order_of_their_calls(store: Any) -> None:
    """Equal writes at places of their own, made again at others: first come, first."""
    results = iter(range(100))
    till, executor = Till(lambda: next(results)), Executor(store=store)
    first = [await executor.run_spec(till.spec, ARGS, placed(n)) for n in range(20)]
    again = [await executor.run_spec(till.spec, ARGS, placed(n, attempt=2)) for n in range(20)]
    assert again == first and len(till.ran) == 20
