"""Several processes on one SQLite file: real processes, real forks, real kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_adapter.store.sqlite import SqliteStore

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a POSIX system"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store of a test is."""
    return tmp_path / "state.db"


def _start(name: str, path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-W",
            "error",
            "-m",
            "tests.store._processes",
            name,
            str(path),
            *arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _go(folder: Path, processes: list[subprocess.Popen[str]]) -> None:
    """Let the processes go on together once all of them are ready."""
    deadline = time.monotonic() + 180
    while len(list(folder.glob("ready-*"))) < len(processes):
        assert time.monotonic() < deadline, "the processes did not start"
        for process in processes:
            assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    (folder / "go").touch()


def _output(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    assert err == ""
    return out.strip()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line, process.stderr and process.stderr.read()
    return line


def _kill(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGKILL)
    assert process.stdout is not None
    with process:  # `communicate` would pass by what `readline` has buffered
        return process.stdout.read()


@pytest.mark.slow
async def test_eight_processes_write_for_thirty_seconds(path: Path) -> None:
    """Nobody meets a locked database, nobody waits above 2 s, and no row is lost."""
    processes = [_start("hammer", path, str(i), "30") for i in range(8)]
    _go(path.parent, processes)
    results = [_output(process).split() for process in processes]
    numbers, waits = [int(r[0]) for r in results], [float(r[1]) for r in results]
    assert min(numbers) > 0
    assert max(waits) < 2.0, waits
    store = SqliteStore(path)
    assert await store.read(lambda tx: tx.count("runs")) == sum(numbers)
    row = await store.read(lambda tx: tx.get("usage", "all", ""))
    assert row is not None and row["calls"] == sum(numbers)
    await store.aclose()


async def test_processes_that_open_a_new_file_at_once_agree(path: Path) -> None:
    """One migrates, the others wait, and all have one key."""
    processes = [_start("open_at_once", path) for _ in range(4)]
    _go(path.parent, processes)
    keys = {_output(process) for process in processes}
    store = SqliteStore(path)
    assert keys == {store.key.hex()}
    assert await store.read(lambda tx: tx.count("runs")) == 4
    await store.aclose()


async def test_a_killed_process_is_dead_at_once(path: Path) -> None:
    """The owner id of a process is live while it runs and dead right after SIGKILL."""
    holder = _start("hold", path)
    owner_id = _line(holder)
    store = SqliteStore(path)
    assert await store.read(lambda tx: tx.is_live(owner_id)) is True
    _kill(holder)
    assert await store.read(lambda tx: tx.is_live(owner_id)) is False
    assert await store.read(lambda tx: tx.count("calls", {"owner_id": owner_id})) == 1
    await store.aclose()


async def test_what_a_killed_process_was_told_is_durable_is_there(path: Path) -> None:
    """After SIGKILL every acknowledged row is in the file, and at most one more."""
    writer = _start("count_up", path)
    seen = int([_line(writer) for _ in range(50)][-1])
    rest = _kill(writer).split("\n")
    seen = max([seen, *(int(line) for line in rest[:-1] if line)])
    store = SqliteStore(path)
    assert await store.read(lambda tx: tx.count("ledger")) - (seen + 1) in (0, 1)
    await store.aclose()


async def test_posts_are_written_when_the_program_ends(path: Path) -> None:
    """A program that posts and ends without closing loses nothing."""
    assert _output(_start("post_and_leave", path)) == ""
    store = SqliteStore(path)
    assert await store.read(lambda tx: tx.count("runs")) == 100
    await store.aclose()


async def test_a_forked_child_has_a_store_of_its_own(path: Path) -> None:
    """Child and parent write to the file, with different owner ids, each seeing the other live."""
    child, parent = _output(_start("fork_and_write", path)).split("\n")
    assert child == "True True"
    assert parent == "3 True"


async def test_a_child_does_not_keep_its_dead_parent_alive(path: Path) -> None:
    """A parent that was killed is dead although its forked child still runs."""
    process = _start("fork_and_outlive", path)
    owner_id, child = _line(process).split()
    store = SqliteStore(path)
    try:
        assert await store.read(lambda tx: tx.is_live(owner_id)) is True
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=120)
        assert await store.read(lambda tx: tx.is_live(owner_id)) is False
    finally:
        os.kill(int(child), signal.SIGKILL)
        process.communicate(timeout=120)
        await store.aclose()
