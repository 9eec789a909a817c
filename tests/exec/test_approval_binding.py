"""What an approval is bound to, how often it counts, and what a person is shown."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import pickle
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, Field

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    ApprovalDenied,
    ApprovalPending,
    GuardrailBlocked,
    ToolArgsInvalid,
    ToolFailed,
)
from agent_adapter.core.inert import visible
from agent_adapter.core.inject import Secret
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest
from agent_adapter.exec import ledger
from agent_adapter.exec.approval import confirm
from agent_adapter.exec.approval.grants import ApprovalToken, IssuedTokens
from agent_adapter.exec.approval.ports.callback import CallbackApproval
from agent_adapter.exec.executor import Executor
from agent_adapter.exec.gate import Gate
from tests.exec.shop import ARGS, NO, YES, Till, in_run, rows, turns, until
from tests.fakes.approval import FakeApproval
from tests.fakes.hooks import RaisingHook, RecordingHook

pytestmark = pytest.mark.anyio

_count = itertools.count()


# -- who is asked ----------------------------------------------------------------------------


async def test_without_a_port_a_call_that_asks_is_denied(memory: Any) -> None:
    """There is nobody to say yes."""
    till = Till(confirm=True)
    with pytest.raises(ApprovalDenied, match="nobody to ask"):
        await Executor(store=memory).run_spec(till.spec, ARGS, in_run())
    assert till.ran == []


async def test_a_call_is_asked_about_once(memory: Any) -> None:
    """One question, one run."""
    till, port = Till(confirm=True), FakeApproval(YES)
    await Executor(store=memory, approval=port).run_spec(till.spec, ARGS, in_run())
    assert len(port.requests) == len(till.ran) == 1


async def test_a10_denied_does_not_run(memory: Any) -> None:
    """A10: The reviewer and the reason are in the text."""
    till = Till(confirm=True)
    with pytest.raises(ApprovalDenied, match="denied by ann: not today"):
        await Executor(store=memory, approval=FakeApproval(NO)).run_spec(till.spec, ARGS)
    assert till.ran == []


@pytest.mark.parametrize("answer", ["yes", 1, None, {"verdict": "approved"}, ApprovalDecision])
async def test_a_port_that_gives_no_decision_denies(memory: Any, answer: Any) -> None:
    """Only an `ApprovalDecision` is one."""

    class Port:
        async def request(self, request: ApprovalRequest) -> Any:
            return answer

    till = Till(confirm=True)
    with pytest.raises(ApprovalDenied, match="not a decision"):
        await Executor(store=memory, approval=Port()).run_spec(till.spec, ARGS)
    assert till.ran == []


async def test_a17_a_port_that_raises_denies(memory: Any) -> None:
    """A17: A crash is not a yes."""
    till = Till(confirm=True)
    with pytest.raises(ApprovalDenied, match=r"port failed \(AssertionError\)"):
        await Executor(store=memory, approval=FakeApproval()).run_spec(till.spec, ARGS)
    assert till.ran == []


# -- confirm rules ---------------------------------------------------------------------------


def _raises(args: Any, ctx: Any) -> bool:
    raise ValueError("rule")


async def _later(args: Any, ctx: Any) -> bool:
    return False


async def _later_yes(args: Any, ctx: Any) -> bool:
    return True


RULES: list[tuple[Callable[..., Any], bool]] = [
    (lambda args, ctx: False, False),
    (_later, False),
    (lambda args, ctx: args["amount"] > 100, False),
    (lambda args, ctx: True, True),
    (_later_yes, True),
    (lambda args, ctx: None, True),
    (lambda args, ctx: 0, True),
    (lambda args, ctx: "", True),
    (_raises, True),
    (lambda args: False, True),
]


@pytest.mark.parametrize(("rule", "asks"), RULES)
async def test_only_false_skips_asking(memory: Any, rule: Any, asks: bool) -> None:
    """A rule that raises or gives anything but a bool counts as yes."""
    till, port = Till(confirm=rule), FakeApproval(YES)
    await Executor(store=memory, approval=port).run_spec(till.spec, ARGS)
    assert bool(port.requests) is asks and len(till.ran) == 1


async def test_a_slow_rule_asks(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its time and no more."""
    monkeypatch.setattr(confirm, "CONFIRM_SECONDS", 0.01)

    async def slow(args: Any, ctx: Any) -> bool:
        await asyncio.Event().wait()
        return False

    till, port = Till(confirm=slow), FakeApproval(YES)
    await Executor(store=memory, approval=port).run_spec(till.spec, ARGS)
    assert len(port.requests) == 1


