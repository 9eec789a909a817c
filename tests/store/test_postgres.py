"""What the PostgreSQL store does beyond the kit: opening, locks, lost connections, messages."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import agent_adapter as aa
from agent_adapter.core.errors import StoreError
from agent_adapter.network.events.reading import read_events
from agent_adapter.network.hub import audit
from agent_adapter.store import positions, watching
from agent_adapter.store.base import Transaction
from agent_adapter.store.postgres import PostgresStore, owners, settling
from agent_adapter.store.postgres.connection import connect, parameters_of, shown
from agent_adapter.store.postgres.inspection import refuse_transaction_pooling
from agent_adapter.store.sql.schema import METADATA
from agent_adapter.store.witness import keys_of_channel
from tests.postgres import database

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.anyio

KEY = bytes(range(32))


@pytest.fixture
def url() -> Iterator[str]:
    """A database with empty tables."""
    with database() as found:
        yield found


@pytest.fixture
def empty() -> Iterator[str]:
    """A database without tables."""
    with database(empty=True) as found:
        yield found


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    """A store in it."""
    made = PostgresStore(url, key=KEY)
    yield made
    await made.aclose()


def run_sql(url: str, *statements: str) -> None:
    """Change the database behind the store's back."""
    with psycopg.connect(url, autocommit=True) as admin:
        for statement in statements:
            admin.execute(statement)


class CountUp:
    """Adds one to a row; the key that it names is its row's, or none."""

    def __init__(self, run_id: str = "r", *, names: bool = False) -> None:
        self.run_id = run_id
        self.ran = 0
        if names:
            self.keys = lambda: {run_id}

    def __call__(self, tx: Transaction) -> int:
        """Read, add one, write; what there is now."""
        self.ran += 1
        row = tx.get("usage", self.run_id, "")
        if row is None:
            tx.insert("usage", {"run_id": self.run_id, "tool": "", "calls": 1})
            return 1
        where = {"run_id": self.run_id, "tool": ""}
        tx.update("usage", where, {"calls": row["calls"] + 1})
        return int(row["calls"]) + 1


async def test_the_schema_is_the_declared_one(empty: str) -> None:
    """A new database gets every table, column and index, and the migrations find nothing to do."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from agent_adapter.store.sql.migrate import upgrade

    store = PostgresStore(empty, key=KEY)
    assert store.schema_found is None
    await store.aclose()
    engine = sa.create_engine(empty.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        upgrade(connection)
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        # Indexes put NULL first, which the declarations cannot say for every database.
        found = compare_metadata(context, METADATA)
        assert [each for each in found if "index" not in each[0]] == []
        inspector = sa.inspect(connection)
        for name, table in METADATA.tables.items():
            made = {index["name"] for index in inspector.get_indexes(name)}
            assert made == {index.name for index in table.indexes}
    engine.dispose()


async def test_many_processes_may_open_a_new_database_at_once(empty: str) -> None:
    """One makes the tables, the others wait, and all use them."""
    stores = await asyncio.gather(
        *(asyncio.to_thread(PostgresStore, empty, key=KEY) for _ in range(4))
    )
    for store in stores:
        await store.write(lambda tx: tx.insert("runs", {"run_id": tx.owner_id}))
    assert await stores[0].read(lambda tx: tx.count("runs")) == 4
    await asyncio.gather(*(store.aclose() for store in stores))


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["CREATE TABLE calls (id int)"], "tables of another program"),
        (
            ["CREATE TABLE alembic_version (version_num text)"],
            "tables of another program",
        ),
    ],
)
def test_a_database_of_another_program_is_left_alone(
    empty: str, statements: list[str], said: str
) -> None:
    """Tables with our names, or another program's migrations, are no store."""
    run_sql(empty, *statements)
    with pytest.raises(StoreError, match=said):
        PostgresStore(empty, key=KEY)


async def test_a_newer_schema_is_refused(empty: str) -> None:
    """The error says what was found and what is known."""
    await PostgresStore(empty, key=KEY).aclose()
    run_sql(empty, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match=r"newer version .* \(its schema is 9999"):
        PostgresStore(empty, key=KEY)


