"""A denial sticks for run, tool and arguments, whichever port it came through."""

from __future__ import annotations

from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.exec.executor import Executor
from tests.exec.shop import Till, in_run, is_whole

pytestmark = pytest.mark.anyio

ARGS = {"order": "A1", "amount": 5}
NO = aa.ApprovalDecision.deny(reviewer="ann", reason="not today")


class OwnPort:
    """A port of the program's own."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def request(self, request: aa.ApprovalRequest) -> Any:
        """The answer."""
        return self._answer(request)


def ports(answer: Any) -> dict[str, Any]:
    """Every port that keeps no records, each with that answer."""

    def typed(_: str) -> str:
        return "y" if answer(None).approved else "n"

    return {
        "callback": aa.CallbackApproval(answer),
        "bool": aa.CallbackApproval(lambda request: answer(request).approved),
        "terminal": aa.TerminalApproval(ask=typed, show=lambda _: None, reviewer="ann"),
        "quorum": aa.QuorumApproval(1, reviewers=[answer]),
        "policy": aa.PolicyApproval([], otherwise=aa.CallbackApproval(answer)),
        "own": OwnPort(answer),
    }


class Desk:
    """A tool that always asks; the reviewer denies while `says` does."""

    def __init__(self, store: Any, port: str) -> None:
        self.till = Till(confirm=True)
        self.says: Any = NO
        self.asked = 0
        self.executor = Executor(store=store, approval=ports(self._answer)[port])

    def _answer(self, request: Any) -> aa.ApprovalDecision:
        self.asked += request is not None
        return self.says

    async def charge(self, run: str | None = "run_1", args: Any = ARGS, **known: Any) -> Any:
        """Make the call."""
        ctx = in_run(run, principal="bo", **known)
        return await self.executor.run_spec(self.till.spec, args, ctx)


@pytest.mark.parametrize("port", ports(None))
async def test_a_denial_sticks_through_every_port(memory: Any, port: str) -> None:
    """The same call of the run is not asked about again; other arguments and the next run are."""
    desk = Desk(memory, port)
    with pytest.raises(aa.ApprovalDenied):
        await desk.charge()
    desk.says, before = aa.ApprovalDecision.approve(reviewer="ann"), desk.asked
    with pytest.raises(aa.ApprovalDenied):
        await desk.charge()
    assert desk.asked == before and desk.till.ran == []
    await desk.charge(args={"order": "A1", "amount": 6})
    await desk.charge("run_2")
    await desk.charge(tenant="acme")
    assert len(desk.till.ran) == 3 and await is_whole(memory)


async def test_a_denial_sticks_in_another_process(store: Any) -> None:
    """It is kept with its reason in the store, and shown among the denied records."""
    for _ in range(2):
        desk = Desk(store, "callback")
        with pytest.raises(aa.ApprovalDenied, match="denied by ann: not today"):
            await desk.charge()
    assert desk.asked == 0
    [record] = await aa.Inbox(store).list("denied")
    assert (record.tool, record.reviewer, record.arguments) == ("charge", "ann", ARGS)
    deferred = Executor(store=store, approval=aa.DeferredApproval(store))
    with pytest.raises(aa.ApprovalDenied, match="not today"):
        await deferred.run_spec(desk.till.spec, ARGS, in_run(principal="bo"))


@pytest.mark.parametrize("answer", [ValueError, "no decision"])
async def test_a_question_that_got_no_answer_is_asked_again(memory: Any, answer: Any) -> None:
    """A reviewer who fails, or whose answer is none, has denied nothing."""
    till, answers = Till(confirm=True), [answer, True]

    def reviewer(request: aa.ApprovalRequest) -> Any:
        said = answers.pop(0)
        if said is ValueError:
            raise said
        return said

    executor = Executor(store=memory, approval=aa.CallbackApproval(reviewer))
    with pytest.raises(aa.ApprovalDenied):
        await executor.run_spec(till.spec, ARGS, in_run())
    await executor.run_spec(till.spec, ARGS, in_run())
    assert len(till.ran) == 1


async def test_without_a_run_a_denial_is_for_its_call(memory: Any) -> None:
    """Nothing is kept for a run that is not known."""
    desk = Desk(memory, "callback")
    for _ in range(2):
        with pytest.raises(aa.ApprovalDenied):
            await desk.charge(None)
    assert desk.asked == 2 and await aa.Inbox(memory).list("denied") == []