async def test_a_rule_runs_once_and_gets_a_copy(memory: Any) -> None:
    """It cannot change what runs."""
    calls: list[int] = []

    def rule(args: dict[str, Any], ctx: ToolContext) -> bool:
        calls.append(1)
        args["amount"] = 999
        return True

    till = Till(confirm=rule)
    await Executor(store=memory, approval=FakeApproval(YES)).run_spec(till.spec, ARGS)
    assert calls == [1] and till.ran == [("A1", 5)]


# -- ctx.approval ----------------------------------------------------------------------------


async def request_for(executor: Executor, till: Till, ctx: ToolContext) -> ApprovalRequest:
    """The request that this call makes, when it is refused."""
    port = FakeApproval(NO)
    executor.approval, kept = port, executor.approval
    with pytest.raises(ApprovalDenied):
        await executor.run_spec(till.spec, ARGS, ctx)
    executor.approval = kept
    return port.requests[0]


async def stamped_yes(executor: Executor, till: Till, **known: Any) -> ApprovalDecision:
    """A decision that our own port made for that call."""
    request = await request_for(executor, till, in_run(**known))
    return await CallbackApproval(lambda _: True).request(request)


async def test_a_stamped_decision_counts_for_its_call(memory: Any) -> None:
    """The port is skipped."""
    till, executor = Till(confirm=True), Executor(store=memory)
    decision = await stamped_yes(executor, till, call_id="c")
    await executor.run_spec(till.spec, ARGS, in_run(call_id="c", approval=decision))
    assert len(till.ran) == 1


async def test_a4_a_stamped_decision_counts_once(memory: Any) -> None:
    """A4: The second use asks again."""
    till, executor = Till(confirm=True), Executor(store=memory)
    decision = await stamped_yes(executor, till, call_id="c")
    await executor.run_spec(till.spec, ARGS, in_run(call_id="c", approval=decision))
    with pytest.raises(ApprovalDenied):
        await executor.run_spec(till.spec, ARGS, in_run(call_id="c", approval=decision))
    assert len(till.ran) == 1


OTHERS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("a3 other arguments", {}, {"order": "A1", "amount": 6}),
    ("a3 another type", {}, {"order": "1", "amount": 5}),
    ("a5 another run", {"run_id": "run_2"}, ARGS),
    ("a6 another call", {"call_id": "d"}, ARGS),
    ("another principal", {"principal": "eve"}, ARGS),
    ("another tenant", {"tenant": "theirs"}, ARGS),
]


@pytest.mark.parametrize(("known", "args"), [o[1:] for o in OTHERS], ids=[o[0] for o in OTHERS])
async def test_a_stamped_decision_counts_for_no_other_call(
    memory: Any, known: dict[str, Any], args: dict[str, Any]
) -> None:
    """Whatever differs, the call is asked about."""
    till, executor = Till(confirm=True), Executor(store=memory)
    decision = await stamped_yes(executor, till, call_id="c")
    ctx = in_run(**({"call_id": "c", "run_id": "run_1", "approval": decision} | known))
    with pytest.raises(ApprovalDenied):
        await executor.run_spec(till.spec, args, ctx)
    assert till.ran == []


async def test_a12_a_changed_tool_needs_a_new_answer(memory: Any) -> None:
    """A12: Version, schema and policy belong to what was approved."""
    till, executor = Till(confirm=True), Executor(store=memory)
    decision = await stamped_yes(executor, till, call_id="c")
    changed = till.spec.replace(version="2")
    with pytest.raises(ApprovalDenied):
        await executor.run_spec(changed, ARGS, in_run(call_id="c", approval=decision))
    assert till.ran == []


FOREIGN = [True, "approved", 1, {"verdict": "approved"}, object(), ApprovalToken()]


