"""What every store must do: checks over a factory of fresh, empty stores.

`await run(check, make)` makes a store with a clock of the kit's, runs one check and closes it.
A check raises `AssertionError` where the store breaks its promise.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from agent_adapter.core.errors import StoreError
from agent_adapter.store.base import Row, Store, Transaction

__all__ = ["CHECKS", "Check", "KitClock", "StoreFactory", "run"]


class KitClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


StoreFactory = Callable[[KitClock], Store]
Check = Callable[[Store, KitClock], Awaitable[None]]

CHECKS: list[Check] = []


async def run(check: Check, make: StoreFactory) -> None:
    """One check over one fresh store, in at most 20 seconds."""
    clock = KitClock()
    store = make(clock)
    try:
        async with asyncio.timeout(60):
            await check(store, clock)
    finally:
        await store.aclose()


def _check(check: Check) -> Check:
    CHECKS.append(check)
    return check


def _run_row(run_id: str, **more: Any) -> Row:
    return {"run_id": run_id, **more}


async def _filled(store: Store) -> None:
    def fill(tx: Transaction) -> None:
        for i in range(6):
            tx.insert(
                "calls",
                {
                    "call_key": f"k{i}",
                    "run_id": "a" if i < 4 else "b",
                    "n": 5 - i,
                    "state": "done" if i % 2 else "open",
                    "ending": "ok" if i % 2 else None,
                    "started_at": float(i),
                },
            )

    await store.write(fill)


async def _keys(store: Store, where: dict[str, Any] | None, **more: Any) -> list[str]:
    rows = await store.read(lambda tx: tx.select("calls", where, **more))
    return [row["call_key"] for row in rows]


def _raises_store_error(operation: Callable[[], Any], what: str) -> None:
    try:
        operation()
    except StoreError:
        return
    raise AssertionError(f"{what} is not refused")


@_check
async def a_row_comes_back_as_it_went_in(store: Store, clock: KitClock) -> None:
    """Text, 64-bit integers, floats, bytes and None survive; missing columns are None."""
    row = {"run_id": "ü\x00\u2028😀", "seq": 2**62, "at": 0.1, "body": b"\x00\xff", "kind": ""}
    await store.write(lambda tx: tx.insert("ledger", row))
    got = await store.read(lambda tx: tx.get("ledger", row["run_id"], 2**62))
    assert got == {**row, "call_key": None, "hash": None}
    assert type(got["body"]) is bytes and type(got["at"]) is float


@_check
async def an_absent_row_is_none(store: Store, clock: KitClock) -> None:
    """A key that is not there gives None."""
    assert await store.read(lambda tx: tx.get("runs", "nobody")) is None


@_check
async def an_existing_key_is_not_overwritten(store: Store, clock: KitClock) -> None:
    """A second insert says False and changes nothing."""
    assert await store.write(lambda tx: tx.insert("runs", _run_row("r", depth=1))) is True
    assert await store.write(lambda tx: tx.insert("runs", _run_row("r", depth=2))) is False
    row = await store.read(lambda tx: tx.get("runs", "r"))
    assert row is not None and row["depth"] == 1


@_check
async def an_operation_that_raises_leaves_nothing(store: Store, clock: KitClock) -> None:
    """Inserts, updates and deletes are all taken back, and the caller gets the very exception."""
    await _filled(store)
    raised = LookupError("stop")

    def op(tx: Transaction) -> None:
        tx.insert("runs", _run_row("r"))
        tx.update("calls", {"call_key": "k0"}, {"n": 99, "run_id": "c"})
        tx.delete("calls", {"run_id": "b"})
        tx.insert("calls", {"call_key": "k4", "run_id": "d"})
        raise raised

    try:
        await store.write(op)
    except LookupError as error:
        assert error is raised
    else:
        raise AssertionError("the exception is lost")
    assert await store.read(lambda tx: tx.get("runs", "r")) is None
    assert await _keys(store, {"run_id": "a"}, order_by="n") == ["k3", "k2", "k1", "k0"]
    assert await _keys(store, {"run_id": "b"}, order_by="n") == ["k5", "k4"]
    assert await _keys(store, {"run_id in": ["c", "d"]}) == []


@_check
async def a_failed_operation_harms_no_other(store: Store, clock: KitClock) -> None:
    """Of many operations at once, exactly those that raise are taken back."""

    def op(i: int) -> Callable[[Transaction], int]:
        def insert(tx: Transaction) -> int:
            tx.insert("runs", _run_row(f"r{i:02}"))
            if i % 5 == 3:
                raise ValueError(i)
            return i

        return insert

    got = await asyncio.gather(*(store.write(op(i)) for i in range(20)), return_exceptions=True)
    assert [r for r in got if isinstance(r, int)] == [i for i in range(20) if i % 5 != 3]
    assert [r.args[0] for r in got if isinstance(r, ValueError)] == [3, 8, 13, 18]
    assert await store.read(lambda tx: tx.count("runs")) == 16


@_check
async def updates_touch_what_matches(store: Store, clock: KitClock) -> None:
    """An update says how many rows matched and leaves the others."""
    await _filled(store)
    values = {"state": "gone"}
    where = {"run_id": "a", "state": "open"}
    assert await store.write(lambda tx: tx.update("calls", where, values)) == 2
    assert await store.write(lambda tx: tx.update("calls", where, values)) == 0
    assert await _keys(store, values, order_by="call_key") == ["k0", "k2"]


@_check
async def look_ups_follow_updates(store: Store, clock: KitClock) -> None:
    """A row is found by its new values and no longer by its old ones."""
    await _filled(store)
    assert await _keys(store, {"run_id": "b"}, order_by="n") == ["k5", "k4"]
    await store.write(lambda tx: tx.update("calls", {"call_key": "k5"}, {"run_id": "a"}))
    assert await _keys(store, {"run_id": "b"}) == ["k4"]
    assert "k5" in await _keys(store, {"run_id": "a"})


@_check
async def deletes_remove_what_matches(store: Store, clock: KitClock) -> None:
    """A delete says how many rows matched and leaves the others."""
    await _filled(store)
    assert await store.write(lambda tx: tx.delete("calls", {"run_id": "a", "n <=": 3})) == 2
    assert await _keys(store, None, order_by="call_key") == ["k0", "k1", "k4", "k5"]


@_check
async def comparisons_compare(store: Store, clock: KitClock) -> None:
    """Each comparison selects what it says, and several must all hold."""
    await _filled(store)
    expected: list[tuple[dict[str, Any], list[str]]] = [
        ({"n <": 2}, ["k4", "k5"]),
        ({"n <=": 1}, ["k4", "k5"]),
        ({"n >": 3}, ["k0", "k1"]),
        ({"n >=": 4}, ["k0", "k1"]),
        ({"run_id !=": "a"}, ["k4", "k5"]),
        ({"call_key in": ["k1", "k9"]}, ["k1"]),
        ({"call_key in": []}, []),
        ({"run_id": "a", "n >=": 3, "n <": 5}, ["k1", "k2"]),
    ]
    for where, keys in expected:
        assert await _keys(store, where, order_by="call_key") == keys, where
        assert await store.read(lambda tx, where=where: tx.count("calls", where)) == len(keys)


@_check
async def texts_are_found_by_a_part(store: Store, clock: KitClock) -> None:
    """`has` compares without case; no character of it is a wildcard, and `None` has nothing."""
    texts = ("Größe", "refund", "100%", "a_b", None, "ﬁle")
    await store.write(
        lambda tx: [tx.insert("meta", {"name": f"m{n}", "value": t}) for n, t in enumerate(texts)]
    )
    expected = {
        "GRÖSSE": ["m0"],
        "FUN": ["m1"],
        "%": ["m2"],
        "_": ["m3"],
        "A_": ["m3"],
        "FI": ["m5"],
        "'; --": [],
        "none": [],
    }
    for wanted, names in expected.items():
        where = {"value has": wanted, "name in": [f"m{n}" for n in range(6)]}
        rows = await store.read(lambda tx, where=where: tx.select("meta", where, order_by="name"))
        assert [row["name"] for row in rows] == names, wanted


@_check
async def none_is_a_value_of_its_own(store: Store, clock: KitClock) -> None:
    """None equals None alone; no comparison with a value matches a column that is None."""
    await _filled(store)
    assert await _keys(store, {"ending": None}, order_by="n") == ["k4", "k2", "k0"]
    assert await _keys(store, {"ending !=": None}, order_by="n") == ["k5", "k3", "k1"]
    assert await _keys(store, {"ending !=": "failed"}, order_by="n") == ["k5", "k3", "k1"]
    assert await _keys(store, {"ending in": [None, "ok"]}, order_by="n") == ["k5", "k3", "k1"]
    try:
        await _keys(store, {"n <": None})
    except StoreError:
        return
    raise AssertionError("a comparison with None is not refused")


@_check
async def selections_have_an_order(store: Store, clock: KitClock) -> None:
    """Rows come in the order of the named columns, None first, up to the limit."""
    await _filled(store)
    assert await _keys(store, None, order_by="n") == ["k5", "k4", "k3", "k2", "k1", "k0"]
    assert await _keys(store, None, order_by=("state", "n")) == ["k5", "k3", "k1", "k4", "k2", "k0"]
    assert await _keys(store, {"run_id": "a"}, order_by="n", limit=2) == ["k3", "k2"]
    assert await _keys(store, None, order_by="n", descending=True, limit=1) == ["k0"]
    assert await _keys(store, None, order_by=("ending", "n"), limit=1) == ["k4"]
    assert await _keys(store, None, limit=0) == []


@_check
async def rows_are_copies(store: Store, clock: KitClock) -> None:
    """Changing a row that went in or came out changes nothing in the store."""
    row = _run_row("r", depth=1)

    def op(tx: Transaction) -> None:
        tx.insert("runs", row)
        row["depth"] = 2
        got = tx.get("runs", "r")
        assert got is not None and got["depth"] == 1
        got["depth"] = 3
        tx.select("runs", {"run_id": "r"})[0]["depth"] = 4

    await store.write(op)
    row["depth"] = 5
    kept = await store.read(lambda tx: tx.get("runs", "r"))
    assert kept is not None and kept["depth"] == 1


@_check
async def wrong_names_are_refused(store: Store, clock: KitClock) -> None:
    """An unknown table, column or comparison, or a key that is incomplete, is a StoreError."""
    wrong: list[Callable[[Transaction], Any]] = [
        lambda tx: tx.get("nothing", "x"),
        lambda tx: tx.get("ledger", "x"),
        lambda tx: tx.insert("runs", {"run_id": "r", "colour": "red"}),
        lambda tx: tx.insert("ledger", {"run_id": "r"}),
        lambda tx: tx.update("runs", {"run_id": "r"}, {"colour": "red"}),
        lambda tx: tx.update("runs", {"run_id": "r"}, {"run_id": "s"}),
        lambda tx: tx.delete("runs", {"colour": "red"}),
        lambda tx: tx.select("runs", {"depth ~": 1}),
        lambda tx: tx.select("runs", {"run_id in": "r"}),
        lambda tx: tx.select("runs", order_by="colour"),
    ]

    def op(tx: Transaction) -> None:
        for one in wrong:
            _raises_store_error(lambda one=one: one(tx), f"number {wrong.index(one)}")

    await store.write(op)


@_check
async def posts_keep_their_order(store: Store, clock: KitClock) -> None:
    """Posts and writes of one thread happen in the order in which they were made."""

    def append(mark: str) -> Callable[[Transaction], str]:
        def op(tx: Transaction) -> str:
            row = tx.get("meta", "log")
            value = (row["value"] if row else "") + mark
            if not tx.update("meta", {"name": "log"}, {"value": value}):
                tx.insert("meta", {"name": "log", "value": value})
            return value

        return op

    store.post(append("a"))
    store.post(append("b"))
    assert await store.write(append("c")) == "abc"
    store.post(append("d"))
    store.post(append("e"))
    await store.flush()
    row = await store.read(lambda tx: tx.get("meta", "log"))
    assert row is not None and row["value"] == "abcde"


@_check
async def a_post_has_the_time_at_which_it_was_made(store: Store, clock: KitClock) -> None:
    """A posted operation sees the clock as it stood, not as it stands when it runs."""
    store.post(lambda tx: tx.insert("runs", _run_row("r", started_at=tx.now)))
    made = clock.now
    clock.now += 50
    await store.flush()
    row = await store.read(lambda tx: tx.get("runs", "r"))
    assert row is not None and row["started_at"] == made


@_check
async def a_post_that_raises_harms_no_other(store: Store, clock: KitClock) -> None:
    """The posts before and after it are kept, and the store goes on."""

    def poison(tx: Transaction) -> None:
        tx.insert("runs", _run_row("poisoned"))
        raise ValueError("poison")

    store.post(lambda tx: tx.insert("runs", _run_row("before")))
    store.post(poison)
    store.post(lambda tx: tx.insert("runs", _run_row("after")))
    await store.flush()
    rows = await store.read(lambda tx: tx.select("runs", order_by="run_id"))
    assert [row["run_id"] for row in rows] == ["after", "before"]


@_check
async def a_read_sees_every_write_that_returned(store: Store, clock: KitClock) -> None:
    """Right after a write has returned, a read has it."""
    for i in range(20):
        await store.write(lambda tx, i=i: tx.insert("runs", _run_row(f"r{i}")))
        assert await store.read(lambda tx: tx.count("runs")) == i + 1


@_check
async def a_read_may_not_write(store: Store, clock: KitClock) -> None:
    """An operation of read() that writes is refused and changes nothing."""
    with contextlib.suppress(StoreError):
        await store.read(lambda tx: tx.insert("runs", _run_row("r")))
        raise AssertionError("a read wrote")
    assert await store.read(lambda tx: tx.count("runs")) == 0


@_check
async def time_stands_still_in_an_operation(store: Store, clock: KitClock) -> None:
    """`now` is the store's clock, one value for the whole operation."""

    def op(tx: Transaction) -> tuple[float, float]:
        before = tx.now
        clock.now += 10
        return before, tx.now

    assert await store.write(op) == (1_000.0, 1_000.0)
    assert await store.write(op) == (1_010.0, 1_010.0)
    assert await store.read(op) == (1_020.0, 1_020.0)


