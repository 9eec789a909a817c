"""What a SIGKILL leaves behind: nothing run twice, nothing finished lost, the rest in doubt."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import agent_adapter as aa
from agent_adapter.exec import ledger
from tests.sampling import sample

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CALLS = 200
KILLS = sample("kills", quick=50, full=1_000)


def killed_worker(folder: Path, attempt: int, after: int) -> bool:
    """Run the paying worker and SIGKILL it when `after` payments were made; whether it was."""
    command = [sys.executable, "-m", "tests.exec.workers", "pay_all"]
    files = [str(folder / "state.db"), str(folder / "effects"), str(attempt), str(CALLS)]
    with subprocess.Popen([*command, *files], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        left = after
        while left and (byte := worker.stdout.read(1)):
            if byte == b"e":
                return False
            left -= byte == b"."
        worker.send_signal(signal.SIGKILL)
    return worker.returncode == -signal.SIGKILL


async def check(folder: Path) -> tuple[int, int]:
    """Reopen the store: how many calls have ended well, and how many are in doubt."""
    effects = Counter(map(int, (folder / "effects").read_text().split()))
    assert set(effects.values()) <= {1}, "a write ran twice"
    store = aa.open_store(f"sqlite:///{folder / 'state.db'}")
    try:
        report = await ledger.verify(store)
        assert report.ok, report.problems
        rows = await store.read(lambda tx: tx.select("calls", {"run_id": "run_pay"}))
        doubted = {row["call_key"] for row in await ledger.in_doubt(store)}
    finally:
        await store.aclose()
    ended = [row for row in rows if row["ending"] == "ok"]
    assert {row["call_key"] for row in rows} == {row["call_key"] for row in ended} | doubted
    assert len(ended) <= len(effects) <= len(ended) + len(doubted)
    return len(ended), len(doubted)


async def killed_run(folder: Path, chance: random.Random) -> int:
    """Let workers pay until every call has ended or is in doubt, killing each; how many kills."""
    folder.mkdir()
    kills = attempts = ended = doubted = 0
    while ended + doubted < CALLS:
        attempts += 1
        kills += killed_worker(folder, attempts, chance.randint(1, 24))
        ended, doubted = await check(folder)
        assert ended + doubted <= CALLS
    assert not killed_worker(folder, attempts + 1, CALLS + 1)
    assert await check(folder) == (ended, doubted)
    return kills


@pytest.mark.timeout(7200)
async def test_a_killed_process_never_pays_twice(tmp_path: Path) -> None:
    """Over all kills, each write ran at most once, ended ones are known, the others in doubt."""
    kills = runs = 0
    while kills < KILLS:
        kills += await killed_run(tmp_path / str(runs), random.Random(runs))
        runs += 1