@pytest.mark.parametrize("thing", FOREIGN, ids=lambda thing: type(thing).__name__)
async def test_a_foreign_object_is_ignored(memory: Any, thing: Any) -> None:
    """The port is asked, as if nothing had been there."""
    till, port = Till(confirm=True), FakeApproval(YES)
    ctx = in_run(approval=thing, bound_by="demo")
    await Executor(store=memory, approval=port).run_spec(till.spec, ARGS, ctx)
    assert len(port.requests) == 1


async def test_a1_a_handmade_decision_does_not_count(memory: Any) -> None:
    """A1: Only an integration's `bind_context` can put one there."""
    till = Till(confirm=True)
    with pytest.raises(ApprovalDenied):
        await Executor(store=memory).run_spec(till.spec, ARGS, in_run(approval=YES))
    await Executor(store=memory).run_spec(till.spec, ARGS, in_run(approval=YES, bound_by="demo"))
    assert len(till.ran) == 1


async def test_what_bind_context_put_there_may_deny_or_wait(memory: Any) -> None:
    """Denied and pending come out as their errors; the port is not asked."""
    till, port = Till(confirm=True), FakeApproval(YES)
    executor = Executor(store=memory, approval=port)
    with pytest.raises(ApprovalDenied, match="not today"):
        await executor.run_spec(till.spec, ARGS, in_run(approval=NO, bound_by="demo"))
    pending = ApprovalDecision.pending("apr_x")
    with pytest.raises(ApprovalPending, match="apr_x"):
        await executor.run_spec(till.spec, ARGS, in_run(approval=pending, bound_by="demo"))
    assert till.ran == [] and port.requests == []


async def test_what_bind_context_put_there_holds_for_a_tool_that_asks_nobody(memory: Any) -> None:
    """A framework's own no, or its edits, are heeded; a hand-made decision is not."""
    till, executor = Till(), Executor(store=memory)
    with pytest.raises(ApprovalDenied, match="not today"):
        await executor.run_spec(till.spec, ARGS, in_run(approval=NO, bound_by="demo"))
    edit = ApprovalDecision.approve(reviewer="ann", arguments={"order": "A1", "amount": 2})
    await executor.run_spec(till.spec, ARGS, in_run(approval=edit, bound_by="demo"))
    await executor.run_spec(till.spec, ARGS, in_run(approval=NO))
    assert till.ran == [("A1", 2), ("A1", 5)]


async def test_a_decision_loses_its_stamp_on_the_way_out(memory: Any) -> None:
    """It cannot be pickled; a copy is the same stamp, used once."""
    till, executor = Till(confirm=True), Executor(store=memory)
    decision = await stamped_yes(executor, till, call_id="c")
    with pytest.raises(TypeError, match="never serialised"):
        pickle.dumps(decision)
    await executor.run_spec(till.spec, ARGS, in_run(call_id="c", approval=copy.deepcopy(decision)))
    with pytest.raises(ApprovalDenied):
        await executor.run_spec(till.spec, ARGS, in_run(call_id="c", approval=decision))


async def test_a_stamped_edit_cannot_be_exchanged(memory: Any) -> None:
    """The stamp is for the answer as it was given, edits and all."""
    import dataclasses

    till, executor = Till(confirm=True), Executor(store=memory)
    decision = await stamped_yes(executor, till, call_id="c")
    forged = dataclasses.replace(decision, arguments={"order": "A1", "amount": 999})
    with pytest.raises(ApprovalDenied):
        await executor.run_spec(till.spec, ARGS, in_run(call_id="c", approval=forged))
    assert till.ran == []


# -- shared questions ------------------------------------------------------------------------


class Waiting:
    """A port that answers when told."""

    def __init__(self, *answers: ApprovalDecision) -> None:
        self.answers = list(answers)
        self.gate = asyncio.Event()
        self.asked = 0

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        """The next answer."""
        self.asked += 1
        await self.gate.wait()
        return self.answers.pop(0)


async def test_concurrent_requests_of_one_binding_share_a_question(memory: Any) -> None:
    """A no answers all of them."""
    till, port = Till(confirm=True), Waiting(NO)
    executor = Executor(store=memory, approval=port)
    both = [
        asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run(call_id="c")))
        for _ in range(3)
    ]
    await turns()
    port.gate.set()
    found = await asyncio.gather(*both, return_exceptions=True)
    assert port.asked == 1 and all(isinstance(one, ApprovalDenied) for one in found)


