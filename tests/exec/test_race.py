"""Two processes and one approved record."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import agent_adapter as aa
from tests.exec.workers import registry

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ROUNDS = 100


@pytest.fixture
def racers(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Two workers that wait for a record to run."""
    command = [sys.executable, "-m", "tests.exec.workers", "race"]
    files = [str(tmp_path / "state.db"), str(tmp_path / "effects")]
    aa.open_store(f"sqlite:///{files[0]}")
    workers = [
        subprocess.Popen(
            [*command, *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    yield workers
    for worker in workers:
        worker.communicate()
        assert worker.returncode == 0


@pytest.mark.parametrize("how", ["resume", "call"])
async def test_one_approved_record_runs_once(
    racers: list[subprocess.Popen[str]], tmp_path: Path, how: str
) -> None:
    """A4: of two processes racing for one approved record exactly one runs the tool, each time."""
    store = aa.open_store(f"sqlite:///{tmp_path / 'state.db'}")
    executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)
    for number in range(ROUNDS):
        ctx = aa.ToolContext(run_id=f"run_{number}")
        with pytest.raises(aa.ApprovalPending) as pending:
            await executor.run("refund", {"number": number}, ctx=ctx)
        await aa.Inbox(store).approve(pending.value.id, reviewer="kim")
        for worker in racers:
            assert worker.stdin is not None
            worker.stdin.write(f"{pending.value.id} {number} {how}\n")
            worker.stdin.flush()
        for worker in racers:
            assert worker.stdout is not None
            assert worker.stdout.readline().strip() in (
                "ok",
                "tool-in-flight",
                "approval-denied",
                "approval-pending",
            )
        ran = (tmp_path / "effects").read_text().split()
        assert ran == [str(done) for done in range(number + 1)]
    await store.aclose()
