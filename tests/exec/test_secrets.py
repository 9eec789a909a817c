"""A secret is nowhere but in the function."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel, SecretStr

from agent_adapter.core.errors import ApprovalPending, ToolArgsInvalid, ToolError
from agent_adapter.core.inject import Secret
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec import events
from agent_adapter.exec.approval.inbox import Inbox
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.exec.executor import Executor
from agent_adapter.store.sqlite import SqliteStore
from tests.exec.shop import ARGS, YES, Till, in_run
from tests.fakes.approval import FakeApproval
from tests.fakes.hooks import RecordingHook

pytestmark = pytest.mark.anyio

HUSH = "hunter2-do-not-write-me"


class Login(BaseModel):
    """A model with a secret inside."""

    user: str
    password: SecretStr


class Vault:
    """Tools that take the secret in every form, and may tell it."""

    def __init__(self, tells: bool = False) -> None:
        self.got: list[str] = []

        async def marked(pin: Annotated[str, Secret()], note: str = "n") -> str:
            """Marked."""
            self.got.append(pin)
            if tells:
                raise ToolError(f"{pin} is wrong")
            return "done"

        async def typed(pin: SecretStr, note: str = "n") -> str:
            """Typed."""
            self.got.append(pin.get_secret_value())
            if tells:
                raise ToolError(f"{pin.get_secret_value()} is wrong")
            return "done"

        async def nested(login: Login, others: list[SecretStr]) -> str:
            """Nested."""
            self.got.append(login.password.get_secret_value())
            if tells:
                raise ToolError(f"{login.password.get_secret_value()} is wrong")
            return "done"

        self.calls: list[tuple[Any, dict[str, Any]]] = [
            (marked, {"pin": HUSH}),
            (typed, {"pin": HUSH}),
            (nested, {"login": {"user": "u", "password": HUSH}, "others": [HUSH]}),
        ]


FORMS = [0, 1, 2]


def bytes_below(folder: Path) -> bytes:
    """Everything on the disk."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("effects", ["write", "read"])
async def test_a34_the_disk_holds_no_secret(tmp_path: Path, form: int, effects: Any) -> None:
    """A34: Neither the ledger, nor its log, nor the payloads."""
    vault, store = Vault(), SqliteStore(tmp_path / "state.db")
    fn, args = vault.calls[form]
    spec = ToolSpec.from_function(fn, effects=effects)
    await Executor(store=store).run_spec(spec, args, in_run())
    await store.flush()
    assert vault.got == [HUSH] and HUSH.encode() not in bytes_below(tmp_path)
    await store.aclose()
    assert HUSH.encode() not in bytes_below(tmp_path)


@pytest.mark.parametrize("form", FORMS)
async def test_a34_a_held_call_holds_no_secret(tmp_path: Path, form: int) -> None:
    """A34: Nor does the inbox; once approved the same call still runs with it."""
    vault, store = Vault(), SqliteStore(tmp_path / "state.db")
    fn, args = vault.calls[form]
    spec = ToolSpec.from_function(fn, confirm=True)
    executor = Executor(store=store, approval=DeferredApproval(store))
    with pytest.raises(ApprovalPending) as caught:
        await executor.run_spec(spec, args, in_run())
    record = await Inbox(store).approve(caught.value.id, reviewer="ann")
    await executor.run_spec(spec, args, in_run())
    await store.aclose()
    assert vault.got == [HUSH] and HUSH not in repr(record)
    assert HUSH.encode() not in bytes_below(tmp_path)


@pytest.mark.parametrize("form", FORMS)
async def test_a34_reviewers_hooks_and_rules_see_no_secret(memory: Any, form: int) -> None:
    """A34: A keyed hash stands in its place."""
    seen: list[str] = []
    fn, args = Vault().calls[form]
    spec = ToolSpec.from_function(
        fn, confirm=lambda args, ctx: seen.append(repr(args)) is None, cost=lambda args: 0
    )
    port, hook = FakeApproval(YES), RecordingHook()
    await Executor(store=memory, approval=port, hooks=[hook]).run_spec(spec, args)
    text = repr(port.requests) + repr(hook.seen) + repr(seen) + port.requests[0].shown
    assert HUSH not in text and "$secret" in text


