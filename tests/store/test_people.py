"""One person, many log-ins: what counts as one, what a link gives, and what is found altered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.exec import ledger
from agent_adapter.store import people
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.refusal import Refusal
from agent_adapter.store.sqlite import SqliteStore

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A new store in a file."""
    opened = SqliteStore(tmp_path / "state.db")
    yield opened
    await opened.aclose()


async def kim(store: SqliteStore, *logins: str, **more: Any) -> Row:
    """A person named Kim Lee with these log-ins."""

    def op(tx: Transaction) -> Any:
        people.add(tx, "Kim Lee", by="os:ana")
        return people.link(tx, "kim lee", logins=logins, by="os:ana", **more)

    made = await store.write(op)
    assert not isinstance(made, Refusal), made
    row: Row = made
    return row


async def same(store: SqliteStore, one: str, other: str) -> bool:
    """Whether two log-ins count as one person."""
    return await store.read(lambda tx: people.person_of(tx, one) == people.person_of(tx, other))


async def test_linked_log_ins_are_one_person(store: SqliteStore) -> None:
    """And so is every other log-in of the same name."""
    await kim(store, "os:kim", "token:k.lee")
    for one, other in (
        ("os:kim", "token:k.lee"),
        ("proxy:kim", "token:k.lee"),
        ("cli:KIM ", "Kim Lee"),
    ):
        assert await same(store, one, other)
    assert not await same(store, "os:kim", "os:lee")


async def test_a_name_belongs_to_one_person(store: SqliteStore) -> None:
    """Nobody else can be added, or be linked, under a name that looks the same."""
    await kim(store, "os:kim")
    for name in ("KIM", "k\u200bim", "kim lee", " Kim  Lee "):
        refused = await store.write(partial(people.add, name=name, by="os:ana"))
        assert isinstance(refused, Refusal) and "Kim Lee already" in refused.reason
    await store.write(lambda tx: people.add(tx, "Lee", by="os:ana"))
    refused = await store.write(
        lambda tx: people.link(tx, "Lee", logins=["token:Kim"], by="os:ana")
    )
    assert isinstance(refused, Refusal) and "equal names are one person" in refused.reason


@pytest.mark.parametrize("name", ["", "\u200b", "a:b", "x" * 257])
async def test_a_person_needs_a_name_that_can_be_seen(store: SqliteStore, name: str) -> None:
    """Of at most 256 characters, without a colon."""
    refused = await store.write(lambda tx: people.add(tx, name, by="os:ana"))
    assert isinstance(refused, Refusal) and "no name for a person" in refused.reason


@pytest.mark.parametrize(
    "login", ["kim", ":kim", "os:", "os:\u200b", "key:kim", "KEY:kim", "name:kim", "o" * 300 + ":k"]
)
async def test_a_bad_log_in_is_refused_and_nothing_is_linked(
    store: SqliteStore, login: str
) -> None:
    """Not even the good ones beside it."""
    await store.write(lambda tx: people.add(tx, "Kim Lee", by="os:ana"))
    refused = await store.write(
        lambda tx: people.link(tx, "Kim Lee", logins=["os:kim", login], by="os:ana")
    )
    assert isinstance(refused, Refusal) and "no log-in" in refused.reason
    assert await store.read(lambda tx: people.authority(tx, "os:kim")) is None


async def test_a_role_comes_from_a_link_never_from_a_name(store: SqliteStore) -> None:
    """A log-in of an equal name is the same person for counting, and has no role of theirs."""
    await kim(store, "os:kim", roles={"acme": "approver", "": "viewer"})
    linked = await store.read(lambda tx: people.authority(tx, "os:KIM"))
    assert linked is not None and linked.roles == {"acme": "approver", "": "viewer"}
    assert await store.read(lambda tx: people.authority(tx, "token:kim")) is None


async def test_a_role_can_be_changed_and_taken_away(store: SqliteStore) -> None:
    """`none` takes it; an unknown role is refused."""
    await kim(store, "os:kim", roles={"acme": "admin"})
    await kim(store, roles={"acme": "viewer"})
    await kim(store, roles={"": "none"})
    known = await store.read(lambda tx: people.authority(tx, "os:kim"))
    assert known is not None and known.roles == {"acme": "viewer", "": "none"}
    refused = await store.write(
        lambda tx: people.link(tx, "Kim Lee", roles={"acme": "boss"}, by="os:ana")
    )
    assert isinstance(refused, Refusal) and "no role 'boss'" in refused.reason


async def test_revoking_ends_a_log_in_or_a_person_once(store: SqliteStore) -> None:
    """What was decided under it stays theirs: the log-in still names the person."""
    await kim(store, "os:kim", "token:k.lee")
    assert not isinstance(
        await store.write(lambda tx: people.revoke(tx, "token:k.lee", by="a")), Refusal
    )
    assert "revoked" in str(await store.read(lambda tx: people.problem(tx, "token:k.lee")))
    assert await store.read(lambda tx: people.problem(tx, "os:kim")) is None
    await store.write(lambda tx: people.revoke(tx, "Kim Lee", by="a"))
    assert "revoked" in str(await store.read(lambda tx: people.problem(tx, "os:kim")))
    assert await same(store, "os:kim", "token:k.lee")
    again = await store.write(lambda tx: people.revoke(tx, "kim lee", by="a"))
    assert isinstance(again, Refusal) and "already" in again.reason
    unknown = await store.write(lambda tx: people.revoke(tx, "bob", by="a"))
    assert isinstance(unknown, Refusal) and "no person or log-in bob" in unknown.reason


@pytest.mark.parametrize(
    ("table", "key", "change"),
    [
        ("memberships", "tenant", {"role": "admin"}),
        ("memberships", "tenant", {"tenant": "other"}),
        ("logins", "person_id", {"revoked_at": None}),
        ("logins", "person_id", {"person_id": "psn_other"}),
        ("people", "id", {"revoked_at": 1.0}),
    ],
)
async def test_a_tampered_role_or_link_is_found(
    store: SqliteStore, tmp_path: Path, table: str, key: str, change: Row
) -> None:
    """By `verify`, in the chain of the tenant for a role in one."""
    import sqlite3

    await kim(store, "os:kim", "token:kl", roles={"acme": "viewer"})
    await store.write(lambda tx: people.revoke(tx, "token:kl", by="a"))
    assert (await ledger.verify(store)).ok
    column, value = next(iter(change.items()))
    with sqlite3.connect(tmp_path / "state.db") as file:
        file.execute(f"UPDATE {table} SET {column} = ?", (value,))
    report = await ledger.verify(store)
    assert not report.ok
    if table == "memberships":
        assert any(problem.startswith("#people:acme: ") for problem in report.problems)


async def test_an_added_row_is_found(store: SqliteStore, tmp_path: Path) -> None:
    """A role in a tenant that has no chain yet, too."""
    import sqlite3

    row = await kim(store, "os:kim")
    with sqlite3.connect(tmp_path / "state.db") as file:
        file.execute("INSERT INTO memberships VALUES (?, 'new', 'admin', 1.0)", (row["id"],))
    assert not (await ledger.verify(store)).ok