async def test_a4_a_shared_yes_lets_one_call_run(memory: Any) -> None:
    """A4: The others ask for themselves: one yes, one run."""
    till, port = Till(confirm=True), Waiting(YES, NO)
    executor = Executor(store=memory, approval=port)
    both = [
        asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run(call_id="c")))
        for _ in range(2)
    ]
    await turns()
    port.gate.set()
    await asyncio.gather(*both, return_exceptions=True)
    assert port.asked == 2 and len(till.ran) == 1


async def test_a_cancelled_asker_leaves_the_question_to_the_others(memory: Any) -> None:
    """The first caller goes, the second gets the answer."""
    till, port = Till(confirm=True), Waiting(YES)
    executor = Executor(store=memory, approval=port)
    first, second = (
        asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run(call_id="c")))
        for _ in range(2)
    )
    await turns()
    first.cancel()
    await turns()
    port.gate.set()
    assert await second == "charged" and port.asked == 1


# -- edits -----------------------------------------------------------------------------------


def edited(**changes: Any) -> FakeApproval:
    """A port that approves with these changes."""
    return FakeApproval(
        lambda request: ApprovalDecision.approve(
            reviewer="ann", arguments={**request.arguments, **changes}
        )
    )


async def test_edits_are_what_runs(memory: Any) -> None:
    """And the record keeps both versions."""
    till = Till(confirm=True)
    await Executor(store=memory, approval=edited(amount=2)).run_spec(till.spec, ARGS, in_run())
    assert till.ran == [("A1", 2)]
    intent = next(e for e in await ledger.entries(memory, "run_1") if e.kind == "intent")
    approval = intent.facts["approval"]
    assert approval["digest"] != approval["asked"]


async def test_a13_edits_are_validated(memory: Any) -> None:
    """A13: What the schema refuses does not run."""
    till = Till(confirm=True)
    with pytest.raises(ToolArgsInvalid, match="amount"):
        await Executor(store=memory, approval=edited(amount="2")).run_spec(till.spec, ARGS)
    assert till.ran == []


async def test_a13_edits_are_guarded(memory: Any) -> None:
    """A13: A guard that let the call pass may stop its edited form."""

    class Cap:
        def before(self, call: Any) -> None:
            if call.arguments["amount"] > 100:
                raise GuardrailBlocked("too much")

    till = Till(confirm=True)
    executor = Executor(store=memory, approval=edited(amount=101), hooks=[Cap()])
    with pytest.raises(GuardrailBlocked, match="too much"):
        await executor.run_spec(till.spec, ARGS)
    assert till.ran == []


async def test_edits_cost_what_they_cost(memory: Any) -> None:
    """The cost is that of the call that runs."""
    till = Till(confirm=True, cost=lambda args: args["amount"])
    await Executor(store=memory, approval=edited(amount=70)).run_spec(till.spec, ARGS, in_run())
    assert (await rows(memory))[0]["cost"] == 70


async def test_edits_have_their_own_once_key(memory: Any) -> None:
    """An edit into a call that was made already gets that call's outcome."""
    till = Till(lambda: len(till.ran), confirm=True, once_key=lambda args: args["order"])
    executor = Executor(store=memory, approval=FakeApproval(YES))
    await executor.run_spec(till.spec, {"order": "B2", "amount": 1}, in_run("a"))
    executor.approval = edited(order="B2")
    assert await executor.run_spec(till.spec, ARGS, in_run("b")) == 1
    assert till.ran == [("B2", 1)]


async def test_edits_may_leave_a_secret_alone(memory: Any) -> None:
    """A reviewer who sees `***` can change the rest."""
    ran: list[tuple[str, int]] = []

    async def pay(pin: Annotated[str, Secret()], amount: int) -> None:
        """Pays."""
        ran.append((pin, amount))

    spec = ToolSpec.from_function(pay, confirm=True)
    args = {"pin": "1234", "amount": 5}
    await Executor(store=memory, approval=edited(amount=2)).run_spec(spec, args)
    assert ran == [("1234", 2)]


async def test_edits_that_cannot_be_applied_deny(memory: Any) -> None:
    """A framework that runs its own arguments must not run the unedited ones."""
    executor = Executor(store=memory)
    gate, till = Gate(executor, edited(amount=2)), Till(confirm=True)
    with pytest.raises(ApprovalDenied, match="cannot be applied"):
        await gate.ask(till.spec, ARGS, in_run(call_id="c"))


