"""A shop's tools in a file, a store beside it, and the command line called in process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.cli import main

SHOP = '''
import agent_adapter as aa

registry = aa.ToolRegistry()


@registry.tool(effects="read")
def order_status(order_id: str) -> dict[str, str]:
    """Say where an order is.

    Args:
        order_id: The number on the receipt.
    """
    return {"order": order_id, "state": "shipped"}


@registry.tool(confirm=True)
def refund(order_id: str, amount: float) -> str:
    """Pay money back.

    Args:
        order_id: The number on the receipt.
        amount: In euros.
    """
    with open("paid.txt", "a") as book:
        book.write(f"{order_id} {amount}\\n")
    return f"{amount:.2f} paid back for {order_id}"


@registry.tool()
def break_down(how: str) -> str:
    """Fail in some way.

    Args:
        how: The way.
    """
    if how == "kindly":
        raise aa.ToolError("nothing was done")
    raise RuntimeError("the password is 12345")
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How one command line ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `agent-adapter …` in a folder with `shop.py`, as the user `ana`."""
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENT_ADAPTER_STORE", raising=False)
    monkeypatch.setenv("LOGNAME", "ana")

    def _run(*args: str) -> Ran:
        capsys.readouterr()
        code = main(args)
        shown = capsys.readouterr()
        return Ran(code=code, out=shown.out, err=shown.err)

    return _run


@pytest.fixture
def held(run: Run) -> str:
    """The id of a refund that waits for a person."""
    ran = run("tools", "call", "shop.py", "refund", "order_id=A1", "amount=5", "--json")
    assert ran.code == 3, ran
    records = run("approvals", "list", "--json").json
    assert len(records) == 1
    identity: str = records[0]["id"]
    return identity
