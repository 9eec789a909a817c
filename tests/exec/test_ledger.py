"""The ledger: verified, anchored, erased and repaired."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    AgentAdapterError,
    ApprovalPending,
    ToolError,
    ToolFailed,
    ToolInDoubt,
)
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.exec import ledger
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.exec.executor import Executor
from agent_adapter.store import ledger as chain
from agent_adapter.store.keys import run_key
from tests.exec.shop import ARGS, Till, another_process, in_run, kinds, rows
from tests.exec.test_exactly_once import left_open

pytestmark = pytest.mark.anyio


async def three_calls(store: Any) -> Executor:
    """A run with two writes and a read."""
    executor = Executor(store=store)
    for effects in ("write", "read", "write"):
        await executor.run_spec(Till(effects=effects).spec, ARGS, in_run())
    return executor


async def problems(store: Any, **known: Any) -> tuple[str, ...]:
    """What a verification finds."""
    return (await ledger.verify(store, **known)).problems


async def test_a_whole_ledger_verifies(store: Any) -> None:
    """The report counts what it looked at and says what it cannot see."""
    await three_calls(store)
    report = await ledger.verify(store)
    assert report.ok and (report.runs, report.entries, report.calls) == (1, 5, 3)
    assert report.payloads == 6 and report.cannot_see


async def test_an_unknown_run_is_an_error(store: Any) -> None:
    """Not an empty success."""
    with pytest.raises(AgentAdapterError, match="no run run_x"):
        await ledger.verify(store, "run_x")


async def tamper(store: Any, op: Any) -> None:
    """Change rows behind the ledger's back."""
    await three_calls(store)
    await store.write(op)


def _body(tx: Any) -> None:
    row = tx.get("ledger", "run_1", 2)
    body = row["body"].replace(b'"ok"', b'"no"')
    assert body != row["body"]
    tx.update("ledger", {"run_id": "run_1", "seq": 2}, {"body": body})


def _rehashed(tx: Any) -> None:
    """Change a body and recompute every later hash, and the head."""
    link = chain.GENESIS
    for row in tx.select("ledger", {"run_id": "run_1"}, order_by="seq"):
        body = row["body"].replace(b'"charge"', b'"refund"')
        link = chain.chain_hash(link, body)
        where = {"run_id": "run_1", "seq": row["seq"]}
        tx.update("ledger", where, {"body": body, "hash": link})
    tx.update("chain_heads", {"run_id": "run_1"}, {"hash": link})


def _swapped(tx: Any) -> None:
    first, second = (tx.get("ledger", "run_1", seq) for seq in (1, 2))
    for seq, other in ((1, second), (2, first)):
        values = {name: other[name] for name in ("body", "hash", "kind", "call_key")}
        tx.update("ledger", {"run_id": "run_1", "seq": seq}, values)


def _cut(tx: Any) -> None:
    tx.delete("ledger", {"run_id": "run_1", "seq": 5})


def _cut_with_head(tx: Any) -> None:
    _cut(tx)
    last = tx.get("ledger", "run_1", 4)
    tx.update("chain_heads", {"run_id": "run_1"}, {"seq": 4, "hash": last["hash"]})


def _foreign_key(tx: Any) -> None:
    head = tx.get("chain_heads", "run_1")
    mac = chain.head_mac(b"\x01" * 32, "run_1", head["seq"], head["hash"])
    tx.update("chain_heads", {"run_id": "run_1"}, {"mac": mac})


def _payload(tx: Any) -> None:
    row = tx.select("payloads", {"run_id": "run_1"})[0]
    tx.update("payloads", {"id": row["id"]}, {"data": b'{"order":"Z"}'})


