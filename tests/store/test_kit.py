"""The kit fails on a broken store: one fault each, and the check that must find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent_adapter.core.errors import StoreError
from agent_adapter.store import MemoryStore
from tests.store import kit
from tests.store.kit import Check, run

pytestmark = pytest.mark.anyio


class _Tampered:
    """A transaction whose methods may be replaced; the rest is the real one's."""

    def __init__(self, real: Any, replaced: dict[str, Callable[..., Any]]) -> None:
        self._real = real
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        replacement = self._replaced.get(name)
        if replacement is None:
            return getattr(self._real, name)
        return lambda *args, **kwargs: replacement(self._real, *args, **kwargs)


class _Broken(MemoryStore):
    """A memory store whose transactions are tampered with."""

    replaced: dict[str, Callable[..., Any]] = {}  # noqa: RUF012 - each fault sets its own

    async def write(self, op: Any) -> Any:
        return await super().write(lambda tx: op(_Tampered(tx, self.replaced)))

    def post(self, op: Any) -> None:
        super().post(lambda tx: op(_Tampered(tx, self.replaced)))

    async def read(self, op: Any) -> Any:
        return await super().read(lambda tx: op(_Tampered(tx, self.replaced)))


class _LosesRollback(MemoryStore):
    async def write(self, op: Any) -> Any:
        raised: list[BaseException] = []

        def caught(tx: Any) -> Any:
            try:
                return op(tx)
            except BaseException as error:
                raised.append(error)

        value = await super().write(caught)
        if raised:
            raise raised[0]
        return value


class _SwallowsErrors(MemoryStore):
    async def write(self, op: Any) -> Any:
        try:
            return await super().write(op)
        except LookupError:
            return None


class _ReordersPosts(MemoryStore):
    def post(self, op: Any) -> None:
        super().post(op)
        self._posted.rotate(1)


class _LosesPosts(MemoryStore):
    def post(self, op: Any) -> None:
        if self._closed:
            raise StoreError("closed")


class _StopsAtPoison(MemoryStore):
    async def flush(self) -> None:
        posted = list(self._posted)
        self._posted.clear()
        for op, _ in posted:
            try:
                await self.write(op)
            except ValueError:
                return


class _RunsTwice(MemoryStore):
    async def write(self, op: Any) -> Any:
        await super().write(op)
        return await super().write(op)


class _WritesInRead(MemoryStore):
    async def read(self, op: Any) -> Any:
        return await self.write(op)


class _StaysOpen(MemoryStore):
    async def aclose(self) -> None:
        await self.flush()


class _LatePostTime(MemoryStore):
    def post(self, op: Any) -> None:
        def late(tx: Any) -> Any:
            tx.now = self._clock()
            return op(tx)

        super().post(late)


class _ReadsBehind(MemoryStore):
    async def read(self, op: Any) -> Any:
        real = await super().read(lambda tx: tx.count("runs"))
        behind = {"count": lambda tx, table, where=None: max(0, real - 1)}
        return await super().read(lambda tx: op(_Tampered(tx, behind)))


class _MovingClock(_Broken):
    async def write(self, op: Any) -> Any:
        class Moving:
            now = property(lambda _: self._clock())

        return await MemoryStore.write(self, lambda tx: op(Moving()))


def _tampered(**replaced: Callable[..., Any]) -> type[MemoryStore]:
    return type("_Tampering", (_Broken,), {"replaced": replaced})


def _overwrites(tx: Any, table: str, row: Any) -> bool:
    if tx.insert(table, row):
        return True
    tx.update(table, {"run_id": row["run_id"]}, {k: v for k, v in row.items() if k != "run_id"})
    return True


def _first_only(where: Any) -> Any:
    return dict(list(where.items())[:1]) if where else where


def _live_row(tx: Any, table: str, *key: Any) -> Any:
    return tx._tables[table].rows.get(key[0] if len(key) == 1 else key)


def _callers_row(tx: Any, table: str, row: Any) -> bool:
    added: bool = tx.insert(table, row)
    stored = tx._tables[table]
    row.update(stored.whole(row))
    stored.rows[stored.key_of(row)] = row
    return added