async def test_the_request_says_whether_edits_are_possible(memory: Any) -> None:
    """A reviewer is not offered what cannot be done."""
    port = FakeApproval(YES)
    gate, till = Gate(Executor(store=memory), port), Till(confirm=True)
    for number, allowed in enumerate((True, False)):
        await gate.ask(till.spec, ARGS, in_run(call_id=f"c{number}"), edits_allowed=allowed)
    assert [request.edits_allowed for request in port.requests] == [True, False]


# -- gates and tokens ------------------------------------------------------------------------


async def test_a_gates_token_lets_its_call_run_once(memory: Any) -> None:
    """One question, one run; the second use asks the executor's own port."""
    port, till = FakeApproval(YES), Till(confirm=True)
    executor = Executor(store=memory, approval=FakeApproval(NO))
    grant = await Gate(executor, port).ask(till.spec, ARGS, in_run(call_id="c"))
    assert grant.needed and grant.decision is not None
    await executor.run_spec(till.spec, ARGS, in_run(call_id="c", approval=grant.token))
    with pytest.raises(ApprovalDenied):
        await executor.run_spec(till.spec, ARGS, in_run(call_id="c", approval=grant.token))
    assert len(till.ran) == len(port.requests) == 1


@pytest.mark.parametrize(("known", "args"), [o[1:] for o in OTHERS], ids=[o[0] for o in OTHERS])
async def test_a_token_is_good_for_no_other_call(
    memory: Any, known: dict[str, Any], args: dict[str, Any]
) -> None:
    """It is spent, and the port is asked."""
    port, till = FakeApproval(YES), Till(confirm=True)
    executor = Executor(store=memory)
    grant = await Gate(executor, port).ask(till.spec, ARGS, in_run(call_id="c"))
    ctx = in_run(**({"call_id": "c", "run_id": "run_1", "approval": grant.token} | known))
    with pytest.raises(ApprovalDenied):
        await executor.run_spec(till.spec, args, ctx)
    assert till.ran == [] and len(executor.tokens) == 0


async def test_a_token_of_another_executor_is_ignored(memory: Any) -> None:
    """Each executor knows its own."""
    till = Till(confirm=True)
    grant = await Gate(Executor(store=memory), FakeApproval(YES)).ask(
        till.spec, ARGS, in_run(call_id="c")
    )
    with pytest.raises(ApprovalDenied):
        await Executor(store=memory).run_spec(
            till.spec, ARGS, in_run(call_id="c", approval=grant.token)
        )
    assert till.ran == []


async def test_a_token_runs_what_was_asked_about(memory: Any) -> None:
    """Arguments changed in place after the question do not run."""
    till = Till(confirm=True)
    executor, args = Executor(store=memory), dict(ARGS)
    grant = await Gate(executor, FakeApproval(YES)).ask(till.spec, args, in_run(call_id="c"))
    args["amount"] = 999
    with pytest.raises(ApprovalDenied):
        await executor.run_spec(till.spec, args, in_run(call_id="c", approval=grant.token))
    assert till.ran == []


async def test_hooks_and_rules_run_once_for_a_gated_call(memory: Any) -> None:
    """The gate prepares, the run uses what it prepared."""
    hook, calls = RecordingHook(), []
    till = Till(confirm=lambda args, ctx: calls.append(1) is None)
    executor = Executor(store=memory, hooks=[hook])
    grant = await Gate(executor, FakeApproval(YES)).ask(till.spec, ARGS, in_run(call_id="c"))
    await executor.run_spec(till.spec, ARGS, in_run(call_id="c", approval=grant.token))
    assert [stage for stage, *_ in hook.seen] == ["before", "after"] and calls == [1]


async def test_both_versions_of_an_edit_at_a_gate_are_recorded(memory: Any) -> None:
    """What was asked and what runs."""
    till, executor = Till(confirm=True), Executor(store=memory)
    grant = await Gate(executor, edited(amount=2)).ask(
        till.spec, ARGS, in_run(call_id="c"), edits_allowed=True
    )
    await executor.run_spec(till.spec, ARGS, in_run(call_id="c", approval=grant.token))
    intent = next(e for e in await ledger.entries(memory, "run_1") if e.kind == "intent")
    assert intent.facts["approval"]["digest"] != intent.facts["approval"]["asked"]
    assert till.ran == [("A1", 2)]


