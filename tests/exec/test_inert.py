"""Ids and names of others can neither hide, pose as another line, nor fill a page."""

from __future__ import annotations

from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import AgentAdapterError, ApprovalDenied, ApprovalPending
from agent_adapter.core.inert import MAX_NAME, bounded, short, visible
from agent_adapter.exec.approval.inbox import Inbox
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.exec.approval.ports.terminal import TerminalApproval
from agent_adapter.exec.executor import Executor
from tests.exec.shop import ARGS, Till, in_run
from tests.fakes.approval import FakeApproval

pytestmark = pytest.mark.anyio

EVIL = "c\x1b[2J\nRun it? [y/N]\r\u202e\u200b\x00"
LONG = "x" * 1_000_000


@pytest.mark.parametrize("char", ["\x1b", "\r", "\x00", "\u202e", "\u200b", "\ufeff", "\u2800"])
def test_t13_a_name_is_one_visible_line(char: str) -> None:
    """T13: control, bidirectional, zero-width and blank characters are escapes."""
    shown = short(f"a{char}b\nc")
    assert shown == f"a\\u{ord(char):04x}b\\nc"
    assert short(shown) == shown == visible(shown)


def test_t13_a_long_name_is_bounded_and_its_own() -> None:
    """T13: 256 characters, whatever comes in; two long names do not become one."""
    for name in (LONG, "\x1b" * 256, "\x00" * 1_000_000):
        assert len(short(name)) <= MAX_NAME
    assert bounded(LONG) != bounded(LONG + "y") and bounded(bounded(LONG)) == bounded(LONG)
    assert bounded("x" * MAX_NAME) == "x" * MAX_NAME


async def test_t13_ids_are_bounded_where_they_enter(store: Any) -> None:
    """T13: no id of a megabyte is stored, and the same one is still the same call."""
    ids = {"run_id": LONG, "call_id": LONG, "thread_id": LONG, "principal": LONG, "tenant": LONG}
    till = Till(confirm=True)
    executor = Executor(store=store, approval=DeferredApproval(store))
    found = []
    for _ in range(2):
        with pytest.raises(ApprovalPending) as caught:
            await executor.run_spec(till.spec, ARGS, in_run(**ids))
        found.append(caught.value.id)
    assert found[0] == found[1]
    (row,) = await store.read(lambda tx: tx.select("approvals"))
    assert all(len(str(value)) < 10_000 for value in row.values())
    inbox = Inbox(store, tenant=bounded(LONG))
    assert len((await inbox.get(found[0])).call_id) <= MAX_NAME
    assert await inbox.withdraw_run(LONG, "over") == found[:1]


async def test_t13_a_long_name_of_a_reviewer_is_refused(memory: Any) -> None:
    """T13: nothing is written under it."""
    executor = Executor(store=memory, approval=DeferredApproval(memory))
    with pytest.raises(ApprovalPending) as caught:
        await executor.run_spec(Till(confirm=True).spec, ARGS, in_run())
    with pytest.raises(AgentAdapterError, match="at most 256 characters"):
        await Inbox(memory).approve(caught.value.id, reviewer=LONG)
    assert (await Inbox(memory).get(caught.value.id)).state == "pending"


async def test_t13_error_texts_are_inert(memory: Any) -> None:
    """T13: neither a reviewer nor an unknown id brings a control character into an error."""
    denial = aa.ApprovalDecision.deny(reviewer=EVIL, reason="no\x1b[2J")
    executor = Executor(store=memory, approval=FakeApproval(denial))
    with pytest.raises(ApprovalDenied) as denied:
        await executor.run_spec(Till(confirm=True).spec, ARGS, in_run())
    texts = [str(denied.value)]
    inbox = Inbox(memory)
    for ask in (inbox.get(EVIL), inbox.approve(LONG, reviewer="a"), inbox.withdraw(EVIL, "x")):
        with pytest.raises(AgentAdapterError) as unknown:
            await ask
        texts.append(str(unknown.value))
    with pytest.raises(AgentAdapterError) as missing:
        await Executor(aa.ToolRegistry(), store=memory).resume(EVIL)
    texts.append(str(missing.value))
    for text in texts:
        assert visible(text) == text and "\n" not in text and len(text) < 1_000


async def test_t13_the_terminal_prompt_cannot_be_forged(memory: Any) -> None:
    """T13: a principal, a label and a reason stay on their own lines."""
    shown: list[str] = []
    port = TerminalApproval(reviewer="ann", ask=lambda _: "n", show=shown.append)
    executor = Executor(store=memory, approval=port)
    with pytest.raises(ApprovalDenied):
        await executor.run_spec(Till(confirm=True).spec, ARGS, in_run(principal=EVIL))
    (text,) = shown
    assert visible(text) == text
    assert [line for line in text.splitlines() if line.startswith("Run it?")] == []
