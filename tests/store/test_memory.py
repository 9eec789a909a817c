"""What the memory store does beyond the kit."""

from __future__ import annotations

import pytest

from agent_adapter.core.errors import StoreError
from agent_adapter.store import MemoryStore
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.memory import store as module

pytestmark = pytest.mark.anyio


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def _begin(store: MemoryStore, run_id: str, **more: object) -> None:
    call: Row = {"call_key": f"k-{run_id}", "run_id": run_id, "state": "done", **more}

    def op(tx: Transaction) -> None:
        tx.insert("runs", {"run_id": run_id})
        tx.insert("calls", call)
        tx.insert("ledger", {"run_id": run_id, "seq": 1})
        tx.insert("chain_heads", {"run_id": run_id, "seq": 1})
        tx.insert("payloads", {"id": f"p-{run_id}", "run_id": run_id})
        tx.insert("usage", {"run_id": run_id, "tool": "", "calls": 1})
        tx.insert("taints", {"scope": f"run:{run_id}", "label": "web"})

    await store.write(op)


async def _rows(store: MemoryStore) -> dict[str, int]:
    names = ("runs", "calls", "ledger", "chain_heads", "payloads", "usage", "taints")
    return await store.read(lambda tx: {name: tx.count(name) for name in names})


async def _pass(store: MemoryStore) -> None:
    for _ in range(300):
        await store.write(lambda tx: None)


async def test_runs_that_are_idle_for_an_hour_are_forgotten() -> None:
    """All rows of the old run go, none of the new one."""
    clock = _Clock()
    store = MemoryStore(clock=clock)
    await _begin(store, "old")
    clock.now = 3601.0
    await _begin(store, "new")
    await _pass(store)
    assert set((await _rows(store)).values()) == {1}
    assert await store.read(lambda tx: tx.get("runs", "new")) is not None


async def test_the_oldest_runs_beyond_the_limit_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The number of runs stays bounded however many there were."""
    monkeypatch.setattr(module, "_RUN_LIMIT", 20)
    store = MemoryStore()
    for i in range(700):
        await _begin(store, f"r{i}")
    await _pass(store)
    assert set((await _rows(store)).values()) == {20}
    assert await store.read(lambda tx: tx.get("runs", "r699")) is not None


@pytest.mark.parametrize("state", ["pending", "approved"])
async def test_a_run_that_waits_is_kept(state: str) -> None:
    """An open call, and an approval that waits or may still be used, keep their run."""
    clock = _Clock()
    store = MemoryStore(clock=clock)
    await _begin(store, "open", state="open")
    await _begin(store, "asked")
    await store.write(
        lambda tx: tx.insert("approvals", {"id": "apr", "run_id": "asked", "state": state})
    )
    clock.now = 10_000.0
    await _pass(store)
    assert set((await _rows(store)).values()) == {2}


async def test_decided_approvals_go_with_their_run() -> None:
    """A denied record of a run that is forgotten goes, and its votes."""
    clock = _Clock()
    store = MemoryStore(clock=clock)
    await _begin(store, "r")
    record = {"id": "apr", "run_id": "r", "state": "denied"}
    await store.write(lambda tx: tx.insert("approvals", record))
    await store.write(lambda tx: tx.insert("votes", {"approval_id": "apr", "reviewer": "me"}))
    clock.now = 10_000.0
    await _pass(store)
    assert await store.read(lambda tx: tx.count("approvals") + tx.count("votes")) == 0


async def test_posts_beyond_the_limit_are_run_at_once() -> None:
    """What is posted and never flushed stays bounded."""
    store = MemoryStore()
    for i in range(10_050):
        store.post(lambda tx, i=i: tx.insert("meta", {"name": str(i)}))
    assert len(store._posted) <= 10_000
    assert await store.read(lambda tx: tx.count("meta")) == 10_050


async def test_an_operation_starts_no_other() -> None:
    """A write inside an operation is refused, and the outer one is taken back."""
    store = MemoryStore()

    def op(tx: Transaction) -> None:
        tx.insert("runs", {"run_id": "r"})
        store.write(lambda tx: None).send(None)

    with pytest.raises(StoreError, match="may not start another"):
        await store.write(op)
    assert await store.read(lambda tx: tx.count("runs")) == 0


async def test_every_store_is_an_owner_of_its_own() -> None:
    """The owner of another store is dead."""
    first, second = MemoryStore(), MemoryStore()
    assert await first.read(lambda tx: tx.is_live(second.owner_id)) is False


async def test_r7_the_bound_refuses_writes_and_never_reads() -> None:
    """R7: A write taken back is not counted; the error says what to do."""
    store = MemoryStore(max_writes=2)

    async def call(name: str, effects: str) -> None:
        await store.write(lambda tx: tx.insert("calls", {"call_key": name, "effects": effects}))

    def taken_back(tx: Transaction) -> None:
        tx.insert("calls", {"call_key": "no", "effects": "write"})
        raise ValueError("no")

    await call("a", "write")
    with pytest.raises(ValueError, match="no"):
        await store.write(taken_back)
    await call("b", "write")
    with pytest.raises(StoreError, match=r"2 writes are remembered.*open_store"):
        await call("c", "write")
    await call("d", "read")
    assert await store.read(lambda tx: tx.count("calls")) == 3
