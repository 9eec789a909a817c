"""Questions that are taken back: a question lives as long as whoever asked it."""

from __future__ import annotations

from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.exec import upkeep
from agent_adapter.exec.executor import Executor
from tests.exec.shop import Till, in_run, is_whole

pytestmark = pytest.mark.anyio

ARGS = {"order": "A1", "amount": 5}


class Desk:
    """A tool that always asks, and the inbox where its questions wait."""

    def __init__(self, store: Any, **options: Any) -> None:
        self.till = Till(confirm=True)
        registry = aa.ToolRegistry()
        registry.add(self.till.spec)
        self.executor = Executor(
            registry, store=store, approval=aa.DeferredApproval(store), **options
        )
        self.inbox = aa.Inbox(store)

        @registry.tool
        async def outer() -> str:
            """Charges from inside."""
            return str(await self.executor.run("charge", ARGS))

    async def charge(self, run: str = "run_1", tool: str = "charge", **known: Any) -> Any:
        """Make the call."""
        args = ARGS if tool == "charge" else {}
        return await self.executor.run(tool, args, ctx=in_run(run, **known))

    async def asked(self, run: str = "run_1", tool: str = "charge", **known: Any) -> str:
        """The id of the question that the call leaves."""
        with pytest.raises(aa.ApprovalPending) as held:
            await self.charge(run, tool, **known)
        return held.value.id


@pytest.mark.parametrize("approved", [False, True])
async def test_a_withdrawn_question_runs_nothing(store: Any, approved: bool) -> None:
    """A question, and an approval that no call has used, can be taken back; both then say so."""
    desk = Desk(store)
    id = await desk.asked()
    if approved:
        await desk.inbox.approve(id, reviewer="ann")
    record = await desk.inbox.withdraw(id, "the order was cancelled", reviewer="bo")
    assert (record.state, record.reviewer) == ("withdrawn", "bo")
    with pytest.raises(aa.ApprovalWithdrawn, match="withdrawn by bo: the order was cancelled"):
        await desk.executor.resume(id)
    with pytest.raises(aa.AgentAdapterError, match="already withdrawn by bo: the order"):
        await desk.inbox.approve(id, reviewer="ann")
    assert desk.till.ran == [] and await is_whole(store)


async def test_a_person_s_withdrawal_sticks_for_the_run(store: Any) -> None:
    """The same call is not asked about again in its run; the next run asks anew."""
    desk = Desk(store)
    id = await desk.asked(thread_id="t")
    await desk.inbox.withdraw(id, "not now", reviewer="bo")
    with pytest.raises(aa.ApprovalWithdrawn) as told:
        await desk.charge(thread_id="t")
    message = aa.model_visible_error(told.value)["error"]["message"]
    assert "withdrawn by bo: not now" in message and "do not ask for it again" in message
    assert await desk.asked("run_2", thread_id="t") != id


async def test_a_question_whose_asker_is_gone_may_be_asked_again(memory: Any) -> None:
    """A withdrawal without a reviewer keeps nobody from asking."""
    desk = Desk(memory)
    id = await desk.asked()
    await desk.inbox.withdraw(id, "the tab was closed")
    assert await desk.asked() != id


async def test_withdrawing_what_is_over_is_refused(memory: Any) -> None:
    """A record that was used, denied or withdrawn, or is another tenant's, stays as it is."""
    desk = Desk(memory)
    id = await desk.asked()
    with pytest.raises(aa.AgentAdapterError, match=f"no approval {id}"):
        await aa.Inbox(memory, tenant="acme").withdraw(id, "x")
    with pytest.raises(aa.AgentAdapterError, match="a reviewer has a name"):
        await desk.inbox.withdraw(id, "x", reviewer=" ")
    await desk.inbox.approve(id, reviewer="ann")
    await desk.executor.resume(id)
    with pytest.raises(aa.AgentAdapterError, match="already taken: only an open one"):
        await desk.inbox.withdraw(id, "too late")


async def test_the_questions_of_a_run_are_withdrawn_with_it(store: Any) -> None:
    """Cancelling a run takes back its questions and those of its tools' calls, and no others."""
    desk = Desk(store)
    own, inner = await desk.asked(), await desk.asked(tool="outer")
    other = await desk.asked("run_2")
    await upkeep.cancel_run(store, "run_1", by="bo", reason="stop")
    states = [(await desk.inbox.get(id)).state for id in (own, inner, other)]
    assert states == ["withdrawn", "withdrawn", "pending"]
    with pytest.raises(aa.ApprovalWithdrawn, match=r"the run was cancelled \(stop\)"):
        await desk.executor.resume(inner)
    assert await is_whole(store)


@pytest.mark.parametrize("tenant", ["", "acme"])
async def test_questions_are_withdrawn_by_run_and_by_conversation(memory: Any, tenant: str) -> None:
    """Every open question of a run, or of a conversation of the inbox's tenant."""
    desk, inbox = Desk(memory), aa.Inbox(memory, tenant=tenant)
    ids = [await desk.asked(f"run_{n}", thread_id="t", tenant=tenant) for n in (1, 2)]
    elsewhere = await desk.asked("run_3", thread_id="u", tenant=tenant)
    assert await inbox.withdraw_run("run_1", "x") == ids[:1]
    assert await inbox.withdraw_conversation("t", "x") == ids[1:]
    assert [record.id for record in await inbox.list()] == [elsewhere]


async def test_a_waiting_call_is_told_of_a_withdrawal(memory: Any) -> None:
    """A call that waits for its answer ends as withdrawn."""
    desk = Desk(memory)
    id = await desk.asked()
    desk.executor.approval = aa.DeferredApproval(memory, wait=60)
    await desk.inbox.withdraw(id, "not now", reviewer="bo")
    with pytest.raises(aa.ApprovalWithdrawn, match="not now"):
        await desk.charge()
