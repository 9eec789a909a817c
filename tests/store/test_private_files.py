"""T7: the files of a store are for their owner alone, whatever the umask."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent_adapter.core.errors import AgentAdapterError, StoreError
from agent_adapter.store.opening import open_store
from agent_adapter.store.sqlite import SqliteStore
from agent_adapter.store.sqlite.backup import copy_store

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX"),
]

PROGRAM = """
import asyncio, os, pathlib, sys
os.umask(int(sys.argv[1], 8))
os.chdir(sys.argv[2])
import agent_adapter as aa
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.upkeep import back_up

def keep(n: int) -> str:
    "Keep."
    return "x" * 200_000

async def main():
    store = aa.open_store(sys.argv[3] or None)
    executor = aa.Executor(store=store, max_result_bytes=1_000, keep_large_results=True)
    try:
        await executor.run_spec(ToolSpec.from_function(keep), {"n": 1}, aa.ToolContext("c", "r"))
    except aa.GuardrailBlocked:
        pass
    modes = {}
    for file in pathlib.Path(".").rglob("*"):
        modes[str(file)] = file.stat().st_mode & 0o777
    await back_up(store, "copy.db")
    for file in pathlib.Path(".").rglob("*"):
        modes[str(file)] = file.stat().st_mode & 0o777
    await store.aclose()
    for file, mode in sorted(modes.items()):
        print(file, oct(mode))

asyncio.run(main())
"""


@pytest.mark.parametrize("umask", ["022", "000", "002"])
@pytest.mark.parametrize("url", ["sqlite:///s.db", ""])
def test_t7_no_file_of_a_store_is_readable_by_others(umask: str, url: str, tmp_path: Path) -> None:
    """T7: database, log, shared memory, key, owners, results and copy are 0600 in each umask."""
    run = [sys.executable, "-c", PROGRAM, umask, str(tmp_path), url]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=True)
    modes = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines() if " 0o" in line)
    name = "s.db" if url else ".agent_adapter/state.db"
    expected = {name, f"{name}-wal", f"{name}-shm", f"{name}.key", "copy.db", "copy.db.key"}
    assert expected <= modes.keys(), done.stdout
    assert any(".results/" in file for file in modes)
    assert {file: mode for file, mode in modes.items() if int(mode, 8) & 0o077} == {}


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
async def test_t7_a_key_that_others_can_read_is_refused(mode: int, tmp_path: Path) -> None:
    """T7: whoever reads the key can forge the ledger, and the command that mends it is named."""
    path = tmp_path / "s.db"
    await SqliteStore(path).aclose()
    key = path.with_name("s.db.key")
    key.chmod(mode)
    with pytest.raises(
        StoreError, match=r"can be read or changed by others.*chmod 600 .*s\.db\.key"
    ):
        SqliteStore(path)
    key.chmod(0o600)
    await SqliteStore(path).aclose()


async def test_t7_a_link_in_the_place_of_a_new_key_is_not_followed(tmp_path: Path) -> None:
    """T7: nothing is written where a dangling link leads to."""
    path, elsewhere = tmp_path / "s.db", tmp_path / "elsewhere"
    path.with_name("s.db.key").symlink_to(elsewhere)
    with pytest.raises(StoreError, match=r"key .* is missing"):
        SqliteStore(path)
    assert not elsewhere.exists()


async def test_t7_a_copy_of_a_store_follows_no_link(tmp_path: Path) -> None:
    """T7: neither the copy nor its key is written through a link, nor is a link replaced."""
    path, elsewhere = tmp_path / "s.db", tmp_path / "elsewhere"
    await SqliteStore(path).aclose()
    for name in ("copy.db", "copy.db.key"):
        link = tmp_path / name
        link.symlink_to(elsewhere)
        with pytest.raises(StoreError, match="exists already"):
            copy_store(path, tmp_path / "copy.db")
        link.unlink()
    assert not elsewhere.exists()


@pytest.mark.parametrize("name", ["kim.key", "kim.key.pub"])
def test_t7_a_reviewers_key_follows_no_link(name: str, tmp_path: Path) -> None:
    """T7: `keys create` writes neither half through a link, and leaves no half behind."""
    pytest.importorskip("cryptography")
    from agent_adapter.exec.approval.signing import create_key

    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / name).symlink_to(victim)
    with pytest.raises(AgentAdapterError, match="is there already"):
        create_key(tmp_path / "kim.key")
    assert victim.read_text() == "mine"
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([name, "victim"])


async def test_t7_a_store_in_a_file_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    """T7: a file that its owner shares on purpose stays shared; nothing is opened wider."""
    path = tmp_path / "s.db"
    path.touch(mode=0o600)
    store = open_store(path)
    await store.aclose()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