async def test_a_gate_asks_nobody_about_a_call_that_need_not_be(memory: Any) -> None:
    """Its grant says so."""
    grant = await Gate(Executor(store=memory), FakeApproval()).ask(
        Till().spec, ARGS, in_run(call_id="c")
    )
    assert not grant.needed and grant.decision is None


async def test_a_gate_asks_nobody_about_a_recorded_call(memory: Any) -> None:
    """A replay is free."""
    port, till = FakeApproval(YES), Till(confirm=True)
    executor = Executor(store=memory, approval=port)
    known: Any = {"call_id": "c", "reexecutes": True}
    await executor.run_spec(till.spec, ARGS, in_run(**known))
    grant = await Gate(executor, port).ask(till.spec, ARGS, in_run(**known))
    assert not grant.needed and len(port.requests) == 1


async def test_a_gate_blocks_before_it_asks(memory: Any) -> None:
    """Guards and validation come first."""
    port = FakeApproval(YES)
    executor = Executor(store=memory, hooks=[RaisingHook("before", ValueError())])
    with pytest.raises(GuardrailBlocked):
        await Gate(executor, port).ask(Till(confirm=True).spec, ARGS, in_run())
    with pytest.raises(ToolArgsInvalid):
        await Gate(executor, port).ask(Till(confirm=True).spec, {}, in_run())
    assert port.requests == []


async def test_a_dropped_grant_is_forgotten(memory: Any) -> None:
    """Nothing is left in the book."""
    executor, till = Executor(store=memory), Till(confirm=True)
    grant = await Gate(executor, FakeApproval(YES)).ask(till.spec, ARGS, in_run(call_id="c"))
    grant.drop()
    assert len(executor.tokens) == 0 and executor.runtime.in_flight._claimed == {}
    with pytest.raises(ApprovalDenied):
        await executor.run_spec(till.spec, ARGS, in_run(call_id="c", approval=grant.token))


def test_a_token_is_never_serialised() -> None:
    """Neither pickled nor copied into another."""
    token = ApprovalToken()
    with pytest.raises(TypeError, match="never serialised"):
        pickle.dumps(token)
    with pytest.raises(TypeError):
        json.dumps(token)
    assert copy.deepcopy(token) is token


async def test_a_token_expires(memory: Any) -> None:
    """After its time it is nothing, and its call's identity is free."""
    executor, till = Executor(store=memory), Till(confirm=True)
    executor.tokens = IssuedTokens(seconds=-1)
    grant = await Gate(executor, FakeApproval(YES)).ask(till.spec, ARGS, in_run(call_id="c"))
    with pytest.raises(ApprovalDenied):
        await executor.run_spec(till.spec, ARGS, in_run(call_id="c", approval=grant.token))
    assert till.ran == [] and executor.runtime.in_flight._claimed == {}


async def test_the_token_book_is_bounded(memory: Any) -> None:
    """The oldest goes first."""
    executor, till = Executor(store=memory), Till(confirm=True)
    executor.tokens = IssuedTokens(size=3)
    gate = Gate(executor, FakeApproval(YES))
    grants = [await gate.ask(till.spec, ARGS, in_run(call_id=f"c{n}")) for n in range(5)]
    assert len(executor.tokens) == 3
    assert executor.tokens.take(grants[0].token) is None
    assert executor.tokens.take(grants[4].token) is not None


