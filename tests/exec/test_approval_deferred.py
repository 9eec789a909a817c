"""Approvals that wait in a store: two phases, expiry, caps, denials and resuming."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from pydantic import Field

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    AgentAdapterError,
    ApprovalDenied,
    ApprovalExpired,
    ApprovalPending,
    ToolArgsInvalid,
    ToolFailed,
    ToolInDoubt,
)
from agent_adapter.core.inject import Secret
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec import ledger
from agent_adapter.exec.approval.inbox import ApprovalRecord, Inbox
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.exec.executor import Executor
from agent_adapter.exec.gate import Gate
from tests.exec.shop import ARGS, Till, another_process, endings, in_run, is_whole, rows, until

pytestmark = pytest.mark.anyio


class Desk:
    """An executor with a deferred port, its inbox and a till that always asks."""

    def __init__(self, store: Any, then: Any = "charged", wait: float = 0, **policy: Any) -> None:
        self.store = store
        self.till = Till(then, **({"confirm": True} | policy))
        registry = ToolRegistry()
        registry.add(self.till.spec)
        self.executor = Executor(registry, approval=DeferredApproval(store, wait), store=store)
        self.inbox = Inbox(store)

    async def charge(self, run_id: str = "run_1", args: Any = ARGS, **known: Any) -> Any:
        """One call."""
        return await self.executor.run_spec(self.till.spec, args, in_run(run_id, **known))

    async def held(self, run_id: str = "run_1", args: Any = ARGS, **known: Any) -> str:
        """The id of the record under which the call waits."""
        with pytest.raises(ApprovalPending) as caught:
            await self.charge(run_id, args, **known)
        return caught.value.id

    async def approved(self, **edits: Any) -> str:
        """The id of an approved record."""
        id = await self.held()
        arguments = {**ARGS, **edits} if edits else None
        await self.inbox.approve(id, reviewer="ann", arguments=arguments)
        return id


# -- two phases ------------------------------------------------------------------------------


async def test_a_held_call_says_where_and_until_when(store: Any, clock: Any) -> None:
    """The record's id and its last moment."""
    desk = Desk(store)
    with pytest.raises(ApprovalPending, match="approval required: apr_") as caught:
        await desk.charge()
    assert caught.value.expires_at == clock.now + 72 * 3600 and desk.till.ran == []


async def test_a_held_call_is_asked_about_once(store: Any) -> None:
    """The same call again, under another native id, finds its record."""
    desk = Desk(store)
    assert await desk.held(call_id="c") == await desk.held(call_id="d")
    assert len(await desk.inbox.list()) == 1


async def test_an_approved_call_runs_once(store: Any) -> None:
    """The next one asks again."""
    desk = Desk(store)
    first = await desk.approved()
    assert await desk.charge() == "charged"
    assert await desk.held() != first
    assert len(desk.till.ran) == 1 and await is_whole(store)


async def test_an_approval_survives_the_process(sqlite: Any, clock: Any) -> None:
    """One asks and goes, another approves, a third runs it."""
    async with another_process(sqlite, clock) as first:
        id = await Desk(first).held()
    async with another_process(sqlite, clock) as second:
        await Inbox(second).approve(id, reviewer="ann")
    desk = Desk(sqlite)
    assert await desk.charge() == "charged" and len(desk.till.ran) == 1


async def test_the_call_may_wait_inside(sqlite: Any) -> None:
    """A decision within `wait` seconds ends in the same call."""
    desk = Desk(sqlite, wait=5)
    task = asyncio.create_task(desk.charge())
    while not (found := await desk.inbox.list()):
        await asyncio.sleep(0.001)
    await desk.inbox.approve(found[0].id, reviewer="ann")
    assert await task == "charged"


async def test_a_wait_that_ends_is_pending(store: Any) -> None:
    """As if it had not waited."""
    await Desk(store, wait=0.01).held()


async def test_the_record_shows_the_call(store: Any) -> None:
    """Whole, with who and where."""
    desk = Desk(store)
    record = await desk.inbox.get(await desk.held(principal="bob", thread_id="th", call_id="c"))
    assert record.arguments == ARGS and '"A1"' in record.shown
    assert (record.principal, record.thread_id, record.call_id) == ("bob", "th", "c")
    assert record.why == "this tool always asks" and record.state == "pending"


