"""T14: `Secret()` inside of a parameter's type is nowhere but in the function."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest
from pydantic import BaseModel, SecretStr, field_validator
from typing_extensions import TypedDict

from agent_adapter.core.errors import ApprovalPending, ToolArgsInvalid, ToolError
from agent_adapter.core.inject import Secret
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.approval.inbox import Inbox
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.exec.executor import Executor
from agent_adapter.store.sqlite import SqliteStore
from tests.exec.shop import in_run
from tests.exec.test_secrets import bytes_below

pytestmark = pytest.mark.anyio

HUSH = "hunter2-do-not-write-me"
Pin = Annotated[str, Secret()]


@dataclass
class Card:
    """A dataclass with a secret."""

    owner: str
    pin: Pin


class Login(TypedDict):
    """A TypedDict with a secret."""

    owner: str
    pin: Pin


class Pair(NamedTuple):
    """A NamedTuple with a secret."""

    owner: str
    pin: Pin


class Account(BaseModel):
    """A model with a secret."""

    owner: str
    pin: Pin


class Wallet(BaseModel):
    """A model that holds others."""

    cards: list[Card]
    more: dict[str, Card]
    inner: Wallet | None = None


MEMBERS = {"owner": "ann", "pin": HUSH}
KINDS: list[tuple[Any, Any]] = [
    (Card, MEMBERS),
    (Login, MEMBERS),
    (Pair, ["ann", HUSH]),
    (Account, MEMBERS),
    (list[Card], [MEMBERS, MEMBERS]),
    (dict[str, Card], {"a": MEMBERS}),
    (Card | None, MEMBERS),
    (list[Pin], [HUSH]),
    (Annotated[str, Secret()] | None, HUSH),
    (
        Wallet,
        {"cards": [MEMBERS], "more": {"a": MEMBERS}, "inner": {"cards": [MEMBERS], "more": {}}},
    ),
]


def spec_for(kind: Any, then: Any = None) -> tuple[ToolSpec, list[str]]:
    """A tool that takes such a value, and what it got."""
    got: list[str] = []

    async def use(value: Any, note: str = "n") -> str:
        """Uses it."""
        got.append(repr(value))
        if then is not None:
            raise then
        return "done"

    use.__annotations__["value"] = kind
    return ToolSpec.from_function(use, confirm=True), got


@pytest.mark.parametrize(("kind", "value"), KINDS, ids=lambda each: str(each)[:30])
async def test_t14_neither_disk_nor_screen_holds_a_secret_part(
    tmp_path: Path, kind: Any, value: Any
) -> None:
    """T14: record, ledger, log and payloads; the function gets it."""
    store = SqliteStore(tmp_path / "state.db")
    spec, got = spec_for(kind)
    executor = Executor(store=store, approval=DeferredApproval(store))
    with pytest.raises(ApprovalPending) as caught:
        await executor.run_spec(spec, {"value": value}, in_run())
    record = await Inbox(store).approve(caught.value.id, reviewer="ann")
    assert HUSH not in repr(record) and "$secret" in record.shown
    await executor.run_spec(spec, {"value": value}, in_run())
    await store.aclose()
    assert len(got) == 1 and HUSH in got[0]
    assert HUSH.encode() not in bytes_below(tmp_path)


@pytest.mark.parametrize("kind", [Card, Login, Account])
async def test_t14_the_other_parts_are_shown_and_can_be_edited(memory: Any, kind: Any) -> None:
    """T14: a reviewer sees and edits what is not secret; a secret cannot be typed in."""
    spec, got = spec_for(kind)
    executor, inbox = Executor(store=memory, approval=DeferredApproval(memory)), Inbox(memory)
    with pytest.raises(ApprovalPending) as caught:
        await executor.run_spec(spec, {"value": MEMBERS}, in_run())
    id = caught.value.id
    shown = (await inbox.get(id)).arguments
    assert shown["value"]["owner"] == "ann"
    with pytest.raises(ToolArgsInvalid, match="is a secret"):
        edit = {**shown, "value": {"owner": "ann", "pin": "other"}}
        await inbox.approve(id, reviewer="eve", arguments=edit)
    edit = {**shown, "value": {**shown["value"], "owner": "bob"}}
    await inbox.approve(id, reviewer="eve", arguments=edit)
    await executor.run_spec(spec, {"value": MEMBERS}, in_run())
    assert len(got) == 1 and "bob" in got[0] and HUSH in got[0]


async def test_t14_a_secret_cannot_be_added_by_an_edit(memory: Any) -> None:
    """T14: nor in a new member of a list."""
    spec, got = spec_for(list[Card])
    executor, inbox = Executor(store=memory, approval=DeferredApproval(memory)), Inbox(memory)
    with pytest.raises(ApprovalPending) as caught:
        await executor.run_spec(spec, {"value": []}, in_run())
    with pytest.raises(ToolArgsInvalid, match="an edit cannot give") as refused:
        edit = {"value": [MEMBERS], "note": "n"}
        await inbox.approve(caught.value.id, reviewer="eve", arguments=edit)
    assert HUSH not in str(refused.value) and got == []


async def test_t14_the_text_of_an_error_holds_no_secret_part(memory: Any) -> None:
    """T14: what a tool tells of a part is masked, and nothing else is."""
    spec, _ = spec_for(Card, ToolError(f"{HUSH} of ann is wrong"))
    spec = spec.replace(confirm=False)
    with pytest.raises(ToolError, match=r"\*\*\* of ann is wrong"):
        await Executor(store=memory).run_spec(spec, {"value": MEMBERS}, in_run())
    assert HUSH not in repr(await memory.read(lambda tx: tx.select("calls")))


class Strict(BaseModel):
    """A model whose validator tells the secret."""

    password: SecretStr
    level: int = 1

    @field_validator("password")
    @classmethod
    def long(cls, value: SecretStr) -> SecretStr:
        """Refuse it, and say what it was."""
        raise ValueError(f"{value.get_secret_value()} is weak")


async def test_t14_the_text_of_a_validator_holds_no_secret(memory: Any) -> None:
    """T14: of Pydantic's secrets too; what is not secret is still explained."""
    spec, _ = spec_for(Strict)
    for args in ({"password": HUSH, "level": "x"}, {"password": HUSH}):
        with pytest.raises(ToolArgsInvalid) as caught:
            await Executor(store=memory).run_spec(spec, {"value": args}, in_run())
        assert HUSH not in str(caught.value) and "value.password: is not valid" in str(caught.value)
    with pytest.raises(ToolArgsInvalid, match=r"value\.level: .*integer"):
        await Executor(store=memory).run_spec(spec, {"value": {"password": "a", "level": "x"}})