@pytest.mark.parametrize("form", FORMS)
async def test_a34_error_texts_hold_no_secret(memory: Any, form: int) -> None:
    """A34: What the author's error tells is masked, for the model and for the record."""
    fn, args = Vault(tells=True).calls[form]
    with pytest.raises(ToolError, match=r"\*\*\* is wrong") as caught:
        await Executor(store=memory).run_spec(ToolSpec.from_function(fn), args, in_run())
    assert HUSH not in str(caught.value)
    assert HUSH not in repr(await memory.read(lambda tx: tx.select("calls")))


async def test_a34_invalid_arguments_do_not_quote_a_secret(memory: Any) -> None:
    """A34: The line says that it is not valid, and no more."""

    async def pay(pin: Annotated[int, Secret()]) -> None:
        """Pays."""

    with pytest.raises(ToolArgsInvalid) as caught:
        await Executor(store=memory).run_spec(ToolSpec.from_function(pay), {"pin": HUSH})
    assert "pin" in str(caught.value) and HUSH not in str(caught.value)


async def test_a34_logs_hold_no_secret(memory: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A34: At any level, with a watcher that fails."""
    caplog.set_level(logging.DEBUG)
    executor = Executor(store=memory)
    executor.subscribe(lambda event: 1 / 0)
    for fn, args in Vault().calls:
        await executor.run_spec(ToolSpec.from_function(fn), args)
    assert HUSH not in caplog.text


async def test_equal_secrets_have_equal_masks_and_others_do_not(memory: Any) -> None:
    """A reviewer can see that it is the same, and no more; another store's key masks otherwise."""
    from agent_adapter.store import MemoryStore

    fn, args = Vault().calls[0]
    port, spec = FakeApproval(YES), ToolSpec.from_function(fn, confirm=True)
    executor = Executor(store=memory, approval=port)
    for pin in (HUSH, HUSH, "other"):
        await executor.run_spec(spec, {"pin": pin})
    await Executor(store=MemoryStore(), approval=port).run_spec(spec, args)
    masks = [json.dumps(request.arguments["pin"]) for request in port.requests]
    assert masks[0] == masks[1] and len(set(masks)) == 3


# -- traces ----------------------------------------------------------------------------------


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """What is traced, while a provider is configured."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter


async def test_without_a_provider_nothing_is_traced() -> None:
    """And nothing is paid for it."""
    assert events.traced() is False


async def test_a_call_is_a_span_by_the_conventions(memory: Any, spans: Any) -> None:
    """Operation, tool and ids."""
    await Executor(store=memory).run_spec(Till().spec, ARGS, in_run(call_id="c"))
    (span,) = spans.get_finished_spans()
    assert span.name == "execute_tool charge"
    assert span.attributes["gen_ai.operation.name"] == "execute_tool"
    assert span.attributes["gen_ai.tool.name"] == "charge"
    assert span.attributes["gen_ai.tool.call.id"] == "c"


async def test_a_failed_call_is_a_failed_span(memory: Any, spans: Any) -> None:
    """With the kind of the error."""
    with pytest.raises(ToolError):
        await Executor(store=memory).run_spec(Till(ValueError(HUSH)).spec, ARGS)
    (span,) = spans.get_finished_spans()
    assert span.attributes["error.type"] == "tool-failed" and not span.status.is_ok


async def test_a34_spans_hold_no_argument_and_no_text(memory: Any, spans: Any) -> None:
    """A34: Secret or not."""
    executor = Executor(store=memory)
    args = {"order": "personal-order", "amount": 5}
    await executor.run_spec(Till("personal-result").spec, args)
    with pytest.raises(ToolError):
        await executor.run_spec(Till(ToolError("personal-error")).spec, args)
    for fn, given in Vault().calls:
        await executor.run_spec(ToolSpec.from_function(fn), given)
    text = "".join(span.to_json() for span in spans.get_finished_spans())
    assert "personal" not in text and HUSH not in text


async def test_a_call_inside_a_tool_is_a_child_span(memory: Any, spans: Any) -> None:
    """A trace shows who called whom."""
    from agent_adapter.core.context import ToolContext

    executor, inner = Executor(store=memory), Till()
    outer = Till(lambda: executor.run_spec(inner.spec, ARGS, ToolContext()))
    await executor.run_spec(outer.spec, ARGS)
    child, parent = spans.get_finished_spans()
    assert child.parent is not None and child.parent.span_id == parent.context.span_id
