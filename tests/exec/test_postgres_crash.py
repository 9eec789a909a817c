"""Killed processes, ended connections and a crashed server under PostgreSQL: nothing runs twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.exec import ledger
from agent_adapter.store.base import Transaction
from agent_adapter.store.postgres import PostgresStore, owners
from tests.exec.workers import registry
from tests.postgres import Server, database, why_not
from tests.sampling import sample

psycopg = pytest.importorskip("psycopg")
pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(600)]

KEY = bytes(range(32))
SECONDS = sample("seconds of ended connections", quick=5, full=30)
KILLS = sample("kills over PostgreSQL", quick=2, full=100)
ROUNDS = sample("races over PostgreSQL", quick=8, full=100)


@pytest.fixture
def url() -> Iterator[str]:
    """A database with empty tables."""
    with database() as found:
        yield found


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What worker processes need: the store's key in a file."""
    key = tmp_path / "key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    return {**os.environ, "AGENT_ADAPTER_KEY_FILE": str(key)}


class Shop:
    """A tool that pays, and what it did; many payments at a time until the time is over."""

    def __init__(self, store: Any) -> None:
        self.effects: Counter[int] = Counter()
        self.told: set[int] = set()
        self._store = store
        tools = aa.ToolRegistry()

        @tools.tool
        async def pay(number: int) -> str:
            """Pay one invoice."""
            self.effects[number] += 1
            await asyncio.sleep(0)
            return f"paid {number}"

        self._executor = aa.Executor(tools, store=store)

    async def pay_for(self, seconds: float, at_once: int = 16) -> None:
        """Pay one invoice after the other; a call that fails is left as it is."""
        numbers = iter(range(1_000_000))
        until = time.monotonic() + seconds

        async def some() -> None:
            while time.monotonic() < until:
                number = next(numbers)
                try:
                    ctx = aa.ToolContext(run_id=f"run_{number % 8}")
                    await self._executor.run("pay", {"number": number}, ctx=ctx)
                except (aa.AgentAdapterError, aa.StoreError):
                    continue
                self.told.add(number)

        await asyncio.gather(*(some() for _ in range(at_once)))

    async def check(self) -> None:
        """No payment was made twice; each is recorded, or in doubt; the chains are whole."""
        await self._executor.runtime.in_flight.settle_lost()
        await self._store.flush()
        report = await ledger.verify(self._store)
        assert report.ok, report.problems
        assert set(self.effects.values()) <= {1}
        assert self.told <= set(self.effects)
        rows = await self._store.read(lambda tx: tx.select("calls"))
        assert len({row["digest"] for row in rows}) == len(rows), "an intent was written twice"
        ended = [row for row in rows if row["ending"] == "ok"]
        doubted = {row["call_key"] for row in await ledger.in_doubt(self._store)}
        unclear = {row["call_key"] for row in rows if row["ending"] not in ("ok", "aborted")}
        assert unclear <= doubted
        assert len(self.told) <= len(ended) <= len(self.effects) <= len(ended) + len(doubted)


def ending_connections(url: str, stop: threading.Event, chance: random.Random) -> int:
    """End connections to the database at random until told to stop; how many."""
    ended = 0
    with psycopg.connect(url, autocommit=True) as admin:
        while not stop.wait(chance.uniform(0.01, 0.15)):
            row = admin.execute(
                "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " ORDER BY random() LIMIT 1"
            ).fetchone()
            ended += row is not None
    return ended


async def test_connections_that_are_ended_at_random_lose_and_repeat_nothing(url: str) -> None:
    """The writer, the readers and the session of a process are cut off under load."""
    store = PostgresStore(url, key=KEY)
    shop, stop = Shop(store), threading.Event()
    cutting = asyncio.create_task(
        asyncio.to_thread(ending_connections, url, stop, random.Random(1))
    )
    await shop.pay_for(SECONDS)
    stop.set()
    assert await cutting > SECONDS
    assert shop.told
    await shop.check()
    await store.aclose()


async def test_a_server_that_crashes_and_comes_back_loses_and_repeats_nothing() -> None:
    """It is killed under load and started again, with its disk writes on."""
    reason = why_not()
    if reason is not None or os.environ.get("TEST_POSTGRES_URL"):
        pytest.skip(reason or "a server that is not the tests' own is not killed")
    server = Server(safe=True)
    try:
        store = PostgresStore(server.url(), key=KEY)
        shop = Shop(store)
        paying = asyncio.create_task(shop.pay_for(SECONDS + 2))
        for _ in range(2):
            await asyncio.sleep(SECONDS / 4)
            await asyncio.to_thread(server.stop, signal.SIGQUIT)
            await asyncio.to_thread(server.start)
        await paying
        assert shop.told
        await shop.check()
        await store.aclose()
    finally:
        server.close()


