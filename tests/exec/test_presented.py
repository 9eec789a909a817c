"""What is shown is what is voted on, and what runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, SecretStr

import agent_adapter as aa
from agent_adapter.core.errors import AgentAdapterError, ApprovalPending, ToolArgsInvalid
from agent_adapter.core.inject import Secret
from agent_adapter.exec.approval.inbox import Inbox
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.exec.approval.ports.quorum import QuorumApproval
from agent_adapter.exec.approval.ports.terminal import TerminalApproval
from agent_adapter.exec.executor import Executor
from agent_adapter.store import taint
from tests.exec.shop import ARGS, Till, in_run, is_whole
from tests.fakes.hooks import RecordingHook

pytestmark = pytest.mark.anyio


async def asked(executor: Executor, spec: Any, args: Any, **known: Any) -> str:
    """The id of the record under which the call waits."""
    with pytest.raises(ApprovalPending) as caught:
        await executor.run_spec(spec, args, in_run(**known))
    return caught.value.id


class Quorum:
    """A call for bob that two people must approve."""

    def __init__(self, store: Any) -> None:
        self.till = Till(confirm=True)
        self.executor = Executor(store=store, approval=QuorumApproval(2, store))
        self.inbox = Inbox(store)

    async def ask(self) -> str:
        """The record's id."""
        return await asked(self.executor, self.till.spec, ARGS, principal="bob")

    async def call(self) -> Any:
        """The call again."""
        return await self.executor.run_spec(self.till.spec, ARGS, in_run(principal="bob"))


# -- votes -----------------------------------------------------------------------------------


async def test_t1_an_edit_is_shown_to_whoever_looks(store: Any) -> None:
    """T1: the second voter sees the arguments that will run, as a difference."""
    quorum = Quorum(store)
    id = await quorum.ask()
    await quorum.inbox.approve(id, reviewer="ann", arguments={**ARGS, "order": "EVIL"})
    for record in (await quorum.inbox.get(id), *await quorum.inbox.list()):
        assert '"EVIL"' in record.shown and '"A1"' not in record.shown
        assert record.change is not None
        assert '-  "order": "A1"' in record.change and '+  "order": "EVIL"' in record.change
        assert record.arguments == ARGS and record.votes == ("ann",)
    await quorum.inbox.approve(id, reviewer="eve")
    await quorum.call()
    assert quorum.till.ran == [("EVIL", ARGS["amount"])]
    assert await is_whole(store)


async def test_t1_votes_before_an_edit_do_not_count_for_it(store: Any) -> None:
    """T1: a vote is on what will run; it counts again only if that is what runs after all."""
    quorum = Quorum(store)
    id = await quorum.ask()
    await quorum.inbox.approve(id, reviewer="ann")
    edited = await quorum.inbox.approve(id, reviewer="eve", arguments={**ARGS, "amount": 1})
    assert edited.state == "pending" and edited.votes == ("eve",)
    back = await quorum.inbox.approve(id, reviewer="joe", arguments=ARGS)
    assert back.state == "approved" and back.change is None
    assert back.reviewer == "ann, joe"
    await quorum.call()
    assert quorum.till.ran == [("A1", ARGS["amount"])]


async def test_t1_a_vote_on_what_was_shown_before_an_edit_is_stale(store: Any) -> None:
    """T1: a page that was open while somebody edited decides nothing."""
    quorum = Quorum(store)
    id = await quorum.ask()
    seen = (await quorum.inbox.get(id)).seen
    await quorum.inbox.approve(id, reviewer="ann", arguments={**ARGS, "order": "EVIL"})
    with pytest.raises(AgentAdapterError, match="has changed since it was shown"):
        await quorum.inbox.approve(id, reviewer="eve", seen=seen)
    assert (await quorum.inbox.get(id)).state == "pending"


