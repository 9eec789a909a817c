"""`agent-adapter tokens` and `agent-adapter keys`."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.cli.tokens import Role
from agent_adapter.store.people import ROLES

from .conftest import Run


def test_a_token_is_shown_once(run: Run, tmp_path: Path) -> None:
    """It is printed when it is made, and afterwards nowhere, not even in the store."""
    made = run("tokens", "create", "kim", "--role", "approver", "--json").json
    assert made["token"].startswith("aat_")
    listed = run("tokens", "list", "--json")
    assert [row["name"] for row in listed.json] == ["kim"]
    assert made["token"] not in listed.out + run("tokens", "list").out
    files = [file for file in (tmp_path / ".agent_adapter").rglob("*") if file.is_file()]
    assert not any(made["token"].encode() in file.read_bytes() for file in files)


def test_a_token_stands_alone_on_its_line(run: Run) -> None:
    """So that a script can read it."""
    assert run("tokens", "create", "kim").out.splitlines()[-1].startswith("aat_")


def test_a_revoked_token_frees_its_name(run: Run) -> None:
    """A name belongs to one token at a time."""
    run("tokens", "create", "kim")
    again = run("tokens", "create", "kim")
    assert (again.code, "kim has a token" in again.err) == (1, True)
    assert "of kim is revoked" in run("tokens", "revoke", "kim").out
    assert run("tokens", "create", "kim").code == 0
    rows = run("tokens", "list", "--json").json
    assert [row["revoked_at"] is None for row in rows] == [False, True]


def test_who_made_and_revoked_a_token_is_in_the_ledger(run: Run) -> None:
    """Access is changed in the open."""
    run("tokens", "create", "kim", "--role", "admin")
    run("tokens", "revoke", "kim", "--json")
    entries = run("ledger", "show", "upkeep", "--json").json
    assert [entry["kind"] for entry in entries] == ["token-created", "token-revoked"]
    assert {entry["facts"]["reviewer"] for entry in entries} == {"os:ana"}


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("create", "two words"), 1, "is no name"),
        (("create", "kim", "--role", "king"), 2, "king"),
        (("revoke", "nobody"), 1, "no token nobody"),
    ],
)
def test_bad_input_is_one_line(run: Run, args: tuple[str, ...], code: int, said: str) -> None:
    """Each refusal names the thing."""
    run("tokens", "create", "ana")
    ran = run("tokens", *args)
    assert ran.code == code, ran
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_the_roles_are_those_of_the_console() -> None:
    """What `--role` offers is what the store knows."""
    assert tuple(Role) == ROLES


def test_no_tokens(run: Run) -> None:
    """An empty list says so."""
    run("db", "upgrade")
    assert run("tokens", "list").err.strip() == "no tokens"


def test_a_key_pair_is_made(run: Run, tmp_path: Path) -> None:
    """The private half is for its owner's eyes; the public half is printed and lies beside it."""
    pytest.importorskip("cryptography")
    made = run("keys", "create", "kim.key", "--json").json
    assert made["public"] == (tmp_path / "kim.key.pub").read_text().strip()
    assert made == run("keys", "show", "kim.key", "--json").json | {"name": "kim"}
    assert stat.S_IMODE((tmp_path / "kim.key").stat().st_mode) == 0o600
    again = run("keys", "create", "kim.key")
    assert (again.code, "never written over" in again.err) == (1, True)


def test_a_file_that_is_no_key(run: Run, tmp_path: Path) -> None:
    """The error names the file and the command that makes one."""
    pytest.importorskip("cryptography")
    (tmp_path / "no.key").write_text("hello")
    (tmp_path / "no.key").chmod(0o600)
    ran = run("keys", "show", "no.key")
    assert (ran.code, "agent-adapter keys create" in ran.err) == (1, True)