# -- binding ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "args"),
    [
        ({"principal": "eve"}, ARGS),
        ({"tenant": "theirs"}, ARGS),
        ({"run_id": "run_2"}, ARGS),
        ({}, {"order": "A1", "amount": 6}),
    ],
)
async def test_a2_a_record_is_for_no_other_call(store: Any, known: Any, args: Any) -> None:
    """A2: Another principal, tenant, run or argument has a record of its own."""
    desk = Desk(store)
    id = await desk.approved()
    assert await desk.held(**({"args": args} | known)) != id
    assert desk.till.ran == []


async def test_a12_a_tool_that_changed_needs_a_new_answer(store: Any) -> None:
    """A12: The old record is not taken by the new version."""
    desk = Desk(store)
    id = await desk.approved()
    desk.till.spec = desk.till.spec.replace(version="2")
    assert await desk.held() != id


async def test_a12_resume_refuses_a_tool_that_changed(store: Any) -> None:
    """A12: The person approved another tool."""
    desk = Desk(store)
    id = await desk.approved()
    registry = ToolRegistry()
    registry.add(desk.till.spec.replace(version="2"))
    desk.executor.registry = registry
    with pytest.raises(ApprovalDenied, match="has changed since"):
        await desk.executor.resume(id)
    assert desk.till.ran == []


async def test_a14_a_handmade_record_id_opens_nothing(store: Any) -> None:
    """A14: Even where `bind_context` put the decision there: the record must be this call's."""
    desk = Desk(store)
    id = await desk.approved()
    forged = ApprovalDecision.approve(reviewer="me", record_id=id)
    with pytest.raises(ApprovalDenied, match="another call"):
        await desk.charge("run_2", approval=forged, bound_by="demo")
    made_up = ApprovalDecision.approve(reviewer="me", record_id="apr_x")
    with pytest.raises(ApprovalDenied, match="no approval apr_x"):
        await desk.charge("run_2", approval=made_up, bound_by="demo")
    assert desk.till.ran == []


async def test_a15_a_foreign_tenants_record_is_not_found(store: Any) -> None:
    """A15: Neither to look at, nor to decide, nor to resume."""
    desk = Desk(store)
    id = await desk.held()
    theirs = Inbox(store, tenant="theirs")
    for act in (theirs.get(id), theirs.approve(id, reviewer="eve"), theirs.deny(id, reviewer="e")):
        with pytest.raises(AgentAdapterError, match=f"no approval {id}"):
            await act
    with pytest.raises(ApprovalDenied, match=f"no approval {id}"):
        await desk.executor.resume(id, tenant="theirs")
    assert await theirs.list() == []


async def test_values_that_drift_run_as_they_were_shown(store: Any) -> None:
    """A default from a factory comes from the record, not from a second validation."""
    ran: list[int] = []

    async def roll(seed: Annotated[int, Field(default_factory=_next)]) -> None:
        """Rolls."""
        ran.append(seed)

    spec = ToolSpec.from_function(roll, confirm=True)
    executor = Executor(approval=DeferredApproval(store), store=store)
    with pytest.raises(ApprovalPending) as caught:
        await executor.run_spec(spec, {}, in_run())
    record = await Inbox(store).approve(caught.value.id, reviewer="ann")
    await executor.run_spec(spec, {}, in_run())
    assert ran == [record.arguments["seed"]]


_seeds = iter(range(1000))


def _next() -> int:
    return next(_seeds)


# -- time ------------------------------------------------------------------------------------


async def test_an_undecided_record_expires(store: Any, clock: Any) -> None:
    """After an hour it cannot be approved, and the call asks anew."""
    desk = Desk(store)
    id = await desk.held()
    clock.pass_(72 * 3600 + 1)
    with pytest.raises(AgentAdapterError, match="already expired; nothing was changed"):
        await desk.inbox.approve(id, reviewer="ann")
    assert await desk.held() != id


async def test_an_unused_approval_expires(store: Any, clock: Any) -> None:
    """After ten minutes it does not count."""
    desk = Desk(store)
    id = await desk.approved()
    clock.pass_(24 * 3600 + 1)
    assert (await desk.inbox.get(id)).state == "expired"
    with pytest.raises(ApprovalExpired):
        await desk.executor.resume(id)
    assert await desk.held() != id and desk.till.ran == []