TAMPERED = {
    "an entry edited": (_body, "entry 2 was changed"),
    "every hash recomputed": (_rehashed, "not written with this store's key"),
    "an entry deleted": (
        lambda tx: tx.delete("ledger", {"run_id": "run_1", "seq": 2}),
        "entry 2 is missing",
    ),
    "two entries exchanged": (_swapped, "entry 1"),
    "the tail cut": (_cut, "the chain ends at 4, its head says 5"),
    "the tail cut with its head": (_cut_with_head, "not written with this store's key"),
    "a head under another key": (_foreign_key, "not written with this store's key"),
    "the head deleted": (
        lambda tx: tx.delete("chain_heads", {"run_id": "run_1"}),
        "the chain has no head",
    ),
    "a payload edited": (_payload, "was changed"),
    "a payload deleted": (lambda tx: tx.delete("payloads", {}), "is missing"),
    "a call deleted": (lambda tx: tx.delete("calls", {"n": 1}), "was deleted"),
    "an ending edited": (
        lambda tx: tx.update("calls", {"n": 1}, {"ending": "no-effect"}),
        "the chain says otherwise",
    ),
    "a call opened again": (
        lambda tx: tx.update("calls", {"n": 1}, {"state": "open", "ending": None}),
        "is open, the chain says ok",
    ),
    "a call made up": (
        lambda tx: tx.insert("calls", {"call_key": "call_x", "run_id": "run_1", "n": 9}),
        "is in no entry",
    ),
    "an entry's kind edited": (
        lambda tx: tx.update("ledger", {"seq": 1}, {"kind": "note"}),
        "is not the one that was written there",
    ),
}


@pytest.mark.parametrize(("op", "found"), TAMPERED.values(), ids=TAMPERED.keys())
async def test_a28_tampering_is_found(store: Any, op: Any, found: str) -> None:
    """A28: And named."""
    await tamper(store, op)
    assert any(found in problem for problem in await problems(store))


async def test_a28_an_anchor_outside_shows_a_chain_cut_with_the_key(store: Any) -> None:
    """A28: Whoever has the key can cut the tail; what was kept outside says so."""
    await three_calls(store)
    kept = await ledger.anchors(store)

    def cut(tx: Any) -> None:
        tx.delete("ledger", {"run_id": "run_1", "seq": 5})
        tx.delete("calls", {"n": 3})
        last = tx.get("ledger", "run_1", 4)
        mac = chain.head_mac(tx.key, "run_1", 4, last["hash"])
        head = {"seq": 4, "hash": last["hash"], "mac": mac}
        tx.update("chain_heads", {"run_id": "run_1"}, head)

    await store.write(cut)
    assert any("anchored entry 5" in p for p in await problems(store, anchored=kept))


async def test_a28_an_anchored_run_that_is_gone_is_missed(store: Any) -> None:
    """A28: However cleanly it was removed."""
    await three_calls(store)
    kept = await ledger.anchors(store)

    def remove(tx: Any) -> None:
        for table in ("ledger", "chain_heads", "calls", "payloads", "runs"):
            tx.delete(table, {"run_id": "run_1"})

    await store.write(remove)
    assert await problems(store, anchored=kept) == ("run_1: the run is gone",)


async def test_anchors_hold_while_the_chain_grows(store: Any) -> None:
    """An older head stays a part of it."""
    executor = await three_calls(store)
    kept = await ledger.anchors(store)
    await executor.run_spec(Till().spec, ARGS, in_run())
    assert await problems(store, anchored=kept) == ()


async def test_erasing_leaves_the_chain_whole(store: Any) -> None:
    """The bytes are gone, the digests stay, and a later call goes on."""
    executor = await three_calls(store)
    assert await ledger.erase(store, "run_1") == 6
    await executor.run_spec(Till().spec, ARGS, in_run())
    report = await ledger.verify(store)
    assert report.ok and report.erased == 6
    kept = await store.read(lambda tx: tx.select("payloads", {"data !=": None}))
    assert len(kept) == 2 and (await kinds(store))[5] == "erased"


async def test_an_erased_error_text_is_gone(store: Any) -> None:
    """What a tool said may hold personal data, too."""
    with pytest.raises(ToolError):
        await Executor(store=store).run_spec(Till(ToolError("Ann Smith")).spec, ARGS, in_run())
    await ledger.erase(store, "run_1")
    for table in ("calls", "ledger", "payloads"):
        assert "Ann Smith" not in repr(await store.read(lambda tx, t=table: tx.select(t)))


async def test_the_chain_holds_no_argument(store: Any) -> None:
    """Only salted digests: equal arguments have different ones."""
    executor = Executor(store=store)
    args = {"order": "a-very-personal-order", "amount": 5}
    for _ in range(2):
        await executor.run_spec(Till().spec, args, in_run())
    entries = await store.read(lambda tx: tx.select("ledger"))
    bodies = [json.loads(row["body"]) for row in entries]
    digests = {body["arguments"] for body in bodies if "arguments" in body}
    assert "a-very-personal-order" not in repr(entries) and len(digests) == 2