def _without_none(tx: Any, table: str, where: Any = None, **more: Any) -> Any:
    return [] if where and None in where.values() else tx.select(table, where, **more)


def _drops_unknown(tx: Any, table: str, row: Any) -> bool:
    known = {c.name for c in tx._tables[table].declared.columns}
    return bool(tx.insert(table, {k: v for k, v in row.items() if k in known}))


def _text_for_bytes(tx: Any, table: str, *key: Any) -> Any:
    row = tx.get(table, *key)
    return row and {k: str(v) if isinstance(v, bytes) else v for k, v in row.items()}


def _update_without_index(tx: Any, table: str, where: Any, values: Any) -> int:
    stored = tx._tables[table]
    found = stored.find(where)
    for _, row in found:
        row.update(values)
    return len(found)


FAULTS: list[tuple[str, type[MemoryStore], Check]] = [
    ("loses rollback", _LosesRollback, kit.an_operation_that_raises_leaves_nothing),
    ("loses one rollback of many", _LosesRollback, kit.a_failed_operation_harms_no_other),
    ("swallows errors", _SwallowsErrors, kit.an_operation_that_raises_leaves_nothing),
    ("reorders posts", _ReordersPosts, kit.posts_keep_their_order),
    ("loses posts", _LosesPosts, kit.posts_keep_their_order),
    ("stops at a poisoned post", _StopsAtPoison, kit.a_post_that_raises_harms_no_other),
    ("runs operations twice", _RunsTwice, kit.operations_run_one_at_a_time),
    ("writes in reads", _WritesInRead, kit.a_read_may_not_write),
    ("stays open", _StaysOpen, kit.a_closed_store_refuses),
    ("gives posts the time they run", _LatePostTime, kit.a_post_has_the_time_at_which_it_was_made),
    ("reads behind writes", _ReadsBehind, kit.a_read_sees_every_write_that_returned),
    ("lets time pass in an operation", _MovingClock, kit.time_stands_still_in_an_operation),
    ("overwrites", _tampered(insert=_overwrites), kit.an_existing_key_is_not_overwritten),
    (
        "ignores a condition of an update",
        _tampered(update=lambda tx, t, w, v: tx.update(t, _first_only(w), v)),
        kit.updates_touch_what_matches,
    ),
    (
        "ignores a condition of a delete",
        _tampered(delete=lambda tx, t, w: tx.delete(t, _first_only(w))),
        kit.deletes_remove_what_matches,
    ),
    (
        "ignores a condition of a selection",
        _tampered(select=lambda tx, t, w=None, **m: tx.select(t, _first_only(w), **m)),
        kit.comparisons_compare,
    ),
    (
        "leaves an index behind",
        _tampered(update=_update_without_index),
        kit.look_ups_follow_updates,
    ),
    ("returns live rows", _tampered(get=_live_row), kit.rows_are_copies),
    ("keeps the caller's row", _tampered(insert=_callers_row), kit.rows_are_copies),
    ("never finds None", _tampered(select=_without_none), kit.none_is_a_value_of_its_own),
    (
        "ignores the order",
        _tampered(select=lambda tx, t, w=None, **m: tx.select(t, w, limit=m.get("limit"))),
        kit.selections_have_an_order,
    ),
    (
        "ignores the limit",
        _tampered(select=lambda tx, t, w=None, **m: tx.select(t, w, **{**m, "limit": None})),
        kit.selections_have_an_order,
    ),
    ("drops unknown columns", _tampered(insert=_drops_unknown), kit.wrong_names_are_refused),
    ("makes text of bytes", _tampered(get=_text_for_bytes), kit.a_row_comes_back_as_it_went_in),
    (
        "takes everybody for live",
        _tampered(is_live=lambda tx, owner_id: True),
        kit.an_operation_knows_its_store,
    ),
]


@pytest.mark.parametrize(
    ("broken", "check"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS]
)
async def test_a_broken_store_fails(broken: type[MemoryStore], check: Check) -> None:
    """The check finds the fault."""
    with pytest.raises(AssertionError):
        await run(check, lambda clock: broken(clock=clock))
