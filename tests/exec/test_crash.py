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

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CALLS = 200
KILLS = 13


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


@pytest.mark.parametrize("seed", range(4))
async def test_a_killed_process_never_pays_twice(tmp_path: Path, seed: int) -> None:
    """200 writes over 13 kills: each ran at most once, ended ones are known, others in doubt."""
    chance = random.Random(seed)
    kills = 0
    for attempt in range(1, KILLS + 1):
        kills += killed_worker(tmp_path, attempt, chance.randint(1, 24))
        ended, doubted = await check(tmp_path)
        assert ended + doubted <= CALLS
        if ended + doubted == CALLS:
            break
    assert kills >= KILLS - 1 or ended + doubted == CALLS
    assert not killed_worker(tmp_path, KILLS + 1, CALLS + 1)
    ended, doubted = await check(tmp_path)
    assert ended + doubted == CALLS