async def test_a_label_added_after_a_vote_voids_it(store: Any) -> None:
    """Of a quorum: the vote before it is not counted, and a page from before it is stale."""
    quorum = Quorum(store)
    id = await quorum.ask()
    await quorum.inbox.approve(id, reviewer="ann")
    seen = (await quorum.inbox.get(id)).seen
    await store.write(lambda tx: taint.mark(tx, ["run:run_1"], "web"))
    with pytest.raises(AgentAdapterError, match="has changed since it was shown"):
        await quorum.inbox.approve(id, reviewer="eve", seen=seen)
    assert (await quorum.inbox.get(id)).taint == ("web",)
    assert (await quorum.inbox.approve(id, reviewer="eve")).votes == ("eve",)
    assert (await quorum.inbox.approve(id, reviewer="ann")).state == "approved"
    assert await is_whole(store)


@pytest.mark.parametrize("way", ["call", "resume"])
async def test_a_label_added_after_an_approval_asks_again(store: Any, way: str) -> None:
    """The same record waits again, with the label; approved once more it runs."""
    till, registry = Till(confirm=True), aa.ToolRegistry()
    registry.add(till.spec)
    executor = Executor(registry, approval=DeferredApproval(store), store=store)
    inbox = Inbox(store)
    id = await asked(executor, till.spec, ARGS)
    await inbox.approve(id, reviewer="ann")
    await store.write(lambda tx: taint.mark(tx, ["run:run_1"], "web"))

    def again() -> Any:
        return (
            executor.resume(id) if way == "resume" else executor.run_spec(till.spec, ARGS, in_run())
        )

    with pytest.raises(ApprovalPending, match=id):
        await again()
    record = await inbox.get(id)
    assert (record.state, record.taint, record.reviewer) == ("pending", ("web",), None)
    await inbox.approve(id, reviewer="ann")
    await again()
    assert len(till.ran) == 1 and await is_whole(store)


# -- edits -----------------------------------------------------------------------------------


async def test_t5_a_bad_edit_changes_nothing(store: Any) -> None:
    """T5: the record is still pending, with no vote and no edit, and can be decided."""
    till = Till(confirm=True)
    executor, inbox = Executor(store=store, approval=DeferredApproval(store)), Inbox(store)
    id = await asked(executor, till.spec, ARGS)
    before = await inbox.get(id)
    for edit in ({"amont": 4}, {**ARGS, "amount": "x"}, {**ARGS, "more": 1}, {}):
        with pytest.raises(ToolArgsInvalid):
            await inbox.approve(id, reviewer="ann", arguments=edit)
    assert await inbox.get(id) == before
    await inbox.approve(id, reviewer="ann")
    await executor.run_spec(till.spec, ARGS, in_run())
    assert len(till.ran) == 1