class Payer:
    """A gated tool whose executor takes approvals that kim signed, and no others."""

    def __init__(self, public: str) -> None:
        self.reviewers = {"kim": public}
        self.registry = aa.ToolRegistry()

        @self.registry.tool(confirm=True)
        def pay(amount: int) -> str:
            """Pay."""
            return f"paid {amount}"

    async def ask(self) -> str:
        """The record of a call that waits."""
        async with self._executor() as executor:
            with pytest.raises(aa.ApprovalPending) as caught:
                await executor.run("pay", {"amount": 3}, ctx=aa.ToolContext(run_id="r"))
        return str(caught.value.id)

    async def resume(self, record: str) -> Any:
        """What the call gives once it is approved."""
        async with self._executor() as executor:
            return await executor.resume(record)

    @asynccontextmanager
    async def _executor(self) -> AsyncIterator[aa.Executor]:
        store = aa.open_store()
        port = aa.DeferredApproval(store, require_signed=True, reviewers=self.reviewers)
        yield aa.Executor(self.registry, approval=port, store=store)
        await store.aclose()


@pytest.fixture
def payer(run: Run) -> Payer:
    """The tool, and the files kim.key and eve.key."""
    pytest.importorskip("cryptography")
    run("keys", "create", "eve.key")
    return Payer(run("keys", "create", "kim.key", "--json").json["public"])


def test_a_pinned_key_approves(run: Run, payer: Payer) -> None:
    """`--key` signs the decision, and the executor that pins the key takes it."""
    record = asyncio.run(payer.ask())
    assert run("approvals", "approve", record, "--key", "kim.key").code == 0
    assert asyncio.run(payer.resume(record)) == "paid 3"


def test_another_key_does_not(run: Run, payer: Payer) -> None:
    """A signature with a key that is not pinned approves nothing."""
    record = asyncio.run(payer.ask())
    run("approvals", "approve", record, "--key", "eve.key")
    with pytest.raises(aa.AgentAdapterError, match="whose key is not pinned here"):
        asyncio.run(payer.resume(record))


def test_without_a_key_the_decision_is_refused(run: Run, payer: Payer) -> None:
    """Where signed decisions are demanded, an unsigned one is not even recorded."""
    record = asyncio.run(payer.ask())
    ran = run("approvals", "approve", record)
    assert (ran.code, "sign" in ran.err) == (1, True)
    assert run("approvals", "show", record, "--json").json["state"] == "pending"
    assert run("approvals", "deny", record, "--key", "kim.key").code == 0


def test_a_token_names_who_acts_and_for_which_tenant(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the environment; calls are made, and decided, in the tenant of the token."""
    call = ("tools", "call", "shop.py", "refund", "order_id=A1", "amount=5", "--run", "r")
    made = run("tokens", "create", "kim", "--role", "approver", "--tenant", "acme", "--json").json
    assert made["tenants"] == ["acme"]
    assert run(*call, "--tenant", "beta").code == 3
    monkeypatch.setenv("AGENT_ADAPTER_TOKEN", made["token"])
    assert run("approvals", "list", "--json").json == []
    assert run(*call).code == 3
    (record,) = run("approvals", "list", "--json").json
    assert record["principal"] == "token:kim"
    refused = run("approvals", "approve", record["id"], "--reviewer", "lee")
    assert refused.code == 2 and "omit it" in refused.err
    assert "by token:kim" in run("approvals", "deny", record["id"]).out
    monkeypatch.delenv("AGENT_ADAPTER_TOKEN")
    assert run("approvals", "show", record["id"]).code == 1
    assert run("approvals", "show", record["id"], "--tenant", "acme").code == 0


def test_a_token_has_its_role_at_the_command_line(
    run: Run, held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A viewer decides nothing; an unknown token is refused before anything is looked up."""
    secret = run("tokens", "create", "vic", "--json").json["token"]
    monkeypatch.setenv("AGENT_ADAPTER_TOKEN", secret)
    assert run("approvals", "show", held).code == 0
    for args in (("approve", held), ("deny", held), ("withdraw", held)):
        ran = run("approvals", *args)
        assert ran.code == 1 and "this needs the role approver" in ran.err
    monkeypatch.setenv("AGENT_ADAPTER_TOKEN", "aat_wrong")
    ran = run("approvals", "list")
    assert ran.code == 1 and "unknown or revoked" in ran.err and "aat_wrong" not in ran.err