async def test_entries_are_listed_in_order(store: Any) -> None:
    """Of one run, or the newest of all."""
    executor = await three_calls(store)
    assert await kinds(store) == ["intent", "outcome", "call", "intent", "outcome"]
    await executor.run_spec(Till().spec, ARGS, in_run("run_2"))
    newest = await ledger.entries(store, limit=2)
    assert len(newest) == 2 and len(await ledger.entries(store)) == 7


async def test_in_doubt_lists_what_a_person_must_see(sqlite: Any, clock: Any) -> None:
    """Unknown endings and writes of dead processes; not reads, not live ones."""
    with pytest.raises(ToolFailed):
        await Executor(store=sqlite).run_spec(Till(ValueError()).spec, ARGS, in_run("a"))
    async with another_process(sqlite, clock) as other:
        await left_open(other, Till().spec, run_id="b")
        assert len(await ledger.in_doubt(sqlite)) == 1
    assert sorted(row["run_id"] for row in await ledger.in_doubt(sqlite)) == ["a", "b"]
    assert (await ledger.verify(sqlite)).in_doubt == 2


async def test_a_tenant_sees_its_own_doubts(store: Any) -> None:
    """And nobody else's."""
    with pytest.raises(ToolFailed):
        await Executor(store=store).run_spec(Till(ValueError()).spec, ARGS, in_run(tenant="t"))
    assert len(await ledger.in_doubt(store, "t")) == 1
    assert await ledger.in_doubt(store, "u") == []


@pytest.mark.parametrize("happened", [True, False])
async def test_a_doubt_is_resolved_once(store: Any, happened: bool) -> None:
    """The word and the person are in the chain; a second word changes nothing."""
    with pytest.raises(ToolFailed):
        await Executor(store=store).run_spec(Till(ValueError()).spec, ARGS, in_run())
    (row,) = await ledger.in_doubt(store)
    resolved = await ledger.resolve(
        store, row["call_key"], reviewer="ann", happened=happened, reason="asked the bank"
    )
    assert resolved["ending"] == ("ok" if happened else "aborted")
    entry = (await ledger.entries(store, "run_1"))[-1]
    assert entry.kind == "resolved" and entry.facts["reviewer"] == "ann"
    with pytest.raises(AgentAdapterError, match="not in doubt"):
        await ledger.resolve(store, row["call_key"], reviewer="eve", happened=not happened)
    assert await ledger.in_doubt(store) == [] and (await ledger.verify(store)).ok


async def test_only_a_doubt_can_be_resolved(store: Any) -> None:
    """Neither a call that ended well nor one that does not exist."""
    await Executor(store=store).run_spec(Till().spec, ARGS, in_run())
    (row,) = await rows(store)
    with pytest.raises(AgentAdapterError, match="not in doubt: it is ok; nothing was changed"):
        await ledger.resolve(store, row["call_key"], reviewer="ann", happened=False)
    with pytest.raises(AgentAdapterError, match="no call call_x"):
        await ledger.resolve(store, "call_x", reviewer="ann", happened=False)


async def test_a_call_that_is_under_way_cannot_be_resolved(store: Any) -> None:
    """Its process still decides."""
    await left_open(store, Till().spec)
    (row,) = await rows(store)
    with pytest.raises(AgentAdapterError, match="under way"):
        await ledger.resolve(store, row["call_key"], reviewer="ann", happened=True)


async def test_a_typed_result_of_a_person_comes_back_typed(store: Any) -> None:
    """What they say it gave is what a replay gives."""
    from decimal import Decimal

    till = Till(ValueError())
    with pytest.raises(ToolFailed):
        await Executor(store=store).run_spec(till.spec, ARGS, in_run())
    (row,) = await ledger.in_doubt(store)
    await ledger.resolve(
        store, row["call_key"], reviewer="ann", happened=True, result=Decimal("1.10")
    )
    again = await Executor(store=store).run_spec(till.spec, ARGS, in_run(attempt=2))
    assert again == Decimal("1.10") and type(again) is Decimal


