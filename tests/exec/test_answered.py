"""A person answers in place of a call: nothing runs, and the answer is its result."""

from __future__ import annotations

from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest
from agent_adapter.exec import ledger
from agent_adapter.store.base import Store
from agent_adapter.store.memory import MemoryStore

pytestmark = pytest.mark.anyio


class Desk:
    """A tool that always asks, over a store, and what it ran with."""

    def __init__(self, store: Store, port: Any = None) -> None:
        self.store, self.ran = store, list[str]()
        self.registry = aa.ToolRegistry()

        @self.registry.tool(confirm=True, effects="write")
        def mail(to: str) -> str:
            """Send a mail."""
            self.ran.append(to)
            return f"sent to {to}"

        approval = port or aa.DeferredApproval(store)
        self.executor = aa.Executor(self.registry, approval=approval, store=store)
        self.inbox = aa.Inbox(store)

    async def call(self, run: str = "run_1", to: str = "ann", **more: Any) -> Any:
        """The call's result in that run."""
        return await self.executor.run("mail", {"to": to}, ctx=aa.ToolContext(run_id=run, **more))

    async def ask(self, run: str = "run_1", **more: Any) -> str:
        """The record of a call that waits."""
        with pytest.raises(aa.ApprovalPending) as caught:
            await self.call(run, **more)
        return str(caught.value.id)

    async def kinds(self, run: str = "run_1") -> list[str]:
        """The kinds of the run's entries."""
        rows = await self.store.read(
            lambda tx: tx.select("ledger", {"run_id": run}, order_by="seq")
        )
        return [row["kind"] for row in rows]


@pytest.fixture
def desk() -> Desk:
    """A desk over a store in memory."""
    return Desk(MemoryStore())


@pytest.mark.parametrize("answer", ["ask Bo instead", "", {"sent": False}, [1, None], 7, None])
async def test_the_answer_is_the_result(desk: Desk, answer: Any) -> None:
    """Any JSON value comes back as it was given, and the tool does not run."""
    record = await desk.inbox.respond(await desk.ask(), answer, reviewer="kim")
    assert (record.state, record.answer, record.reviewer) == ("answered", answer, "kim")
    assert await desk.executor.resume(record.id) == answer
    assert desk.ran == []


async def test_the_same_call_gets_it_again(desk: Desk) -> None:
    """A repeat, and another attempt, of the same call are not asked about again."""
    await desk.inbox.respond(await desk.ask(call_id="c1"), "no need", reviewer="kim")
    assert await desk.call(call_id="c1") == "no need"
    assert await desk.call(call_id="c1", attempt=2) == "no need"
    assert await desk.inbox.list() == []


async def test_it_answers_one_call(desk: Desk) -> None:
    """Another call with the same arguments is a question of its own."""
    await desk.inbox.respond(await desk.ask(), "no need", reviewer="kim")
    assert await desk.call("run_1") == "no need"
    await desk.ask("run_2")


async def test_a_call_without_a_known_run(desk: Desk) -> None:
    """`resume` hands the answer out; the next equal call is asked about."""
    with pytest.raises(aa.ApprovalPending) as caught:
        await desk.executor.run("mail", {"to": "ann"})
    await desk.inbox.respond(caught.value.id, "later", reviewer="kim")
    assert await desk.executor.resume(caught.value.id) == "later"
    with pytest.raises(aa.ApprovalPending) as other:
        await desk.executor.run("mail", {"to": "ann"})
    assert other.value.id != caught.value.id


async def test_the_ledger_says_so(desk: Desk) -> None:
    """Who answered and that it was handed out are entries, once, and `verify` accepts them."""
    id = await desk.ask()
    await desk.inbox.respond(id, "no need", reviewer="kim")
    for _ in range(2):
        await desk.executor.resume(id)
    wanted = ["approval-requested", "approval-decided", "call-answered"]
    assert [kind for kind in await desk.kinds() if kind in wanted] == wanted
    assert (await ledger.verify(desk.store, "run_1")).ok


async def test_verify_sees_an_answer_that_was_changed(desk: Desk) -> None:
    """An answer put into the store by another way is found."""
    id = await desk.ask()
    await desk.inbox.respond(id, "no need", reviewer="kim")
    await desk.store.write(lambda tx: tx.update("approvals", {"id": id}, {"answer": '"yes"'}))
    assert not (await ledger.verify(desk.store, "run_1")).ok


async def test_a_quorum_cannot_be_answered_by_one(desk: Desk) -> None:
    """An answer has one author: a request that needs several votes refuses it."""
    desk.executor.approval = aa.QuorumApproval(2, desk.store)
    id = await desk.ask(principal="ann")
    with pytest.raises(aa.AgentAdapterError, match="2 votes"):
        await desk.inbox.respond(id, "no", reviewer="kim")
    assert (await desk.inbox.get(id)).state == "pending"


async def test_an_answer_that_is_not_json(desk: Desk) -> None:
    """It is refused, and nothing changes."""
    id = await desk.ask()
    with pytest.raises(aa.AgentAdapterError, match="not JSON"):
        await desk.inbox.respond(id, float("nan"), reviewer="kim")
    assert (await desk.inbox.get(id)).state == "pending"


async def test_a_port_of_the_program_may_answer() -> None:
    """A reviewer's function answers in place of the call, too."""

    def reviewer(request: ApprovalRequest) -> ApprovalDecision:
        return ApprovalDecision.respond("by hand", reviewer="kim")

    desk = Desk(MemoryStore(), aa.CallbackApproval(reviewer))
    assert await desk.call() == "by hand"
    assert desk.ran == [] and "call-answered" in await desk.kinds()


async def test_a_denial_says_its_text(desk: Desk) -> None:
    """The other way not to run it: the model reads why."""
    await desk.inbox.deny(id := await desk.ask(), reviewer="kim", reason="ask Bo instead")
    with pytest.raises(aa.ApprovalDenied, match="ask Bo instead"):
        await desk.executor.resume(id)


async def test_guards_see_an_answer(desk: Desk) -> None:
    """It passes what every result passes."""

    class Loud:
        def after(self, call: Any, result: Any) -> Any:
            return f"{result}!"

    approval = desk.executor.approval
    executor = aa.Executor(desk.registry, approval=approval, store=desk.store, hooks=[Loud()])
    id = await desk.ask()
    await desk.inbox.respond(id, "no need", reviewer="kim")
    assert await executor.resume(id) == "no need!"