async def test_another_key_is_refused(store: PostgresStore, url: str) -> None:
    """Two processes with different keys would break each other's seals."""
    with pytest.raises(StoreError, match="made with another key"):
        PostgresStore(url, key=bytes(32))


async def test_the_key_is_in_the_file_that_the_environment_names(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made for a new store, and asked for where it is missing."""
    monkeypatch.setenv("AGENT_ADAPTER_KEY_FILE", str(tmp_path / "key"))
    store = PostgresStore(url)
    assert store.key == (tmp_path / "key").read_bytes()
    await store.aclose()
    (tmp_path / "key").unlink()
    with pytest.raises(StoreError, match=r"the key .* is missing"):
        PostgresStore(url)


async def test_without_the_variable_the_key_is_in_the_home_directory(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name tells the database."""
    monkeypatch.delenv("AGENT_ADAPTER_KEY_FILE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    store = PostgresStore(url)
    (file,) = (tmp_path / ".agent_adapter").iterdir()
    assert file.name.endswith("-public.key") and file.read_bytes() == store.key
    await store.aclose()


def test_a_pooler_in_transaction_mode_is_refused(url: str) -> None:
    """Two clients on one back end have no sessions of their own."""
    one = connect(parameters_of(url))
    with pytest.raises(StoreError, match="pool_mode = session"):
        refuse_transaction_pooling(one, one, url)
    two = connect(parameters_of(url))
    refuse_transaction_pooling(one, two, url)
    one.close()
    two.close()


async def test_a_role_that_may_only_read_can_read(store: PostgresStore, url: str) -> None:
    """Its writes are refused with the table's name, and it leaves no row of its own."""
    await store.write(CountUp())
    role = f"viewer_{os.getpid()}"
    run_sql(
        url,
        f"DROP ROLE IF EXISTS {role}",
        f"CREATE ROLE {role} LOGIN",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}",
    )
    viewer = PostgresStore(url.replace("postgres@", f"{role}@"), key=KEY)
    assert await viewer.read(lambda tx: tx.count("usage")) == 1
    with pytest.raises(StoreError, match=r"the role may not do this: permission denied .* usage"):
        await viewer.write(CountUp())
    assert await viewer.read(lambda tx: tx.count("owners")) == 1
    await viewer.aclose()
    run_sql(url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


@pytest.mark.parametrize("names", [True, False])
async def test_no_update_is_lost_between_processes(
    store: PostgresStore, url: str, names: bool
) -> None:
    """Operations that name a key, and those that name none, wait for each other."""
    other = PostgresStore(url, key=KEY)
    ops = [CountUp(names=names) for _ in range(60)] + [CountUp() for _ in range(20)]
    await asyncio.gather(*((store, other)[i % 2].write(op) for i, op in enumerate(ops)))
    row = await store.read(lambda tx: tx.get("usage", "r", ""))
    assert row is not None and row["calls"] == len(ops)
    await other.aclose()


async def test_a_change_of_a_chain_that_was_not_named_runs_again_alone(
    store: PostgresStore,
) -> None:
    """The operation is taken back, and done with the whole store locked."""
    from agent_adapter.store import ledger

    class Wrong(CountUp):
        def __call__(self, tx: Transaction) -> int:
            ledger.append(tx, "other", "note", None, {})
            return super().__call__(tx)

    op = Wrong(names=True)
    assert await store.write(op) == 1
    assert op.ran == 2
    assert await store.read(lambda tx: tx.count("ledger", {"run_id": "other"})) == 1


def cutting(connect: Callable[[], Any], *, after: bool) -> Callable[[], Any]:
    """Connections of which the first is lost at its first commit: before or after it is done."""
    left = [True]

    def connected() -> Any:
        made = connect()
        execute = made.execute

        def cut(query: Any, *rest: Any) -> Any:
            if query == "COMMIT" and left:
                left.clear()
                if after:
                    execute(query)
                    with made.pipeline():
                        pass  # the server has done what was sent so far
                made.close()
                raise psycopg.OperationalError("cut")
            return execute(query, *rest)

        made.execute = cut
        return made

    return connected


@pytest.mark.parametrize(("after", "runs"), [(True, 1), (False, 2)])
async def test_a_commit_without_an_answer_is_looked_up(
    store: PostgresStore, after: bool, runs: int
) -> None:
    """What was committed is not done again; what was not is."""
    store._writer._connect = cutting(store._writer._connect, after=after)
    op = CountUp()
    assert await store.write(op) == 1
    assert op.ran == runs
    row = await store.read(lambda tx: tx.get("usage", "r", ""))
    assert row is not None and row["calls"] == 1


async def test_an_operation_that_the_server_refuses_harms_no_other(store: PostgresStore) -> None:
    """An error voids the transaction; the others of the batch are done again without it."""

    def refused(tx: Transaction) -> None:
        tx.insert("usage", {"run_id": "big", "tool": "", "calls": 2**80})

    good = [store.write(CountUp(f"r{i}")) for i in range(10)]
    bad = store.write(refused)
    *done, error = await asyncio.gather(*good, bad, return_exceptions=True)
    assert done == [1] * 10
    assert isinstance(error, StoreError) and "cannot be stored" in str(error)


async def test_a_change_is_told_to_other_processes(store: PostgresStore, url: str) -> None:
    """Who waits for one of its tables wakes up; who waits for another does not."""
    other = PostgresStore(url, key=KEY)
    told = asyncio.create_task(other.changed({"usage", "calls"}, 60))
    not_told = asyncio.create_task(other.changed({"sessions"}, 0.5))
    here = asyncio.create_task(store.changed({"usage"}, 60))
    await asyncio.sleep(0)
    await store.write(CountUp())
    assert await told is True
    assert await here is True
    assert await not_told is False
    await other.aclose()


async def test_a_change_before_the_wait_is_not_missed(store: PostgresStore) -> None:
    """Who looked before it happened is woken at once."""
    since = store.change
    await store.write(CountUp())
    assert await store.changed({"usage"}, 60, since) is True
    assert await store.changed({"usage"}, 0.05) is False


async def test_a_decision_wakes_the_call_that_waits_for_it(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another process, without looking again and again."""
    monkeypatch.setattr(watching, "LONGEST_SECONDS", 60.0)
    tools = aa.ToolRegistry()

    @tools.tool(confirm=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    executor = aa.Executor(tools, store=store, approval=aa.DeferredApproval(store, wait=60))
    other = PostgresStore(url, key=KEY)
    waiting = asyncio.create_task(executor.run("pay", {}, ctx=aa.ToolContext(run_id="r")))
    inbox = aa.Inbox(other)
    while not (found := await inbox.list()):
        await other.changed({"approvals"}, 5)
    await inbox.approve(found[0].id, reviewer="kim")
    assert await waiting == "paid"
    await other.aclose()


async def test_a_closed_store_leaves_and_a_lost_session_comes_back(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cut connection makes no live process dead; closing does at once."""
    monkeypatch.setattr(owners, "GRACE_SECONDS", 60.0)
    other = PostgresStore(url, key=KEY)
    gone = other.owner_id
    run_sql(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    assert await store.read(lambda tx: tx.is_live(gone)) is True
    await other.aclose()
    assert await store.read(lambda tx: tx.is_live(gone)) is False


async def test_a_forked_child_is_another_process(url: str) -> None:
    """It has its own connections and owner id, and leaves the parent's alone."""
    store = PostgresStore(url, key=KEY)
    await store.write(CountUp())
    parent = store.owner_id
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.run(_in_child(store, parent))
            code = 0
        finally:
            os._exit(code)
    assert (await asyncio.to_thread(os.waitpid, child, 0))[1] == 0
    assert await store.write(CountUp()) == 3
    assert store.owner_id == parent
    await store.aclose()


async def _in_child(store: PostgresStore, parent: str) -> None:
    assert await store.write(CountUp()) == 2
    assert store.owner_id != parent
    assert await store.read(lambda tx: tx.is_live(parent)) is True
    await store.aclose()


@pytest.mark.parametrize(
    "url",
    ["postgresql://me:s3cret@h/db", "postgres://h/db?user=me&password=s3cret&sslmode=require"],
)
def test_a_url_is_shown_without_its_password(url: str) -> None:
    """Wherever it stands in the URL."""
    assert "s3cret" not in shown(url) and "***" in shown(url)


def test_what_is_no_url_is_told() -> None:
    """The error shows the form."""
    with pytest.raises(StoreError, match="postgresql://user:password@host:5432/database"):
        PostgresStore("postgresql://h/db?colour=red", key=KEY)


class Held:
    """Writes an event of a channel, and holds its transaction open until it is let go."""

    def __init__(self, channel_id: str) -> None:
        self.channel_id = channel_id
        self.began, self.let_go = threading.Event(), threading.Event()

    def keys(self) -> frozenset[str]:
        """Its channel."""
        return keys_of_channel(self.channel_id)

    def __call__(self, tx: Transaction) -> int:
        """The position of the event."""
        position = written(tx, self.channel_id)
        self.began.set()
        assert self.let_go.wait(60)
        return position


class Posted(Held):
    """Writes an event of a channel."""

    def __call__(self, tx: Transaction) -> int:
        """The position of the event."""
        return written(tx, self.channel_id)


def written(tx: Transaction, channel_id: str) -> int:
    """Write one record about a channel; its position among all events."""
    audit.write(tx, "note", {"channel_id": channel_id})
    return positions.used(tx)


async def test_two_channels_are_written_side_by_side(store: PostgresStore, url: str) -> None:
    """While one is being changed another process changes another, and waits for that one."""
    other = PostgresStore(url, key=KEY)
    held = Held("a")
    first = asyncio.create_task(store.write(held))
    assert await asyncio.to_thread(held.began.wait, 60)
    assert await other.write(Posted("b")) > 0
    same = asyncio.create_task(other.write(Posted("a")))
    await asyncio.sleep(0.1)
    assert not same.done() and not first.done()
    held.let_go.set()
    assert await first < await same
    await other.aclose()


async def test_an_event_is_read_only_when_none_before_it_may_come(
    store: PostgresStore, url: str
) -> None:
    """A reader waits for an earlier event that is not committed yet, and so misses none."""
    other = PostgresStore(url, key=KEY)
    held = Held("a")
    first = asyncio.create_task(store.write(held))
    assert await asyncio.to_thread(held.began.wait, 60)
    second = await other.write(Posted("b"))
    asked = asyncio.create_task(other.settled())
    await asyncio.sleep(0.1)
    assert not asked.done()
    held.let_go.set()
    assert await first < second
    before = await asked
    assert before is not None and before > second
    page = await other.read(lambda tx: read_events(tx, 0, before=before))
    assert [event.channel_id for event in page.events] == ["a", "b"]
    await other.aclose()


async def test_a_writer_that_stands_still_keeps_later_events_back(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader goes on after a while with what is surely whole, and gets the rest later."""
    monkeypatch.setattr(settling, "_MOST_SECONDS", 0.05)
    other = PostgresStore(url, key=KEY)
    earlier = await other.write(Posted("b"))
    held = Held("a")
    first = asyncio.create_task(store.write(held))
    assert await asyncio.to_thread(held.began.wait, 60)
    later = await other.write(Posted("c"))
    before = await other.settled()
    assert before is not None and earlier < before <= later
    page = await other.read(lambda tx: read_events(tx, 0, before=before))
    assert [event.channel_id for event in page.events] == ["b"]
    held.let_go.set()
    assert before <= await first
    before = await other.settled()
    page = await other.read(lambda tx: read_events(tx, page.position, before=before))
    assert [event.channel_id for event in page.events] == ["a", "c"]
    await other.aclose()


async def test_a_program_with_its_own_clock_is_told_no_position(url: str) -> None:
    """Positions follow its clock, which says nothing about those of others."""
    made = PostgresStore(url, key=KEY, clock=lambda: 5.0)
    assert await made.settled() is None
    await made.aclose()