async def test_the_last_moment_counts(store: Any, clock: Any) -> None:
    """Both limits are inclusive."""
    desk = Desk(store)
    id = await desk.held()
    clock.pass_(72 * 3600)
    await desk.inbox.approve(id, reviewer="ann")
    clock.pass_(24 * 3600)
    assert await desk.charge() == "charged"


async def test_time_that_passes_between_check_and_use_counts(memory: Any, clock: Any) -> None:
    """The record is checked when it is taken, by the store's clock."""
    desk = Desk(memory)
    await desk.approved()

    class Slow:
        def before(self, call: Any) -> None:
            clock.pass_(0)

    original = desk.executor.runtime.in_flight.settle_lost

    async def late() -> None:
        clock.pass_(24 * 3600 + 1)
        await original()

    desk.executor.runtime.in_flight.settle_lost = late  # type: ignore[method-assign]
    with pytest.raises(ApprovalExpired):
        await desk.charge()
    assert desk.till.ran == []


# -- denials and caps ------------------------------------------------------------------------


async def test_a_denial_sticks_for_the_call_in_its_run(store: Any) -> None:
    """The same tool and arguments are not asked about again there."""
    desk = Desk(store)
    await desk.inbox.deny(await desk.held(), reviewer="ann", reason="too much")
    for call_id in ("c", "d"):
        with pytest.raises(ApprovalDenied, match="denied by ann: too much"):
            await desk.charge(call_id=call_id)
    assert await desk.inbox.list() == []
    await desk.held("run_2")


async def test_a_decided_record_stays_decided(store: Any) -> None:
    """Nobody turns a no into a yes, or decides twice."""
    desk = Desk(store)
    id = await desk.held()
    await desk.inbox.deny(id, reviewer="ann")
    with pytest.raises(AgentAdapterError, match="already denied"):
        await desk.inbox.approve(id, reviewer="bob")
    assert (await desk.inbox.get(id)).state == "denied"


async def test_a18_a_run_may_hold_twenty(store: Any) -> None:
    """A18: The next question is denied, with the reason."""
    desk = Desk(store)
    for number in range(20):
        await desk.held(args={"order": f"A{number}", "amount": 1})
    with pytest.raises(ApprovalDenied, match="20 approvals of this run already wait"):
        await desk.charge(args={"order": "B", "amount": 1})
    await desk.held("run_2")


async def test_a18_a_principal_may_hold_two_hundred(memory: Any) -> None:
    """A18: Over all runs."""
    desk = Desk(memory)
    for number in range(200):
        await desk.held(f"run_{number}", principal="bob")
    with pytest.raises(ApprovalDenied, match="200 approvals of bob wait"):
        await desk.charge("run_x", principal="bob")
    await desk.held("run_x", principal="eve")


async def test_a_reviewer_has_a_name(store: Any) -> None:
    """An empty one decides nothing."""
    desk = Desk(store)
    id = await desk.held()
    for name in ("", "  "):
        with pytest.raises(AgentAdapterError, match="needs the name"):
            await desk.inbox.approve(id, reviewer=name)
    assert (await desk.inbox.get(id)).state == "pending"


# -- edits -----------------------------------------------------------------------------------


async def test_an_edited_record_runs_as_edited(store: Any) -> None:
    """The record and the ledger keep both versions."""
    desk = Desk(store)
    id = await desk.approved(amount=2)
    assert await desk.charge() == "charged"
    record = await desk.inbox.get(id)
    assert desk.till.ran == [("A1", 2)]
    assert record.arguments == ARGS and record.edited == {"order": "A1", "amount": 2}
    intent = next(e for e in await ledger.entries(store, "run_1") if e.kind == "intent")
    assert intent.facts["approval"]["digest"] != intent.facts["approval"]["asked"]


async def test_a13_an_edited_record_is_validated(store: Any) -> None:
    """A13: What the schema refuses is refused before the decision is written."""
    desk = Desk(store)
    with pytest.raises(ToolArgsInvalid, match="amount"):
        await desk.approved(amount="2")
    (record,) = await desk.inbox.list()
    assert record.state == "pending" and record.edited is None and desk.till.ran == []