async def test_a26_a_worker_that_finishes_after_it_was_given_up_changes_nothing(
    sqlite: Any, clock: Any
) -> None:
    """A26: Its outcome is kept as evidence; the person's word stands."""
    from agent_adapter.store.calls import end_call
    from agent_adapter.store.intents import Outcome

    async with another_process(sqlite, clock) as other:
        await left_open(other, Till().spec)
    (row,) = await rows(sqlite)
    await ledger.resolve(sqlite, row["call_key"], reviewer="ann", happened=False)
    late = Outcome(call_key=row["call_key"], run_id="run_1", ending="ok", tag="json", result=b"1")
    assert await sqlite.write(lambda tx: end_call(tx, late)) is False
    assert [r["ending"] for r in await rows(sqlite)] == ["aborted"]
    assert (await kinds(sqlite))[-1] == "late-outcome" and (await ledger.verify(sqlite)).ok


async def test_a25_a_lost_reply_is_not_a_second_effect(store: Any) -> None:
    """A25: The caller that tries again under the next attempt gets the record."""
    till, executor = Till(), Executor(store=store)
    await executor.run_spec(till.spec, ARGS, in_run(call_id="c"))
    await executor.run_spec(till.spec, ARGS, in_run(call_id="other", attempt=2))
    assert len(till.ran) == 1


async def test_a29_nothing_stored_executes_when_read(store: Any) -> None:
    """A29: A result that names a class comes back as data."""
    evil = {"$object": ["os.system", {"command": "id"}], "__reduce__": "x", "py/object": "os"}
    till, executor = Till(evil), Executor(store=store)
    await executor.run_spec(till.spec, ARGS, in_run())
    assert await executor.run_spec(till.spec, ARGS, in_run(attempt=2)) == evil


HOSTILE = ["'; DROP TABLE calls; --", '"; --', "%", "_", "\\", "a' OR '1'='1"]


@pytest.mark.parametrize("text", HOSTILE)
async def test_a30_identifiers_are_never_sql(store: Any, text: str) -> None:
    """A30: Runs, ids, principals and tenants are values everywhere."""
    till, executor = Till(), Executor(store=store)
    known: Any = {"call_id": text, "principal": text, "tenant": text, "thread_id": text}
    await executor.run_spec(till.spec, ARGS, in_run(text, **known))
    await executor.run_spec(till.spec, ARGS, in_run(text, attempt=2, **known))
    assert len(till.ran) == 1 and len(await rows(store, run_id=run_key(text, text))) == 1
    with pytest.raises(ToolFailed):
        await executor.run_spec(Till(ValueError()).spec, ARGS, in_run("z", tenant="y"))
    assert await ledger.in_doubt(store, text) == [] and (await ledger.verify(store)).ok


async def test_an_operation_that_fails_leaves_the_chain_as_it_was(store: Any) -> None:
    """All of it or nothing."""
    await three_calls(store)
    before = await ledger.anchors(store)

    def half(tx: Any) -> None:
        chain.append(tx, "run_1", "note", None, {})
        raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        await store.write(half)
    assert await ledger.anchors(store) == before


async def test_a_doubt_names_the_way_out(sqlite: Any, clock: Any) -> None:
    """The error has the command and the key."""
    till = Till()
    async with another_process(sqlite, clock) as other:
        await left_open(other, till.spec)
    with pytest.raises(ToolInDoubt, match=r"agent-adapter ledger resolve call_\w+"):
        await Executor(store=sqlite).run_spec(till.spec, ARGS, in_run(attempt=2))


async def test_a_record_approved_behind_the_ledgers_back_is_named(store: Any) -> None:
    """A28: an approval whose decision is not in the chain is reported."""
    registry = ToolRegistry()

    @registry.tool(confirm=True)
    async def pay(amount: int) -> int:
        """Pay."""
        return amount

    executor = Executor(registry, approval=DeferredApproval(store), store=store)
    with pytest.raises(ApprovalPending) as pending:
        await executor.run("pay", {"amount": 1}, ctx=ToolContext(run_id="r"))
    forged = {"state": "approved", "reviewer": "kim", "use_by": 9e12}
    await store.write(lambda tx: tx.update("approvals", {"id": pending.value.id}, forged))
    report = await ledger.verify(store, "r")
    assert any(pending.value.id in problem for problem in report.problems)
