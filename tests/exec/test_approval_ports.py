"""The ports: a callback, the terminal, rules, and several people."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from agent_adapter.core.errors import (
    AgentAdapterError,
    ApprovalDenied,
    ApprovalPending,
    ToolDefinitionError,
)
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest
from agent_adapter.exec.approval.inbox import Inbox
from agent_adapter.exec.approval.ports.callback import CallbackApproval
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.exec.approval.ports.policy import PolicyApproval, PolicyRule
from agent_adapter.exec.approval.ports.quorum import QuorumApproval
from agent_adapter.exec.approval.ports.terminal import TerminalApproval
from agent_adapter.exec.executor import Executor
from tests.exec.shop import ARGS, NO, YES, Till, in_run
from tests.fakes.approval import FakeApproval

pytestmark = pytest.mark.anyio


async def charged(port: Any, store: Any, **known: Any) -> Till:
    """A till after one call under that port; its denial comes out."""
    till = Till(confirm=True)
    await Executor(approval=port, store=store).run_spec(till.spec, ARGS, in_run(**known))
    return till


async def asked(**changes: Any) -> ApprovalRequest:
    """The request of a call, with these changes."""
    port = FakeApproval(NO)
    with pytest.raises(ApprovalDenied):
        await Executor(approval=port).run_spec(Till(confirm=True).spec, ARGS, in_run())
    return dataclasses.replace(port.requests[0], **changes)


# -- callback --------------------------------------------------------------------------------


async def _async_yes(request: ApprovalRequest) -> bool:
    return True


@pytest.mark.parametrize(
    "reviewer", [lambda r: True, _async_yes, lambda r: YES, lambda r: _async_yes(r)]
)
async def test_a_callback_approves(memory: Any, reviewer: Any) -> None:
    """With a bool or a decision, sync or async."""
    assert len((await charged(CallbackApproval(reviewer), memory)).ran) == 1


@pytest.mark.parametrize("answer", [False, None, 1, "yes", "approved", {"approved": True}, NO, []])
async def test_a17_anything_else_from_a_callback_denies(memory: Any, answer: Any) -> None:
    """A17: Only `True` and an approving decision are a yes."""
    with pytest.raises(ApprovalDenied):
        await charged(CallbackApproval(lambda r: answer), memory)


async def test_a17_a_callback_that_raises_denies(memory: Any) -> None:
    """A17: Its text stays out of the error."""

    def crash(request: ApprovalRequest) -> bool:
        raise ValueError("token=abc")

    with pytest.raises(ApprovalDenied, match=r"reviewer failed \(ValueError\)") as caught:
        await charged(CallbackApproval(crash), memory)
    assert "abc" not in str(caught.value)


async def test_a17_a_callback_that_takes_too_long_denies(memory: Any) -> None:
    """A17: A time-out is a no."""

    async def slow(request: ApprovalRequest) -> bool:
        await asyncio.Event().wait()
        return True

    with pytest.raises(ApprovalDenied, match="in time"):
        await charged(CallbackApproval(slow, timeout=0.01), memory)


async def test_a_sync_callback_does_not_hold_up_the_loop(memory: Any) -> None:
    """It runs in a worker thread."""
    import threading

    names: list[str] = []

    def reviewer(request: ApprovalRequest) -> bool:
        names.append(threading.current_thread().name)
        return True

    await charged(CallbackApproval(reviewer), memory)
    assert names[0].startswith("agent-adapter")


# -- terminal --------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "runs"), [("y", True), (" YES ", True), ("yep", False)])
async def test_the_terminal_takes_yes_and_no(memory: Any, answer: str, runs: bool) -> None:
    """Anything but `y` and `yes` is a no; so is an empty line."""
    shown: list[str] = []
    port = TerminalApproval(reviewer="ann", ask=lambda _: answer, show=shown.append)
    if runs:
        await charged(port, memory)
    else:
        with pytest.raises(ApprovalDenied, match="denied at the terminal"):
            await charged(port, memory)
    assert "charge" in shown[0] and '"A1"' in shown[0]


async def test_without_a_terminal_nobody_says_yes(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe is not a person."""
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    with pytest.raises(ApprovalDenied, match="no terminal"):
        await charged(TerminalApproval(), memory)


