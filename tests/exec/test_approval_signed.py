"""Signed decisions: whoever can write the store cannot approve."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.exec.approval.presented import present_row
from agent_adapter.exec.approval.signing import ReviewerKey, create_key
from agent_adapter.store import taint
from agent_adapter.store.memory import MemoryStore

pytest.importorskip("cryptography")
pytestmark = pytest.mark.anyio

Ran = list[dict[str, Any]]


class Scene:
    """A gated tool, an executor that pins kim's key, and kim's inbox."""

    def __init__(self, tmp_path: Path) -> None:
        self.store = MemoryStore()
        self.kim = create_key(tmp_path / "kim.key")
        self.ran: Ran = []
        registry = aa.ToolRegistry()

        @registry.tool(confirm=True, effects="write")
        def refund(order: str, amount: int) -> str:
            """Pay a customer back."""
            self.ran.append({"order": order, "amount": amount})
            return "paid"

        self.port = aa.DeferredApproval(
            self.store, require_signed=True, reviewers={"kim": self.kim.public}
        )
        self.executor = aa.Executor(registry, approval=self.port, store=self.store)
        self.inbox = aa.Inbox(self.store)

    async def ask(self) -> str:
        """The record of a call that waits."""
        with pytest.raises(aa.ApprovalPending) as caught:
            await self.call()
        return str(caught.value.id)

    async def call(self) -> Any:
        """The call, with the same run and call id every time."""
        ctx = aa.ToolContext(run_id="r")
        return await self.executor.run("refund", {"order": "A1", "amount": 5}, ctx=ctx)

    async def forge(self, id: str, **values: Any) -> None:
        """Change the record as somebody who can write the store would."""
        await self.store.write(lambda tx: tx.update("approvals", {"id": id}, values))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """One store, one reviewer."""
    return Scene(tmp_path)


async def test_a_signed_approval_lets_the_call_run_once(scene: Scene) -> None:
    """What the pinned reviewer signed runs."""
    id = await scene.ask()
    await scene.inbox.approve(id, reviewer="os:kim", key=scene.kim)
    assert await scene.executor.resume(id) == "paid"
    assert scene.ran == [{"order": "A1", "amount": 5}]


async def test_the_waiting_call_itself_checks_the_signature(scene: Scene) -> None:
    """A call that comes back finds its signed approval as `resume` does."""
    id = await scene.ask()
    await scene.inbox.approve(id, reviewer="os:kim", key=scene.kim)
    assert await scene.call() == "paid"


async def test_signed_edits_run_as_they_were_signed(scene: Scene) -> None:
    """The signature covers the reviewer's own arguments."""
    id = await scene.ask()
    edits = {"order": "A1", "amount": 3}
    await scene.inbox.approve(id, reviewer="os:kim", key=scene.kim, arguments=edits)
    await scene.executor.resume(id)
    assert scene.ran == [edits]


async def test_an_unsigned_word_is_refused_when_it_is_given(scene: Scene) -> None:
    """The inbox says at once that the key is missing, for a yes and for a no."""
    id = await scene.ask()
    for word in (scene.inbox.approve, scene.inbox.deny):
        with pytest.raises(aa.AgentAdapterError, match="only with a reviewer's signature"):
            await word(id, reviewer="os:kim")
    assert (await scene.inbox.get(id)).state == "pending"


@pytest.mark.parametrize("way", ["resume", "call"])
async def test_a_record_marked_approved_in_the_store_does_not_run(scene: Scene, way: str) -> None:
    """Writing `approved` into the file is no approval."""
    id = await scene.ask()
    await scene.forge(id, state="approved", reviewer="os:kim", use_by=9e12, decided_at=1.0)
    with pytest.raises(aa.ApprovalDenied, match="bears no signature"):
        await (scene.executor.resume(id) if way == "resume" else scene.call())
    assert scene.ran == []


async def test_another_key_of_the_same_name_does_not_count(scene: Scene, tmp_path: Path) -> None:
    """A name is not a signature."""
    id = await scene.ask()
    (tmp_path / "other").mkdir()
    false_kim = create_key(tmp_path / "other" / "kim.key")
    await scene.inbox.approve(id, reviewer="os:kim", key=false_kim)
    with pytest.raises(aa.ApprovalDenied, match="does not fit"):
        await scene.executor.resume(id)


async def test_an_unknown_signer_does_not_count(scene: Scene, tmp_path: Path) -> None:
    """Only pinned keys count."""
    id = await scene.ask()
    await scene.inbox.approve(id, reviewer="os:bob", key=create_key(tmp_path / "bob.key"))
    with pytest.raises(aa.ApprovalDenied, match="whose key is not pinned"):
        await scene.executor.resume(id)


