"""A pytest plug-in, `-p tests.verified_stores`: verifies every store that a test leaves.

A test that changes a store on purpose lists what it must find instead; it is left out here: by its
module, with the reason, or by the mark `alters_store`. What another test leaves must verify:
`ledger verify` raises no false alarm.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.core.errors import StoreError
from agent_adapter.exec import ledger
from agent_adapter.store.opening import open_store

ALTERED = {
    "tests.exec.test_tampering": "changes rows, one by one",
    "tests.exec.test_ledger": "changes entries",
    "tests.exec.test_ledger_seal": "changes heads and keys",
    "tests.exec.test_old_store": "holds a store of 0.1 that was changed",
    "tests.network.test_altered_channels": "changes logs and graphs",
    "tests.cli.test_ledger": "changes rows between commands",
    "tests.store": "writes rows by hand, and changes roles and log-ins",
}
"""Modules and folders whose tests change stores on purpose."""

_counted = {"stores": 0}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Verify what lies in the test's folder, once nothing holds it any more."""
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    yield
    module = getattr(getattr(item, "module", None), "__name__", "")
    if folder is None or item.get_closest_marker("alters_store") or _is_altering(module):
        return
    wrong = [said for path in sorted(folder.rglob("*.db")) for said in _problems(path)]
    if wrong:
        pytest.fail(f"{item.nodeid} left a store that does not verify: {wrong}", pytrace=False)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many stores this process has verified."""
    terminalreporter.write_line(f"verified stores: {_counted['stores']}")


def _is_altering(module: str) -> bool:
    return module in ALTERED or module.rpartition(".")[0] in ALTERED


def _problems(path: Path) -> list[str]:
    """What `verify` finds in the store, if the file is one that this version wrote."""
    if not _is_a_store(path):
        return []
    try:
        found = asyncio.run(_verified(path))
    except StoreError:
        return []  # one that refuses to open is another test's matter
    _counted["stores"] += 1
    return [f"{path.name}: {each}" for each in found]


def _is_a_store(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    except sqlite3.Error:
        return False
    return {"calls", "ledger", "chain_heads", "changes"} <= names | {"changes"}


async def _verified(path: Path) -> list[str]:
    store = open_store(f"sqlite:///{path}")
    try:
        report = await ledger.verify(store)
    finally:
        await store.aclose()
    return [] if report.ok else [str(report)]
