"""Quorums, "not the requester" and signatures count people, not log-ins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.core.errors import AgentAdapterError, ApprovalDenied, ApprovalPending
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec import ledger
from agent_adapter.exec.approval.inbox import Inbox
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.exec.approval.ports.quorum import QuorumApproval
from agent_adapter.exec.approval.presented import present_row
from agent_adapter.exec.approval.signing import create_key
from agent_adapter.exec.executor import Executor
from agent_adapter.store import people
from agent_adapter.store.base import Transaction
from tests.exec.shop import ARGS, Till, in_run

pytestmark = pytest.mark.anyio


async def asked(store: Any, port: Any, principal: str = "bob") -> tuple[str, Any, Till]:
    """The id of a question that waits, the executor that asked, and its till."""
    till = Till(confirm=True)
    executor = Executor(approval=port, store=store)
    with pytest.raises(ApprovalPending) as caught:
        await executor.run_spec(till.spec, ARGS, in_run(principal=principal))
    return caught.value.id, executor, till


async def link(store: Any, name: str, *logins: str, **more: Any) -> None:
    """A person with these log-ins."""

    def op(tx: Transaction) -> Any:
        people.add(tx, name, by="os:ana")
        return people.link(tx, name, logins=logins, by="os:ana", **more)

    assert isinstance(await store.write(op), dict)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("os:kim", "token:kim"),
        ("cli:kim", "cli:Kim "),
        ("kim", "k\u200bim"),
        ("cli:os:kim", "proxy:KIM"),
        ("os:kim", "\uff4b\uff49\uff4d"),
        ("os:kim", "token:k.lee"),
    ],
)
async def test_two_log_ins_of_one_person_are_one_vote(store: Any, first: str, second: str) -> None:
    """T3: a quorum of two is not reached by one person, linked or of an equal name."""
    await link(store, "Kim Lee", "token:k.lee", "os:kim")
    id, _, _ = await asked(store, QuorumApproval(2, store))
    inbox = Inbox(store)
    for reviewer in (first, second, first):
        assert (await inbox.approve(id, reviewer=reviewer)).state == "pending"
    assert (await inbox.approve(id, reviewer="os:eve")).state == "approved"


async def test_a_link_made_between_two_votes_makes_them_one(store: Any) -> None:
    """People are counted when the last vote is given."""
    id, _, _ = await asked(store, QuorumApproval(3, store))
    inbox = Inbox(store)
    for reviewer in ("os:kim", "token:lee"):
        await inbox.approve(id, reviewer=reviewer)
    await link(store, "Kim Lee", "os:kim", "token:lee")
    assert (await inbox.approve(id, reviewer="os:eve")).state == "pending"


@pytest.mark.parametrize(
    ("principal", "reviewer"),
    [
        ("os:kim", "token:kim"),
        ("kim", "cli:Kim "),
        ("token:k.lee", "os:kim"),
        ("Kim Lee", "proxy:kim"),
        ("user:kim", "cli:os:kim"),
    ],
)
async def test_the_requester_is_one_person_under_every_log_in(
    store: Any, principal: str, reviewer: str
) -> None:
    """T3: whoever asked cannot decide it under another log-in."""
    await link(store, "Kim Lee", "token:k.lee", "os:kim")
    id, _, _ = await asked(store, QuorumApproval(1, store), principal)
    for act in (Inbox(store).approve, Inbox(store).deny):
        with pytest.raises(AgentAdapterError, match="asked for this call"):
            await act(id, reviewer=reviewer)


@pytest.mark.parametrize("second", ["token:ann", " ANN", "a\u200bnn", "proxy:Bob"])
async def test_reviewers_asked_at_once_are_counted_as_people(store: Any, second: str) -> None:
    """T3: by the same form of their names, the requester left out."""
    names = ("ann", second)

    def named(name: str) -> Any:
        return lambda request: ApprovalDecision.approve(reviewer=name)

    port = QuorumApproval(2, reviewers=[named(name) for name in names])
    with pytest.raises(ApprovalDenied, match="1 of 2"):
        await Executor(approval=port, store=store).run_spec(
            Till(confirm=True).spec, ARGS, in_run(principal="os:bob")
        )


@pytest.mark.parametrize("reviewer", ["\u200b", "\u3164", " \u2800"])
async def test_a_reviewer_who_cannot_be_seen_is_refused(store: Any, reviewer: str) -> None:
    """For every verdict, and to withdraw."""
    id, _, _ = await asked(store, DeferredApproval(store))
    inbox = Inbox(store)
    for act in (inbox.approve, inbox.deny):
        with pytest.raises(AgentAdapterError, match="can be seen"):
            await act(id, reviewer=reviewer)
    with pytest.raises(AgentAdapterError, match="has a name"):
        await inbox.withdraw(id, "why", reviewer=reviewer)


async def test_a_revoked_person_decides_nothing(store: Any) -> None:
    """Under any log-in of theirs; the record stays open."""
    await link(store, "Kim Lee", "os:kim")
    await store.write(lambda tx: people.revoke(tx, "Kim Lee", by="os:ana"))
    id, _, _ = await asked(store, DeferredApproval(store))
    for reviewer in ("os:kim", "cli:Kim", "key:kim lee"):
        with pytest.raises(AgentAdapterError, match="revoked"):
            await Inbox(store).approve(id, reviewer=reviewer)
    assert (await Inbox(store).get(id)).state == "pending"


async def test_the_ledger_says_which_person_decided(store: Any) -> None:
    """Beside the log-in that was used."""
    await link(store, "Kim Lee", "os:kim")
    id, _, _ = await asked(store, DeferredApproval(store))
    record = await Inbox(store).approve(id, reviewer="os:kim")
    entries = await ledger.entries(store, record.run_id)
    (said,) = [each.facts for each in entries if each.kind == "approval-decided"]
    assert said["person"].startswith("psn_") and said["reviewer"] == "os:kim"


class Signed:
    """A port that takes only decisions signed with kim's key."""

    def __init__(self, store: Any, folder: Path) -> None:
        self.store = store
        self.key = create_key(folder / "kim.key")
        self.port = DeferredApproval(store, require_signed=True, reviewers={"kim": self.key.public})