async def test_the_end_of_input_is_a_no(memory: Any) -> None:
    """So is an interrupted read."""

    def gone(prompt: str) -> str:
        raise EOFError

    with pytest.raises(ApprovalDenied):
        await charged(TerminalApproval(ask=gone, show=lambda _: None), memory)


async def test_a19_the_terminal_hides_nothing_in_names(memory: Any) -> None:
    """A19: A principal with control characters cannot repaint the screen."""
    shown: list[str] = []
    port = TerminalApproval(reviewer="ann", ask=lambda _: "n", show=shown.append)
    with pytest.raises(ApprovalDenied):
        await charged(port, memory, principal="bob\x1b[2J\u202e")
    assert "\x1b" not in shown[0] and "\u202e" not in shown[0]


# -- rules -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        ({"then": "approve"}, "approved"),
        ({"then": "deny"}, "denied"),
        ({"then": "approve", "tool": "cha*"}, "approved"),
        ({"then": "approve", "tool": "CHARGE"}, "denied"),
        ({"then": "approve", "effects": "read"}, "denied"),
        ({"then": "approve", "principal": "b?b"}, "denied"),
        ({"then": "approve", "tag": "money"}, "denied"),
        ({"then": "approve", "tainted": False}, "approved"),
        ({"then": "approve", "tainted": True}, "denied"),
        ({"then": "approve", "arguments": {"amount": 5}}, "approved"),
        ({"then": "approve", "arguments": {"amount": 5.0}}, "denied"),
        ({"then": "approve", "arguments": {"amount": True}}, "denied"),
        ({"then": "approve", "arguments": {"other": None}}, "denied"),
        ({"then": "ask"}, "denied"),
    ],
)
async def test_a_rule_decides_where_all_its_terms_fit(rule: Any, verdict: str) -> None:
    """Without `otherwise` whatever no rule approves is denied."""
    decision = await PolicyApproval([rule]).request(await asked())
    assert decision.verdict == verdict


async def test_the_first_rule_that_fits_decides() -> None:
    """Order is priority; what nobody decides goes to the port behind."""
    behind = FakeApproval(YES)
    port = PolicyApproval(
        [
            PolicyRule(then="deny", arguments={"amount": 666}),
            PolicyRule(then="ask", arguments={"amount": 5}),
            PolicyRule(then="approve"),
        ],
        otherwise=behind,
    )
    request = await asked()
    assert (await port.request(request)).reviewer == "ann" and len(behind.requests) == 1
    other = dataclasses.replace(request, arguments={"amount": 1})
    assert (await port.request(other)).reviewer == "policy"


@pytest.mark.parametrize(
    "rule", [{"then": "yes"}, {}, {"then": "approve", "tol": "x"}, {"then": None}]
)
async def test_a_bad_rule_is_refused_when_it_is_written(rule: Any) -> None:
    """The error lists the terms."""
    with pytest.raises(ToolDefinitionError, match=r"approve, deny or ask.*tainted"):
        PolicyApproval([rule])


async def test_a_bad_rule_object_is_refused_too() -> None:
    """A misspelt verdict must not fall through to another rule."""
    with pytest.raises(ToolDefinitionError, match="approve, deny or ask"):
        PolicyApproval([PolicyRule(then="Deny")])  # type: ignore[arg-type]  # the point of it


async def test_a21_a_rule_approves_by_name_only_what_it_was_asked_about(memory: Any) -> None:
    """A21: Its yes is bound to the fingerprint of the call, not to the name."""
    request = await asked(call_id="c")
    decision = await PolicyApproval([{"then": "approve"}]).request(request)
    till = Till(confirm=True)
    swapped = till.spec.replace(version="evil")
    with pytest.raises(ApprovalDenied):
        await Executor(store=memory).run_spec(swapped, ARGS, in_run(call_id="c", approval=decision))
    assert till.ran == []


