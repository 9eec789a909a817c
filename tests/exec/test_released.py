"""A decision that is held can be undone, and nothing goes by it before it is released."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

import agent_adapter as aa
from agent_adapter.exec import ledger
from agent_adapter.store import approvals
from agent_adapter.store.approvals import Refusal, Take
from agent_adapter.store.memory import MemoryStore
from tests.exec.test_answered import Desk

pytestmark = pytest.mark.anyio

Verdict = Literal["approved", "denied", "answered"]


@pytest.fixture
def desk() -> Desk:
    """A desk over a store in memory."""
    return Desk(MemoryStore())


async def _decide(desk: Desk, id: str, verdict: Verdict = "approved", by: str = "kim") -> Any:
    made = await desk.inbox.decide(id, verdict, reviewer=by, answer="x", undo_within=30)
    assert not isinstance(made, Refusal), made
    return made


async def _release(desk: Desk, id: str) -> None:
    await desk.store.write(lambda tx: tx.update("approvals", {"id": id}, {"released_at": tx.now}))


@pytest.mark.parametrize("verdict", ["approved", "denied", "answered"])
async def test_nothing_goes_by_it_before(desk: Desk, verdict: Verdict) -> None:
    """Who wants to go by it waits until it is released, whatever it says."""
    id = await desk.ask()
    record = await _decide(desk, id, verdict)
    assert record.state == verdict and record.released_at > record.decided_at
    waiting = asyncio.create_task(desk.executor.resume(id))
    done, _ = await asyncio.wait([waiting], timeout=0.2)
    assert not done and desk.ran == []
    await _release(desk, id)
    async with asyncio.timeout(60):
        if verdict == "denied":
            with pytest.raises(aa.ApprovalDenied):
                await waiting
        else:
            assert await waiting == ("sent to ann" if verdict == "approved" else "x")


async def test_begin_refuses_it(desk: Desk) -> None:
    """The transaction that would begin the call does not take what is held."""
    id = await desk.ask()
    await _decide(desk, id)
    row = await desk.store.read(lambda tx: tx.get("approvals", id))
    assert row is not None
    same = {name: row[name] for name in ("tenant", "call_key", "principal", "fingerprint")}
    use = Take(record_id=id, digest=row["digest"], **same)
    refused = await desk.store.write(lambda tx: approvals.take(tx, use))
    assert refused is not None and "can still be undone" in refused.reason
    await _release(desk, id)
    assert await desk.store.write(lambda tx: approvals.take(tx, use)) is None


async def test_a_decision_elsewhere_counts_at_once(desk: Desk) -> None:
    """Without a window, as from the command line and the API, nothing is held."""
    id = await desk.ask()
    record = await desk.inbox.approve(id, reviewer="kim")
    assert record.released_at is None
    assert await desk.executor.resume(id) == "sent to ann"


@pytest.mark.parametrize("verdict", ["approved", "denied", "answered"])
async def test_undone_it_waits_again(desk: Desk, verdict: Verdict) -> None:
    """The record is as before the decision, the call that waited is pending, the chain whole."""
    id = await desk.ask()
    await _decide(desk, id, verdict)
    waiting = asyncio.create_task(desk.executor.resume(id))
    await asyncio.sleep(0)
    record = await desk.inbox.undo(id, reviewer="kim")
    assert (record.state, record.reviewer, record.answer) == ("pending", None, None)
    async with asyncio.timeout(60):
        with pytest.raises(aa.ApprovalPending):
            await waiting
    assert desk.ran == [] and "approval-undone" in await desk.kinds()
    assert (await ledger.verify(desk.store, "run_1")).ok
    await desk.inbox.approve(id, reviewer="lee")
    assert await desk.executor.resume(id) == "sent to ann"


async def test_undone_an_edit_is_gone(desk: Desk) -> None:
    """What was asked is asked again."""
    id = await desk.ask()
    edit = {"to": "bo"}
    await desk.inbox.decide(id, "approved", reviewer="kim", arguments=edit, undo_within=30)
    assert (await desk.inbox.undo(id, reviewer="kim")).will_run == {"to": "ann"}


async def test_undone_the_vote_is_gone(desk: Desk) -> None:
    """The last of several votes is taken back, the others stay."""
    desk.executor.approval = aa.QuorumApproval(2, desk.store)
    id = await desk.ask(principal="ann")
    await _decide(desk, id, by="kim")
    assert (await _decide(desk, id, by="lee")).state == "approved"
    record = await desk.inbox.undo(id, reviewer="lee")
    assert (record.state, record.votes) == ("pending", ("kim",))


@pytest.mark.parametrize("by", ["lee", "os:lee", "kimberly"])
async def test_only_its_author_undoes_it(desk: Desk, by: str) -> None:
    """Another person withdraws it, or leaves it."""
    id = await desk.ask()
    await _decide(desk, id)
    with pytest.raises(aa.AgentAdapterError, match="cannot undo"):
        await desk.inbox.undo(id, reviewer=by)
    assert (await desk.inbox.undo(id, reviewer="token:Kim")).state == "pending"


async def test_what_is_in_force_cannot_be_undone(desk: Desk) -> None:
    """After the window, or without one, the way is to withdraw what no call has used."""
    id = await desk.ask()
    await _decide(desk, id)
    await _release(desk, id)
    with pytest.raises(aa.AgentAdapterError, match="in force"):
        await desk.inbox.undo(id, reviewer="kim")
    assert (await desk.inbox.withdraw(id, "changed my mind", reviewer="kim")).state == "withdrawn"


async def test_a_pending_request_has_nothing_to_undo(desk: Desk) -> None:
    """The reason says how it stands."""
    with pytest.raises(aa.AgentAdapterError, match="is pending"):
        await desk.inbox.undo(await desk.ask(), reviewer="kim")