async def test_what_kims_key_signs_is_kims(store: Any, tmp_path: Path) -> None:
    """Whatever name the caller gives."""
    signed = Signed(store, tmp_path)
    id, executor, till = await asked(store, signed.port)
    record = await Inbox(store).approve(id, reviewer="os:lee", key=signed.key)
    assert record.reviewer == "key:kim"
    await executor.run_spec(till.spec, ARGS, in_run(principal="bob"))
    assert len(till.ran) == 1


async def test_kims_key_votes_once_under_two_names(store: Any, tmp_path: Path) -> None:
    """T3: with a registered key and without one."""
    key = create_key(tmp_path / "work.key")
    for registered in (False, True):
        if registered:
            await link(store, "Kim Lee", "os:kim", key=key.public)
        port = QuorumApproval(2, store)
        id, _, _ = await asked(store, port, f"bob{registered}")
        for reviewer in ("os:kim", "os:lee", "cli:max"):
            record = await Inbox(store).approve(id, reviewer=reviewer, key=key)
            assert record.state == "pending"


async def test_kims_key_cannot_decide_kims_own_call(store: Any, tmp_path: Path) -> None:
    """T3: the requester is known by the key."""
    key = create_key(tmp_path / "work.key")
    await link(store, "Kim Lee", "os:kim", key=key.public)
    id, _, _ = await asked(store, QuorumApproval(1, store), "kim")
    with pytest.raises(AgentAdapterError, match="asked for this call"):
        await Inbox(store).approve(id, reviewer="os:lee", key=key)


