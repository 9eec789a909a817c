"""A store file of version 0.1: opened, migrated, verified, and gone on with."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_adapter.core.errors import ApprovalDenied
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.exec import ledger
from agent_adapter.exec.approval.inbox import Inbox
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.exec.executor import Executor
from agent_adapter.store.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

FIXTURE = Path(__file__).parents[1] / "fixtures" / "stores" / "0.1.db.gz"
"""Two runs: three writes (one in doubt) and an untrusted read; a record pending, one denied, one
approved. The key is the bytes from 0 to 31."""

KEY = bytes(range(32))
OPENED = 1_800_000_000.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file as version 0.1 left it."""
    copy = tmp_path / "state.db"
    copy.write_bytes(gzip.decompress(FIXTURE.read_bytes()))
    return copy


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    """The file, opened by this version."""
    opened = SqliteStore(path, key=KEY, clock=lambda: OPENED)
    yield opened
    await opened.aclose()


def _registry(ran: list[str]) -> ToolRegistry:
    registry = ToolRegistry()

    @registry.tool(effects="write", confirm=True)
    def pay(order: str, amount: int) -> str:
        """Pays an order."""
        ran.append(order)
        return f"paid {order}"

    return registry


async def test_r16_a_store_of_0_1_verifies_from_when_it_was_opened(store: SqliteStore) -> None:
    """Its chains are whole, and the report says since when its rows are vouched for."""
    report = await ledger.verify(store)
    assert report.problems == () and report.trusted_from == OPENED
    assert (report.calls, report.in_doubt) == (4, 1)
    kinds = [entry.kind for entry in await ledger.entries(store, "run_1")]
    assert kinds.count("baseline") == 1


async def test_a_baseline_is_written_once(store: SqliteStore, path: Path) -> None:
    """Opening the file again adds nothing, so that no later change is vouched for."""
    before = (await ledger.verify(store)).entries
    await store.aclose()
    again = SqliteStore(path, key=KEY, clock=lambda: OPENED + 10)
    report = await ledger.verify(again)
    await again.aclose()
    assert (report.entries, report.trusted_from) == (before, OPENED)


async def test_r16_a_change_after_the_migration_is_found(store: SqliteStore, path: Path) -> None:
    """In a row that version 0.1 wrote."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE approvals SET payload = '{}' WHERE state = 'pending'")
    connection.close()
    assert any("was changed" in problem for problem in (await ledger.verify(store)).problems)


async def test_an_approval_of_0_1_is_decided_and_run(store: SqliteStore) -> None:
    """Pending since before the upgrade, it binds the same call, which runs once."""
    ran: list[str] = []
    executor = Executor(_registry(ran), store=store, approval=DeferredApproval(store))
    inbox = Inbox(store)
    (record,) = await inbox.list()
    await inbox.approve(record.id, reviewer="ann")
    assert await executor.resume(record.id) == "paid P0"
    assert await executor.resume(record.id) == "paid P0" and ran == ["P0"]
    assert (await ledger.verify(store)).ok


async def test_a_switch_of_0_1_still_holds(store: SqliteStore) -> None:
    """A run that was cancelled before the upgrade stays so."""
    from tests.exec.shop import ARGS, Till, in_run

    with pytest.raises(ApprovalDenied, match="the run was cancelled"):
        await Executor(store=store).run_spec(Till().spec, ARGS, in_run("run_1"))