# -- several people --------------------------------------------------------------------------


def named(name: str | None, yes: bool = True, **edits: Any) -> Any:
    """A reviewer of that name."""
    arguments = {**ARGS, **edits} if edits else None
    if yes:
        return lambda r: ApprovalDecision.approve(reviewer=name, arguments=arguments)
    return lambda r: ApprovalDecision.deny(reviewer=name, reason="no")


@pytest.mark.parametrize(
    ("reviewers", "runs"),
    [
        ([named("ann"), named("eve")], True),
        ([named("ann"), named("eve"), named("kim")], True),
        ([named("ann"), named("ann")], False),
        ([named("ann"), named("bob")], False),
        ([named("ann"), named(None)], False),
        ([named("ann"), lambda r: True], False),
        ([named("ann"), named("")], False),
        ([named("ann"), named("eve", yes=False)], False),
        ([named("ann"), named("eve"), named("kim", yes=False)], False),
        ([named("ann"), named("eve", amount=6)], False),
        ([named("ann")], False),
        ([], False),
    ],
)
async def test_a17_a_quorum_needs_different_people(memory: Any, reviewers: Any, runs: bool) -> None:
    """A17: None of them the principal `bob`; any no, any edit and an empty list deny."""
    port = QuorumApproval(2, reviewers=reviewers)
    if runs:
        await charged(port, memory, principal="bob")
        return
    with pytest.raises(ApprovalDenied):
        await charged(port, memory, principal="bob")


async def test_a_quorum_needs_to_know_whose_run_it_is(store: Any) -> None:
    """Without a principal it denies, in both forms."""
    for port in (QuorumApproval(1, reviewers=[named("ann")]), QuorumApproval(1, store)):
        with pytest.raises(ApprovalDenied, match="whose run"):
            await charged(port, store)


@pytest.mark.parametrize("n", [0, -1, True, 1.5, "2"])
def test_a_quorum_counts_people(n: Any) -> None:
    """A number that is none is refused."""
    with pytest.raises(ToolDefinitionError, match="whole number from 1"):
        QuorumApproval(n, reviewers=[])


def test_a_quorum_has_one_form() -> None:
    """A store or reviewers."""
    with pytest.raises(ToolDefinitionError, match="one of them"):
        QuorumApproval(2)


async def test_votes_in_a_store_add_up(store: Any) -> None:
    """Two different people, one after the other; a second vote of one counts once."""
    till, inbox = Till(confirm=True), Inbox(store)
    executor = Executor(approval=QuorumApproval(2, store), store=store)
    with pytest.raises(ApprovalPending) as caught:
        await executor.run_spec(till.spec, ARGS, in_run(principal="bob"))
    id = caught.value.id
    for _ in range(2):
        assert (await inbox.approve(id, reviewer="ann")).state == "pending"
    assert (await inbox.approve(id, reviewer="eve")).state == "approved"
    await executor.run_spec(till.spec, ARGS, in_run(principal="bob"))
    assert (await inbox.get(id)).reviewer == "ann, eve" and len(till.ran) == 1


async def test_a_quorum_waits_as_long_as_one_person(store: Any, clock: Any) -> None:
    """72 hours to decide, and 24 to use, as where one person decides."""
    inbox = Inbox(store)
    executor = Executor(approval=QuorumApproval(2, store), store=store)
    with pytest.raises(ApprovalPending) as caught:
        await executor.run_spec(Till(confirm=True).spec, ARGS, in_run(principal="bob"))
    assert caught.value.expires_at == clock.now + 72 * 3600
    await inbox.approve(caught.value.id, reviewer="ann")
    approved = await inbox.approve(caught.value.id, reviewer="eve")
    assert approved.use_by == clock.now + 24 * 3600