@pytest.mark.alters_store
async def test_a_row_that_names_another_than_the_signer_does_not_count(
    store: Any, tmp_path: Path
) -> None:
    """Who writes to the store with kim's key cannot make it lee's decision."""
    signed = Signed(store, tmp_path)
    id, executor, till = await asked(store, signed.port)

    def forge(tx: Transaction) -> Any:
        row = tx.get("approvals", id)
        assert row is not None
        shown = present_row(tx, row)
        signature = signed.key.sign(shown, verdict="approved", reviewer="os:lee")
        values = {"state": "approved", "reviewer": "os:lee", "signature": signature}
        return tx.update("approvals", {"id": id}, values | {"use_by": tx.now + 60})

    await store.write(forge)
    with pytest.raises(ApprovalDenied, match="signed by kim, and names os:lee"):
        await executor.run_spec(till.spec, ARGS, in_run(principal="bob"))


async def test_a_revoked_key_counts_for_nothing_unused(store: Any, tmp_path: Path) -> None:
    """Neither a new decision nor an approval that no call has used."""
    signed = Signed(store, tmp_path)
    await link(store, "Kim", "os:kim", key=signed.key.public)
    id, executor, till = await asked(store, signed.port)
    await Inbox(store).approve(id, reviewer="os:kim", key=signed.key)
    await store.write(lambda tx: people.revoke(tx, f"key:{signed.key.public}", by="os:ana"))
    with pytest.raises(ApprovalDenied, match="key that is revoked"):
        await executor.run_spec(till.spec, ARGS, in_run(principal="bob"))
    with pytest.raises(AgentAdapterError, match="revoked"):
        other, _, _ = await asked(store, signed.port, "max")
        await Inbox(store).approve(other, reviewer="os:kim", key=signed.key)


async def test_a_rotated_key_ends_and_what_it_signed_stays(store: Any, tmp_path: Path) -> None:
    """Only decisions after the rotation need the new key."""
    signed, new = Signed(store, tmp_path), create_key(tmp_path / "kim2.key")
    await link(store, "Kim", "os:kim", key=signed.key.public)
    id, executor, till = await asked(store, signed.port)
    await Inbox(store).approve(id, reviewer="os:kim", key=signed.key)
    await store.write(lambda tx: people.link(tx, "Kim", key=new.public, rotate=True, by="os:ana"))
    await executor.run_spec(till.spec, ARGS, in_run(principal="bob"))
    assert len(till.ran) == 1
    other, _, _ = await asked(store, signed.port, "max")
    with pytest.raises(AgentAdapterError, match="out of its time"):
        await Inbox(store).approve(other, reviewer="os:kim", key=signed.key)


async def test_a_key_out_of_its_time_does_not_count(store: Any, tmp_path: Path) -> None:
    """A period given when it was linked."""
    signed = Signed(store, tmp_path)
    await link(store, "Kim", "os:kim", key=signed.key.public, valid_for=-1.0)
    id, _, _ = await asked(store, signed.port)
    with pytest.raises(AgentAdapterError, match="out of its time"):
        await Inbox(store).approve(id, reviewer="os:kim", key=signed.key)


@pytest.mark.alters_store
async def test_a_signature_cannot_claim_the_key_of_another(store: Any, tmp_path: Path) -> None:
    """The public key that it names is the one that the executor pins, or it does not count."""
    signed = Signed(store, tmp_path)
    id, executor, till = await asked(store, signed.port)
    await Inbox(store).approve(id, reviewer="os:kim", key=signed.key)
    other = create_key(tmp_path / "lee.key").public

    def claim(tx: Transaction) -> Any:
        row = tx.get("approvals", id)
        assert row is not None
        kept = json.loads(row["signature"]) | {"public": other}
        return tx.update("approvals", {"id": id}, {"signature": json.dumps(kept)})

    await store.write(claim)
    with pytest.raises(ApprovalDenied, match="does not fit"):
        await executor.run_spec(till.spec, ARGS, in_run(principal="bob"))