def run_worker(
    name: str, url: str, folder: Path, environment: dict[str, str], *rest: str
) -> subprocess.Popen[bytes]:
    """A process of `tests.exec.workers`."""
    command = [sys.executable, "-m", "tests.exec.workers", name, url, str(folder / "effects")]
    return subprocess.Popen(
        [*command, *rest], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


async def eventually(check: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What `check` gives once it is true."""
    until = time.monotonic() + seconds
    while not (found := await check()):
        assert time.monotonic() < until
        await asyncio.sleep(0.1)
    return found


async def test_a_killed_process_leaves_its_writes_in_doubt(
    url: str, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each SIGKILL a write ran at most once, and is recorded or in doubt."""
    monkeypatch.setattr(owners, "GRACE_SECONDS", 0.5)
    store = PostgresStore(url, key=KEY)
    chance = random.Random(7)
    for kill in range(KILLS):
        folder = tmp_path / str(kill)
        folder.mkdir()
        left = chance.randint(1, 20)
        with run_worker("pay_all", url, folder, environment, str(kill + 1), "400") as worker:
            assert worker.stdout is not None
            while left and (byte := await asyncio.to_thread(worker.stdout.read, 1)):
                left -= byte == b"."
            worker.send_signal(signal.SIGKILL)
        rows = await store.read(lambda tx: tx.select("calls"))
        unclear = {row["call_key"] for row in rows if row["ending"] != "ok"}

        async def are_doubted(unclear: set[str] = unclear) -> bool:
            return unclear <= {row["call_key"] for row in await ledger.in_doubt(store)}

        await eventually(are_doubted)
    effects: Counter[int] = Counter()
    for file in tmp_path.glob("*/effects"):
        effects.update(map(int, file.read_text().split()))
    assert set(effects.values()) == {1}
    report = await ledger.verify(store)
    assert report.ok, report.problems
    rows = await store.read(lambda tx: tx.select("calls"))
    ended = [row for row in rows if row["ending"] == "ok"]
    assert len(ended) <= len(effects) <= len(rows)
    await store.aclose()


@pytest.mark.parametrize("how", ["resume", "call"])
async def test_of_two_processes_one_runs_an_approved_record(
    url: str, tmp_path: Path, environment: dict[str, str], how: str
) -> None:
    """Both race for the same record; the tool runs in one of them, each time."""
    store = PostgresStore(url, key=KEY)
    executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)
    racers = [run_worker("race", url, tmp_path, environment) for _ in range(2)]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == b"ready\n"
    for number in range(ROUNDS):
        with pytest.raises(aa.ApprovalPending) as pending:
            ctx = aa.ToolContext(run_id=f"run_{number}")
            await executor.run("refund", {"number": number}, ctx=ctx)
        await aa.Inbox(store).approve(pending.value.id, reviewer="kim")
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write(f"{pending.value.id} {number} {how}\n".encode())
            racer.stdin.flush()
        for racer in racers:
            assert racer.stdout is not None
            said = racer.stdout.readline().strip().decode()
            assert said in ("ok", "tool-in-flight", "approval-denied", "approval-pending")
        ran = (tmp_path / "effects").read_text().split()
        assert ran == [str(done) for done in range(number + 1)]
    for racer in racers:
        racer.communicate()
        assert racer.returncode == 0
    await store.aclose()


LOSES = {"ship": {"ok", "tool-in-flight"}, "spend": {"run-limit-exceeded"}, "turn": {"lost"}}
"""What whoever comes second is told; a thing that was shipped meanwhile is shipped."""


async def test_of_two_processes_one_gets_what_is_there_once(
    url: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    """Both race for one once key, one budget and one turn; one of them has it, each time."""
    store = PostgresStore(url, key=KEY)
    await store.write(_due_turns)
    racers = [run_worker("contend", url, tmp_path, environment, name) for name in ("ann", "ben")]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == b"ready\n"
    for number in range(ROUNDS):
        for what, loses in LOSES.items():
            for racer in racers:
                assert racer.stdin is not None
                racer.stdin.write(f"{what} {number}\n".encode())
                racer.stdin.flush()
            said = [racer.stdout.readline().strip().decode() for racer in racers if racer.stdout]
            assert "ok" in said
            assert said.count("ok") == 1 or "ok" in loses
            assert set(said) <= {"ok", *loses}
        # One was shipped, and as many spent.
        ran = (tmp_path / "effects").read_text().split()
        assert ran == [str(done) for done in range(number + 1) for _ in ("ship", "spend")]
    for racer in racers:
        racer.communicate()
        assert racer.returncode == 0
    turns = await store.read(lambda tx: tx.select("turns"))
    assert [(row["state"], row["attempt"]) for row in turns] == [("running", 1)] * ROUNDS
    report = await ledger.verify(store)
    assert report.ok, report.problems
    await store.aclose()


def _due_turns(tx: Transaction) -> None:
    for number in range(ROUNDS):
        turn = {"turn_id": f"turn_{number}", "channel_id": "chn_race", "agent_id": "agt_a"}
        numbers = {"n": number, "attempt": 0, "fails": 0, "due_at": tx.now}
        tx.insert("turns", turn | numbers | {"state": "due"})