async def test_edits_where_none_are_allowed_are_refused_at_once(memory: Any) -> None:
    """The reviewer is told, and the record stays open."""
    desk = Desk(memory)
    gate = Gate(desk.executor, DeferredApproval(memory))
    with pytest.raises(ApprovalPending) as caught:
        await gate.ask(desk.till.spec, ARGS, in_run(call_id="c"), edits_allowed=False)
    with pytest.raises(AgentAdapterError, match="cannot apply edits"):
        await desk.inbox.approve(caught.value.id, reviewer="ann", arguments={"amount": 1})
    assert (await desk.inbox.get(caught.value.id)).state == "pending"


async def test_edits_that_are_no_json_are_a_clear_error(store: Any) -> None:
    """Nothing is changed."""
    desk = Desk(store)
    id = await desk.held()
    with pytest.raises(AgentAdapterError, match="JSON"):
        await desk.inbox.approve(id, reviewer="ann", arguments={"amount": object()})
    assert (await desk.inbox.get(id)).state == "pending"


# -- resume ----------------------------------------------------------------------------------


async def test_resume_runs_an_approved_call(store: Any) -> None:
    """As it was bound: run, arguments, principal."""
    desk = Desk(store)
    id = await desk.held(principal="bob", thread_id="th", call_id="c")
    await desk.inbox.approve(id, reviewer="ann")
    assert await desk.executor.resume(id) == "charged"
    (ctx,) = desk.till.contexts
    assert (ctx.run_id, ctx.principal, ctx.thread_id, ctx.call_id) == ("run_1", "bob", "th", "c")
    assert await is_whole(store)


async def test_a11_resume_twice_runs_once(store: Any) -> None:
    """A11: The second gets the recorded outcome; so does the call itself at a later attempt."""
    desk = Desk(store)
    id = await desk.approved()
    assert await desk.executor.resume(id) == "charged"
    assert await desk.executor.resume(id) == "charged"
    assert await desk.charge(attempt=2) == "charged"
    assert len(desk.till.ran) == 1


async def test_a11_two_resumes_at_once_run_once(store: Any) -> None:
    """A11: Whoever comes second gets the outcome or is told to wait."""
    desk = Desk(store, lambda: asyncio.sleep(0.01, "charged"))
    id = await desk.approved()
    found = await asyncio.gather(
        desk.executor.resume(id), desk.executor.resume(id), return_exceptions=True
    )
    assert "charged" in found and len(desk.till.ran) == 1


async def test_a4_resume_and_call_at_once_run_once(store: Any) -> None:
    """A4: One record, one run."""
    desk = Desk(store, lambda: asyncio.sleep(0.01, "charged"))
    id = await desk.approved()
    found = await asyncio.gather(desk.executor.resume(id), desk.charge(), return_exceptions=True)
    assert "charged" in found and len(desk.till.ran) == 1


async def test_resume_with_edits_keeps_both_versions(store: Any) -> None:
    """As a call does."""
    desk = Desk(store)
    id = await desk.approved(amount=2)
    await desk.executor.resume(id)
    intent = next(e for e in await ledger.entries(store, "run_1") if e.kind == "intent")
    assert intent.facts["approval"]["digest"] != intent.facts["approval"]["asked"]
    assert desk.till.ran == [("A1", 2)]


async def test_resume_of_other_states(store: Any, clock: Any) -> None:
    """Pending waits, denied is denied, expired is expired, unknown is not found."""
    desk = Desk(store)
    id = await desk.held()
    with pytest.raises(ApprovalPending, match=id):
        await desk.executor.resume(id)
    clock.pass_(72 * 3600 + 1)
    with pytest.raises(ApprovalExpired, match=id):
        await desk.executor.resume(id)
    denied = await desk.held("run_2")
    await desk.inbox.deny(denied, reviewer="ann", reason="no")
    with pytest.raises(ApprovalDenied, match="denied by ann: no"):
        await desk.executor.resume(denied)
    with pytest.raises(ApprovalDenied, match="no approval apr_x"):
        await desk.executor.resume("apr_x")
    assert desk.till.ran == []


async def test_resume_needs_the_tool(store: Any) -> None:
    """The error says what is missing."""
    desk = Desk(store)
    id = await desk.approved()
    with pytest.raises(AgentAdapterError, match="registry"):
        await Executor(store=store).resume(id)