@_check
async def an_operation_knows_its_store(store: Store, clock: KitClock) -> None:
    """Owner and key are the store's; the own one is live, one that never was is not."""
    owner_id, key, own, other = await store.write(
        lambda tx: (tx.owner_id, tx.key, tx.is_live(tx.owner_id), tx.is_live("epo_0123456789abcd"))
    )
    assert (owner_id, key) == (store.owner_id, store.key)
    assert len(key) == 32
    assert own is True and other is False
    assert await store.read(lambda tx: tx.is_live(store.owner_id)) is True


@_check
async def operations_run_one_at_a_time(store: Store, clock: KitClock) -> None:
    """Nothing is lost or done twice when many tasks count up the same row."""
    await store.write(lambda tx: tx.insert("usage", {"run_id": "r", "tool": "", "calls": 0}))

    def add(tx: Transaction) -> None:
        row = tx.get("usage", "r", "")
        assert row is not None
        tx.update("usage", {"run_id": "r", "tool": ""}, {"calls": row["calls"] + 1})

    await asyncio.gather(*(store.write(add) for _ in range(200)))
    row = await store.read(lambda tx: tx.get("usage", "r", ""))
    assert row is not None and row["calls"] == 200


@_check
async def several_loops_may_share_it(store: Store, clock: KitClock) -> None:
    """Threads with loops of their own write and post at the same time."""
    failed: list[BaseException] = []

    async def work(name: int) -> None:
        for i in range(25):
            await store.write(lambda tx, i=i: tx.insert("runs", _run_row(f"w{name}-{i}")))
            store.post(lambda tx, i=i: tx.insert("runs", _run_row(f"p{name}-{i}")))
        await store.flush()

    def thread(name: int) -> None:
        try:
            asyncio.run(work(name))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=thread, args=(name,)) for name in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        await asyncio.to_thread(one.join)
    assert not failed, failed
    assert await store.read(lambda tx: tx.count("runs")) == 200


@_check
async def a_cancelled_caller_cancels_nothing(store: Store, clock: KitClock) -> None:
    """An operation that was handed over is done, though nobody waits for it any more."""
    task = asyncio.create_task(store.write(lambda tx: tx.insert("runs", _run_row("r"))))
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await store.flush()
    assert await store.read(lambda tx: tx.count("runs")) == 1


@_check
async def a_closed_store_refuses(store: Store, clock: KitClock) -> None:
    """After aclose(), writes, reads and posts are StoreErrors; closing again does nothing."""
    await store.aclose()
    await store.aclose()
    for use in (store.write, store.read):
        try:
            await use(lambda tx: tx.count("runs"))
        except StoreError:
            continue
        raise AssertionError("a closed store is in use")
    _raises_store_error(lambda: store.post(lambda tx: None), "a post to a closed store")