class Forwards:
    """A wrapper that forwards `run_spec` alone."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    async def run_spec(self, spec: Any, args: Any, ctx: Any = None, *, call_id: Any = None) -> Any:
        """Forward."""
        return await self.executor.run_spec(spec, args, ctx, call_id=call_id)


class ForwardsAll(Forwards):
    """A wrapper that forwards what a gate needs, too."""

    async def prepare(self, spec: Any, args: Any, ctx: Any = None, *, call_id: Any = None) -> Any:
        """Forward."""
        return await self.executor.prepare(spec, args, ctx, call_id=call_id)

    async def issue(self, prepared: Any, port: Any, *, edits_allowed: bool = False) -> Any:
        """Forward."""
        return await self.executor.issue(prepared, port, edits_allowed=edits_allowed)


async def test_i21_a_gate_refuses_a_runner_that_prepares_nothing(memory: Any) -> None:
    """I21: A person would be shown other arguments than those that run."""
    with pytest.raises(TypeError, match="run_spec, prepare and issue, and Forwards lacks one"):
        Gate(Forwards(Executor(store=memory)), FakeApproval(YES))  # type: ignore[arg-type]


async def test_i21_a_gate_over_a_whole_wrapper_shows_what_runs(memory: Any) -> None:
    """I21: What the hooks made of the arguments is shown, and runs."""

    class Fixed:
        def before(self, call: Any) -> Any:
            return call.arguments | {"order": "B2"}

    till, port = Till(confirm=True), FakeApproval(YES)
    runner = ForwardsAll(Executor(store=memory, hooks=[Fixed()]))
    grant = await Gate(runner, port).ask(till.spec, ARGS, in_run(call_id="c"))
    await runner.run_spec(till.spec, ARGS, in_run(call_id="c", approval=grant.token))
    assert [request.arguments["order"] for request in port.requests] == ["B2"]
    assert till.ran == [("B2", 5)]


async def test_a_call_is_issued_by_the_executor_that_prepared_it(memory: Any) -> None:
    """Another one's call has other hooks behind it."""
    prepared = await Executor(store=memory).prepare(Till(confirm=True).spec, ARGS, in_run())
    with pytest.raises(TypeError, match="`prepare` of this same executor"):
        await Executor(store=memory).issue(prepared, FakeApproval(YES))


# -- what the person sees --------------------------------------------------------------------


async def shown(memory: Any, spec: ToolSpec, args: dict[str, Any]) -> ApprovalRequest:
    """The request about this call."""
    port = FakeApproval(NO)
    with pytest.raises(ApprovalDenied):
        await Executor(store=memory, approval=port).run_spec(spec, args)
    return port.requests[0]


def _text_tool() -> ToolSpec:
    async def send(text: str) -> None:
        """Sends."""

    return ToolSpec.from_function(send, confirm=True)


async def test_a20_long_values_are_shown_whole(memory: Any) -> None:
    """A20: To the last character."""
    text = "a" * 100_000 + "; rm -rf /"
    request = await shown(memory, _text_tool(), {"text": text})
    assert request.arguments == {"text": text} and text in request.shown


HIDDEN = {
    "right-to-left override": "\u202e",
    "isolate": "\u2066",
    "zero-width space": "\u200b",
    "zero-width joiner": "\u200d",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "escape": "\x1b",
    "null": "\x00",
    "delete": "\x7f",
    "line separator": "\u2028",
    "no-break space": "\u00a0",
    "tag character": "\U000e0041",
    "hangul filler": "\u3164",
    "half-width filler": "\uffa0",
    "jamo filler": "\u115f",
    "grapheme joiner": "\u034f",
    "variation selector": "\ufe0f",
    "variation selector 17": "\U000e0100",
    "mongolian selector": "\u180b",
    "khmer vowel": "\u17b4",
    "braille blank": "\u2800",
    "private use": "\ue000",
}


@pytest.mark.parametrize("char", HIDDEN.values(), ids=HIDDEN.keys())
async def test_a19_invisible_characters_are_visible(memory: Any, char: str) -> None:
    """A19: None of them stands in what a person reads."""
    request = await shown(memory, _text_tool(), {"text": f"pay{char}me"})
    assert char not in request.shown and f"{ord(char):04x}" in request.shown.lower()
    assert request.arguments["text"] == f"pay{char}me"


def test_what_can_be_read_is_left_alone() -> None:
    """Letters, accents, emoji and line breaks stay."""
    text = "Grüße, 東京 שלום\n😀 e\u0301"
    assert visible(text) == text


def test_an_escape_cannot_be_faked() -> None:
    """Text that looks like an escape differs from one once it is JSON."""
    real, fake = (visible(json.dumps(t, ensure_ascii=False)) for t in ("\u202e", "\\u202e"))
    assert real != fake


async def test_a19_defaults_are_shown(memory: Any) -> None:
    """A19: The person sees what runs, not only what the model wrote."""

    async def wipe(path: str = "/") -> None:
        """Wipes."""

    request = await shown(memory, ToolSpec.from_function(wipe, confirm=True), {})
    assert request.arguments == {"path": "/"} and '"/"' in request.shown