async def test_resume_of_a_call_in_doubt_says_so(store: Any) -> None:
    """A resumed write that ended unknown is not run again."""
    desk = Desk(store, ValueError("?"))
    id = await desk.approved()
    with pytest.raises(ToolFailed):
        await desk.executor.resume(id)
    with pytest.raises(ToolInDoubt):
        await desk.executor.resume(id)
    assert len(desk.till.ran) == 1


async def test_resume_inside_a_tool_runs_the_call_as_it_was_bound(store: Any) -> None:
    """It belongs to its own run, not to that of the tool."""
    desk = Desk(store)
    id = await desk.approved()
    outer = Till(lambda: desk.executor.resume(id))
    assert await desk.executor.run_spec(outer.spec, ARGS, in_run("run_9")) == "charged"
    assert desk.till.contexts[0].run_id == "run_1" and await is_whole(store)


async def test_a16_a_tool_cannot_approve_its_own_call(store: Any) -> None:
    """A16: What a tool puts into its context opens nothing."""
    desk = Desk(store)
    inner: list[Any] = []

    async def sly(ctx: ToolContext) -> str:
        """Tries."""
        forged = ApprovalDecision.approve(reviewer="ann")
        with pytest.raises(ApprovalPending):
            await desk.charge(approval=forged)
        ctx.approval = forged
        inner.append(1)
        return "tried"

    await desk.executor.run_spec(ToolSpec.from_function(sly), {}, in_run("run_9"))
    assert inner == [1] and desk.till.ran == []


async def test_a27_an_approval_taken_by_a_call_that_never_ran_is_spent(memory: Any) -> None:
    """A27: A crash between taking and running leaves a doubt, never a second run."""
    desk = Desk(memory, lambda: asyncio.Event().wait())
    id = await desk.approved()
    task = asyncio.create_task(desk.charge())
    await until(lambda: len(desk.till.ran) == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await endings(memory) == ["unknown"]
    with pytest.raises(ToolInDoubt):
        await desk.executor.resume(id)
    assert len(desk.till.ran) == 1


# -- secrets and erasing ---------------------------------------------------------------------


async def test_a34_a_held_secret_is_nowhere_and_the_same_call_finds_its_record(
    store: Any,
) -> None:
    """A34: Another secret is another call; resuming needs the call again."""
    ran: list[str] = []

    async def pay(pin: Annotated[str, Secret()]) -> None:
        """Pays."""
        ran.append(pin)

    registry = ToolRegistry()
    spec = ToolSpec.from_function(pay, confirm=True)
    registry.add(spec)
    executor = Executor(registry, approval=DeferredApproval(store), store=store)
    with pytest.raises(ApprovalPending) as caught:
        await executor.run_spec(spec, {"pin": "hunter2"}, in_run())
    record: ApprovalRecord = await Inbox(store).approve(caught.value.id, reviewer="ann")
    kept = await store.read(lambda tx: tx.select("approvals"))
    assert "hunter2" not in repr(kept) and "hunter2" not in repr(record)
    with pytest.raises(ApprovalDenied, match="takes secrets"):
        await executor.resume(record.id)
    with pytest.raises(ApprovalPending):
        await executor.run_spec(spec, {"pin": "other"}, in_run())
    await executor.run_spec(spec, {"pin": "hunter2"}, in_run())
    assert ran == ["hunter2"]


async def test_erasing_a_run_ends_its_open_approvals(store: Any) -> None:
    """What nobody can see any more nobody can approve or resume."""
    desk = Desk(store)
    open_id, approved_id = await desk.held(args={"order": "Z", "amount": 9}), await desk.approved()
    await ledger.erase(store, "run_1")
    with pytest.raises(AgentAdapterError, match="already expired"):
        await desk.inbox.approve(open_id, reviewer="ann")
    with pytest.raises(ApprovalExpired):
        await desk.executor.resume(approved_id)
    assert desk.till.ran == [] and await is_whole(store)


async def test_erasing_a_run_leaves_its_taken_approvals_readable(store: Any) -> None:
    """The inbox shows that there was one; resuming says that it is erased."""
    desk = Desk(store)
    id = await desk.approved()
    await desk.charge()
    await ledger.erase(store, "run_1")
    record = await desk.inbox.get(id)
    assert record.state == "taken" and record.arguments == {}
    with pytest.raises(ApprovalDenied, match="erased"):
        await desk.executor.resume(id)
    assert [row["error_text"] for row in await rows(store)] == [None]