@pytest.mark.parametrize("n", [1, 2])
async def test_nobody_decides_about_their_own_run(store: Any, n: int) -> None:
    """However many are needed, and whether they say yes or no."""
    inbox, port = Inbox(store), QuorumApproval(n, store)
    with pytest.raises(ApprovalPending) as caught:
        await charged(port, store, principal="bob")
    for act in (inbox.approve, inbox.deny):
        with pytest.raises(AgentAdapterError, match="bob asked for this call"):
            await act(caught.value.id, reviewer="bob")
    assert (await inbox.get(caught.value.id)).state == "pending"


async def test_any_no_denies_a_quorum(store: Any) -> None:
    """A yes before it does not help."""
    inbox, port = Inbox(store), QuorumApproval(2, store)
    with pytest.raises(ApprovalPending) as caught:
        await charged(port, store, principal="bob")
    await inbox.approve(caught.value.id, reviewer="ann")
    assert (await inbox.deny(caught.value.id, reviewer="eve")).state == "denied"
    with pytest.raises(ApprovalDenied):
        await charged(port, store, principal="bob")


async def test_an_edit_voids_the_votes_before_it(store: Any) -> None:
    """They were for other arguments."""
    inbox, port = Inbox(store), QuorumApproval(2, store)
    with pytest.raises(ApprovalPending) as caught:
        await charged(port, store, principal="bob")
    id = caught.value.id
    await inbox.approve(id, reviewer="ann")
    edited = await inbox.approve(id, reviewer="eve", arguments={**ARGS, "amount": 1})
    assert edited.state == "pending"
    assert (await inbox.approve(id, reviewer="ann")).state == "approved"
    assert (await charged(port, store, principal="bob")).ran == [("A1", 1)]


# -- where a port's store is -----------------------------------------------------------------


async def test_an_executor_uses_its_ports_store(store: Any) -> None:
    """Also behind rules."""
    port = PolicyApproval([], otherwise=DeferredApproval(store))
    assert Executor(approval=port).store is store


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "2"},
        {"description": "Sends it to Mallory."},
        {"trust": "untrusted"},
        {"egress": True},
        {"effects": "idempotent"},
        {"json_text": True},
    ],
)
async def test_t11_a_rule_approves_no_tool_that_was_swapped(
    memory: Any, changes: dict[str, Any]
) -> None:
    """T11, A21: the name is the same; the schema, description, trust, effects or version is not."""
    behind = FakeApproval(NO)
    port = PolicyApproval([{"tool": "*", "then": "approve"}], otherwise=behind)
    executor = Executor(store=memory, approval=port)
    till = Till(confirm=True)
    await executor.run_spec(till.spec, ARGS, in_run("run_a", call_id="a"))
    swapped = till.spec.replace(**changes)
    if "json_text" in changes:
        swapped = ToolSpec.from_json_schema(
            till.spec.name, till.spec.description, {"properties": {"amount": {}}}, till.spec.fn
        ).replace(confirm=True)
    with pytest.raises(ApprovalDenied):
        await executor.run_spec(swapped, ARGS, in_run("run_b", call_id="b"))
    assert len(behind.requests) == 1 and len(till.ran) == 1
    await executor.run_spec(till.spec, ARGS, in_run("run_c", call_id="c"))


async def test_t11_fingerprints_in_a_rule_hold_over_restarts(memory: Any) -> None:
    """T11: a rule that names them approves those tools alone, from its first call on."""
    till = Till(confirm=True)
    known = till.spec.policy_fingerprint
    rule = {"then": "approve", "fingerprints": [known]}
    for spec, approved in ((till.spec.replace(version="2"), False), (till.spec, True)):
        executor = Executor(store=memory, approval=PolicyApproval([rule]))
        if approved:
            await executor.run_spec(spec, ARGS, in_run("run_b", call_id="b"))
        else:
            with pytest.raises(ApprovalDenied):
                await executor.run_spec(spec, ARGS, in_run("run_a", call_id="a"))
