"""Ids by a unique beginning, and their completion."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import agent_adapter as aa

from .conftest import Run


async def _copy(id: str, *names: str) -> None:
    """More records like one."""
    store = aa.open_store()

    def op(tx: object) -> None:
        row = tx.get("approvals", id)  # type: ignore[attr-defined]
        for name in names:
            tx.insert("approvals", row | {"id": name, "call_key": name})  # type: ignore[attr-defined]

    await store.write(op)
    await store.aclose()


@pytest.mark.parametrize("length", [5, 10, 20])
def test_a_unique_beginning_is_enough(run: Run, held: str, length: int) -> None:
    """For showing and for deciding; the output has the whole id."""
    assert run("approvals", "show", held[:length], "--json").json["id"] == held
    assert held in run("approvals", "deny", held[:length]).out
    assert run("approvals", "show", held, "--json").json["state"] == "denied"


@pytest.mark.alters_store
def test_an_ambiguous_beginning_lists_them(run: Run, held: str) -> None:
    """Nothing is decided; an id that is exactly so is taken, though others begin with it."""
    asyncio.run(_copy(held, "apr_zz1", "apr_zz12", "apr_zz2"))
    ran = run("approvals", "deny", "apr_zz")
    assert ran.code == 1 and all(name in ran.err for name in ("apr_zz1", "apr_zz12", "apr_zz2"))
    assert len(run("approvals", "list", "--json").json) == 4
    assert "apr_zz1:" in run("approvals", "deny", "apr_zz1").out


def test_the_mark_alone_is_no_beginning(run: Run, held: str) -> None:
    """`apr_` and shorter name nothing, also where there is one record."""
    for written in ("apr_", "apr", "a", ""):
        assert run("approvals", "deny", written).code == 1
    assert run("approvals", "show", held, "--json").json["state"] == "pending"


def test_another_tenant_s_ids_are_not_found(run: Run, held: str) -> None:
    """A beginning is looked for in the tenant of the command."""
    ran = run("approvals", "show", held[:12], "--tenant", "acme")
    assert ran.code == 1 and held not in ran.err


def test_calls_runs_and_tokens(run: Run) -> None:
    """The other kinds of ids too."""
    run("tools", "call", "shop.py", "break_down", "how=badly", "--run", "nightly-2026-03-01")
    key = run("ledger", "in-doubt", "--json").json[0]["call_key"]
    assert run("runs", "show", "nightly", "--json").json["calls"][0]["call_key"] == key
    assert run("ledger", "show", "nightly-20", "--json").json[0]["run_id"] == "nightly-2026-03-01"
    assert key in run("ledger", "resolve", key[:12], "--not-happened").out
    token = run("tokens", "create", "kim", "--json").json["id"]
    assert run("tokens", "revoke", token[:10], "--json").json["id"] == token


def _completed(*words: str) -> list[str]:
    asked = {
        "_AGENT_ADAPTER_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("agent-adapter", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [sys.executable, "-m", "agent_adapter"],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.split()


def test_ids_and_tools_are_completed(run: Run, held: str) -> None:
    """From the store, and from the registry of the target."""
    assert _completed("approvals", "show", held[:8]) == [held]
    assert _completed("tools", "show", "shop.py", "ref") == ["refund"]


def test_completion_creates_nothing(run: Run, tmp_path: Path) -> None:
    """Without a store, or with a broken target, there is nothing to complete."""
    assert _completed("approvals", "show", "apr_") == []
    assert _completed("tools", "show", "none.py", "ref") == []
    assert not (tmp_path / ".agent_adapter").exists()