@pytest.mark.parametrize(
    "change",
    [
        {"edited": json.dumps({"order": "A1", "amount": 9000})},
        {"reviewer": "os:eve"},
        {"digest": "0" * 64},
        {"principal": "eve"},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_a_signed_record_that_was_changed_does_not_run(
    scene: Scene, change: dict[str, Any]
) -> None:
    """The signature is over all that the reviewer saw and said."""
    id = await scene.ask()
    await scene.inbox.approve(id, reviewer="os:kim", key=scene.kim)
    await scene.forge(id, **change)
    with pytest.raises(aa.AgentAdapterError):
        await scene.executor.resume(id)
    with pytest.raises(aa.AgentAdapterError):
        await scene.call()
    assert scene.ran == []


async def test_what_was_shown_is_what_runs(scene: Scene) -> None:
    """A record whose bound arguments were changed before the reviewer signed does not run."""
    id = await scene.ask()
    await scene.forge(id, payload=json.dumps({"order": "A1", "amount": 1}))
    await scene.inbox.approve(id, reviewer="os:kim", key=scene.kim)
    for attempt in (scene.executor.resume(id), scene.call()):
        with pytest.raises(aa.ApprovalDenied, match=r"shows another call|no longer read"):
            await attempt
    assert scene.ran == []


async def test_t2_what_is_shown_is_rendered_from_what_is_signed(scene: Scene) -> None:
    """T2: a text that somebody writes into the record is not what a reviewer is shown."""
    id = await scene.ask()
    row = await scene.store.read(lambda tx: tx.get("approvals", id))
    assert row is not None
    before = (await scene.inbox.get(id)).shown
    forged = json.loads(row["request"]) | {"shown": "harmless", "arguments": {"amount": 1}}
    await scene.forge(id, request=json.dumps(forged))
    record = await scene.inbox.get(id)
    assert record.shown == before and record.arguments == {"order": "A1", "amount": 5}
    await scene.inbox.approve(id, reviewer="os:kim", key=scene.kim)
    assert await scene.call() == "paid" and scene.ran == [{"order": "A1", "amount": 5}]


@pytest.mark.parametrize("name", ["description", "reason", "effects", "earlier"])
async def test_t2_whatever_is_shown_is_signed(scene: Scene, name: str) -> None:
    """T2: the situation that a reviewer read is under their signature."""
    id = await scene.ask()
    row = await scene.store.read(lambda tx: tx.get("approvals", id))
    assert row is not None
    forged = json.loads(row["request"]) | {name: ["x"] if name == "earlier" else "x"}
    situations = []
    for text in (row["request"], json.dumps(forged)):
        await scene.forge(id, request=text)
        shown = await scene.store.read(lambda tx: present_row(tx, tx.get("approvals", id) or {}))
        situations.append(json.loads(scene.kim.sign(shown, verdict="approved", reviewer="k")))
    assert situations[0]["situation"] != situations[1]["situation"]


async def test_a_signature_does_not_fit_a_later_state(scene: Scene) -> None:
    """A signature on the call as asked is none on the call as somebody edited it."""
    id = await scene.ask()
    await scene.inbox.approve(id, reviewer="os:kim", key=scene.kim)
    await scene.forge(id, edited=json.dumps({"order": "B2", "amount": 5}))
    with pytest.raises(aa.ApprovalDenied, match="shows another call"):
        await scene.executor.resume(id)
    assert scene.ran == []


async def test_a_signed_denial_is_no_signed_approval(scene: Scene) -> None:
    """The verdict is under the signature."""
    id = await scene.ask()
    await scene.inbox.deny(id, reviewer="os:kim", key=scene.kim)
    await scene.forge(id, state="approved", use_by=9e12)
    with pytest.raises(aa.ApprovalDenied, match="is on a denial"):
        await scene.executor.resume(id)
    assert scene.ran == []


async def test_a_label_that_the_reviewer_did_not_see_is_not_under_their_signature(
    scene: Scene,
) -> None:
    """Also where the record was changed to look as if they had seen it."""
    id = await scene.ask()
    await scene.inbox.approve(id, reviewer="os:kim", key=scene.kim)
    row = await scene.store.read(lambda tx: tx.get("approvals", id))
    assert row is not None
    await scene.store.write(lambda tx: taint.mark(tx, ["run:r"], "web"))
    await scene.forge(id, request=json.dumps(json.loads(row["request"]) | {"taint": ["web"]}))
    with pytest.raises(aa.ApprovalDenied, match="before the run had read web"):
        await scene.executor.resume(id)
    assert scene.ran == []


async def test_a_signature_does_not_fit_another_record(scene: Scene) -> None:
    """An approval of one record cannot be moved to the next."""
    first = await scene.ask()
    await scene.inbox.approve(first, reviewer="os:kim", key=scene.kim)
    signed = await scene.store.read(lambda tx: tx.get("approvals", first))
    await scene.executor.resume(first)
    second = await scene.ask()
    assert signed is not None
    copied = {name: signed[name] for name in ("signature", "reviewer", "use_by", "decided_at")}
    await scene.forge(second, state="approved", **copied)
    with pytest.raises(aa.ApprovalDenied, match="does not fit"):
        await scene.executor.resume(second)
    assert len(scene.ran) == 1


def test_a_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    """The file is made unreadable for others, refused when it is not, and never written over."""
    path = tmp_path / "kim.key"
    made = create_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (
        ReviewerKey.read(path).public == made.public == (tmp_path / "kim.key.pub").read_text()[:-1]
    )
    with pytest.raises(aa.AgentAdapterError, match="never written over"):
        create_key(path)
    path.chmod(0o644)
    with pytest.raises(aa.AgentAdapterError, match="chmod 600"):
        ReviewerKey.read(path)


def test_demanding_signatures_without_keys_is_refused() -> None:
    """A port that nobody could ever satisfy is not made, nor one that pins keys for nothing."""
    store = MemoryStore()
    with pytest.raises(aa.ToolDefinitionError, match="needs reviewers="):
        aa.DeferredApproval(store, require_signed=True)
    with pytest.raises(aa.ToolDefinitionError, match="say require_signed=True"):
        aa.DeferredApproval(store, reviewers={"kim": "ed25519:AA=="})
    with pytest.raises(aa.ToolDefinitionError, match="is no Ed25519 public key"):
        aa.DeferredApproval(store, require_signed=True, reviewers={"kim": "ed25519:AA=="})