async def test_t5_an_edit_that_only_the_tool_can_refuse_asks_again(store: Any) -> None:
    """T5: a validator that no schema shows refuses when the call runs: the record waits again."""

    def even(value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value

    ran: list[int] = []

    async def pay(n: Annotated[int, AfterValidator(even)]) -> None:
        """Pays."""
        ran.append(n)

    spec = aa.ToolSpec.from_function(pay, confirm=True)
    executor, inbox = Executor(store=store, approval=DeferredApproval(store)), Inbox(store)
    id = await asked(executor, spec, {"n": 2})
    await inbox.approve(id, reviewer="ann", arguments={"n": 3})
    with pytest.raises(ApprovalPending, match=id):
        await executor.run_spec(spec, {"n": 2}, in_run())
    record = await inbox.get(id)
    assert (record.state, record.edited) == ("pending", None) and "odd" in record.why
    await inbox.approve(id, reviewer="ann", arguments={"n": 4})
    await executor.run_spec(spec, {"n": 2}, in_run())
    assert ran == [4] and await is_whole(store)


async def test_t5_a_guard_that_changes_an_edit_asks_again(memory: Any) -> None:
    """What a person approved is what runs, also where a guard would run something else."""

    class Cap(RecordingHook):
        def before(self, call: Any) -> Any:
            return {**call.arguments, "amount": min(call.arguments["amount"], 5)}

    till = Till(confirm=True)
    executor = Executor(store=memory, approval=DeferredApproval(memory), hooks=[Cap()])
    id = await asked(executor, till.spec, ARGS)
    await Inbox(memory).approve(id, reviewer="ann", arguments={**ARGS, "amount": 9})
    with pytest.raises(ApprovalPending, match=id):
        await executor.run_spec(till.spec, ARGS, in_run())
    assert till.ran == [] and "guard" in (await Inbox(memory).get(id)).why


async def test_what_an_edit_leaves_out_is_shown_as_it_will_run(memory: Any) -> None:
    """A default of the schema is filled in."""

    async def pay(n: int, currency: Literal["EUR", "USD"] = "EUR") -> None:
        """Pays."""

    spec = aa.ToolSpec.from_function(pay, confirm=True)
    executor, inbox = Executor(store=memory, approval=DeferredApproval(memory)), Inbox(memory)
    id = await asked(executor, spec, {"n": 2, "currency": "USD"})
    record = await inbox.approve(id, reviewer="ann", arguments={"n": 3})
    assert record.edited == {"n": 3, "currency": "EUR"}


# -- secrets in edits ------------------------------------------------------------------------

HUSH = "hunter2-do-not-write-me"


class Login(BaseModel):
    """A model with a secret inside."""

    user: str
    password: SecretStr


async def test_t14_an_edit_of_a_secret_is_refused(store: Any) -> None:
    """T14: what a reviewer types would lie in the store in clear; the rest may be edited."""
    got: list[str] = []

    async def enter(
        login: Login, pin: Annotated[str, Secret()], note: str, token: SecretStr | None = None
    ) -> None:
        """Enters."""
        got.append(f"{login.user} {login.password.get_secret_value()} {pin} {note}")

    spec = aa.ToolSpec.from_function(enter, confirm=True)
    executor, inbox = Executor(store=store, approval=DeferredApproval(store)), Inbox(store)
    args = {"login": {"user": "u", "password": "p"}, "pin": "1", "note": "n"}
    id = await asked(executor, spec, args)
    shown = (await inbox.get(id)).arguments
    for edit in (
        {**shown, "pin": HUSH},
        {**shown, "login": {"user": "u", "password": HUSH}},
        {**shown, "token": HUSH},
        {**shown, "pin": shown["login"]["password"]},
        {**shown, "note": shown["pin"]},
    ):
        with pytest.raises(ToolArgsInvalid, match="secret") as caught:
            await inbox.approve(id, reviewer="ann", arguments=edit)
        assert HUSH not in str(caught.value)
    rows = await store.read(lambda tx: [*tx.select("approvals"), *tx.select("votes")])
    assert HUSH not in repr(rows)
    changed = {**shown, "note": "m", "login": {**shown["login"], "user": "v"}}
    await inbox.approve(id, reviewer="ann", arguments=changed)
    await executor.run_spec(spec, args, in_run())
    assert got == ["v p 1 m"]


# -- other places ----------------------------------------------------------------------------


async def test_records_are_alike_only_if_the_same_will_run(memory: Any) -> None:
    """A pending edit, another principal and another type of number tell records apart."""
    till = Till(confirm=True)
    executor = Executor(store=memory, approval=QuorumApproval(2, memory))
    inbox, ids = Inbox(memory), []
    for run, who in (("a", "bob"), ("b", "bob"), ("c", "bob"), ("d", "joe")):
        ids.append(await asked(executor, till.spec, ARGS, run_id=run, principal=who))
    await inbox.approve(ids[2], reviewer="ann", arguments={**ARGS, "amount": 1})
    alike = [(await inbox.get(id)).alike for id in ids]
    assert alike[0] == alike[1] and len(set(alike)) == 3


async def test_the_terminal_shows_the_same_text(memory: Any) -> None:
    """Inert, whole, and with what the run has read."""
    shown: list[str] = []
    port = TerminalApproval(reviewer="ann", ask=lambda _: "y", show=shown.append)
    await memory.write(lambda tx: taint.mark(tx, ["run:run_1"], "web\x1b[2J"))
    executor = Executor(store=memory, approval=port)
    who = "bob\nRun it? [y/N] y\u202e"
    await executor.run_spec(Till(confirm=True).spec, ARGS, in_run(principal=who))
    (text,) = shown
    assert "on behalf of bob\\nRun it? [y/N] y\\u202e" in text
    assert "\x1b" not in text and "tainted by: web\\u001b[2J" in text