async def test_a19_what_hooks_made_of_it_is_shown(memory: Any) -> None:
    """A19: And nothing runs but that."""

    class Rewrite:
        def before(self, call: Any) -> Any:
            return {**call.arguments, "amount": 50}

    till, port = Till(confirm=True), FakeApproval(YES)
    await Executor(store=memory, approval=port, hooks=[Rewrite()]).run_spec(till.spec, ARGS)
    assert port.requests[0].arguments["amount"] == 50 and till.ran == [("A1", 50)]


async def test_a_reviewer_gets_a_copy(memory: Any) -> None:
    """Changing the request changes nothing."""

    def sly(request: ApprovalRequest) -> bool:
        request.arguments["amount"] = 999
        return True

    class Port:
        async def request(self, request: ApprovalRequest) -> ApprovalDecision:
            request.arguments["amount"] = 999
            return YES

    for port in (CallbackApproval(sly), Port()):
        till = Till(confirm=True)
        await Executor(store=memory, approval=port).run_spec(till.spec, ARGS)
        assert till.ran == [("A1", 5)]


async def test_a3_arguments_changed_while_the_person_thinks_do_not_run(memory: Any) -> None:
    """A3: Neither at the top nor deep down, nor for a foreign tool."""
    ran: list[Any] = []

    async def buy(items: list[Any]) -> None:
        """Buys."""
        ran.append(copy.deepcopy(items))

    schema = {"type": "object", "properties": {"items": {"type": "array"}}}
    for spec in (
        ToolSpec.from_function(buy, confirm=True),
        ToolSpec.from_json_schema("buy", "Buys.", schema, buy, confirm=True),
    ):
        port, args = Waiting(YES), {"items": [{"id": 1}]}
        task = asyncio.create_task(Executor(store=memory, approval=port).run_spec(spec, args))
        await until(lambda port=port: port.asked == 1)  # type: ignore[misc]
        args["items"][0]["id"] = 666
        port.gate.set()
        await task
    assert ran == [[{"id": 1}], [{"id": 1}]]


async def test_arguments_that_read_back_differently_are_refused(memory: Any) -> None:
    """An answer to them would bind nothing."""

    async def roll(seed: Annotated[int, AfterValidator(lambda v: v + next(_count))]) -> None:
        """Rolls."""

    spec = ToolSpec.from_function(roll, confirm=True)
    with pytest.raises(ToolArgsInvalid, match="read back differently"):
        await Executor(store=memory, approval=FakeApproval(YES)).run_spec(spec, {"seed": 1})


async def test_a_default_factory_does_not_drift(memory: Any) -> None:
    """What the person saw is what runs."""
    ran: list[int] = []

    async def roll(seed: Annotated[int, Field(default_factory=lambda: next(_count))]) -> None:
        """Rolls."""
        ran.append(seed)

    port = FakeApproval(YES)
    spec = ToolSpec.from_function(roll, confirm=True)
    await Executor(store=memory, approval=port).run_spec(spec, {})
    assert ran == [port.requests[0].arguments["seed"]]


async def test_the_request_names_principal_run_and_taint(memory: Any) -> None:
    """A reviewer knows for whom, where and after what."""
    page, till = Till(effects="read", trust="untrusted"), Till(confirm=True)
    port = FakeApproval(YES)
    executor = Executor(store=memory, approval=port)
    await executor.run_spec(page.spec, ARGS, in_run(call_id="p"))
    await executor.run_spec(till.spec, ARGS, in_run(principal="bob", call_id="c"))
    (request,) = port.requests
    assert (request.principal, request.run_id, request.call_id) == ("bob", "run_1", "c")
    assert request.taint == ("charge",)


async def test_a9_an_earlier_failure_is_no_approval(memory: Any) -> None:
    """A9: A second try of an approved call asks again."""
    till, port = Till(ValueError(), confirm=True), FakeApproval(YES)
    executor = Executor(store=memory, approval=port)
    with pytest.raises(ToolFailed):
        await executor.run_spec(till.spec, ARGS, in_run())
    till.then = "charged"
    await executor.run_spec(till.spec, ARGS, in_run())
    assert len(port.requests) == 2
