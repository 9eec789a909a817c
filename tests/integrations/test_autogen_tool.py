"""AutoGen tools: runs, errors, approval, cancellation, and native tools under the executor."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("autogen_agentchat")

from autogen_core import CancellationToken
from autogen_core.tools import FunctionTool, StaticWorkbench

import agent_adapter as aa
from agent_adapter.integrations.autogen import INTEGRATION, autogen_tool, autogen_tools

from ._autogen_agent import error_of, run
from ._shop import NO, Shop, asking

pytestmark = pytest.mark.anyio

REFUND = {"order": "A1", "amount": 5}
CALL = ("c1", "refund", REFUND)


def _tools(shop: Shop) -> list[Any]:
    return autogen_tools(shop.registry, executor=shop.executor)


async def test_the_executors_port_decides() -> None:
    """Approved runs, denied does not; there is no other gate."""
    for answer, refunds in ((None, [REFUND]), (NO, [])):
        shop = Shop(approval=asking(answer) if answer else asking())
        found = await run(_tools(shop), [CALL])
        assert shop.refunds == refunds
        assert found["c1"].is_error == (not refunds)


async def test_a_pending_approval_names_its_record() -> None:
    """`DeferredApproval`: the model reads that approval is required, and the tool does not run."""
    store = aa.open_store("memory://")
    shop = Shop(approval=aa.DeferredApproval(store), store=store)
    found = await run(_tools(shop), [CALL])
    [record] = await aa.Inbox(store).list()
    said = f"approval required: {record.id} (a person is asked; nothing has run)"
    assert (found["c1"].is_error, found["c1"].content) == (True, said)
    assert not shop.ran


async def test_a_repeated_call_finds_its_approval_in_a_run_scope() -> None:
    """In a run scope the model may ask again after the decision: one record, one run."""
    store = aa.open_store("memory://")
    shop = Shop(approval=aa.DeferredApproval(store), store=store)
    async with shop.executor.run_scope("order-7"):
        await run(_tools(shop), [CALL])
        [record] = await aa.Inbox(store).list()
        await aa.Inbox(store).approve(record.id, reviewer="ann")
        found = await run(_tools(shop), [("c2", "refund", REFUND)])
    assert shop.refunds == [REFUND]
    assert json.loads(found["c2"].content) == "5 for A1"


async def test_each_call_has_a_run_of_its_own() -> None:
    """AutoGen has no run: two calls share none, unless a run scope surrounds them."""
    shop = Shop()
    turn = [("c1", "look_up", {"order": "A1"}), ("c2", "look_up", {"order": "A2"})]
    await run(_tools(shop), turn)
    assert len({ctx.run_id for ctx in shop.contexts}) == 2
    shop.contexts.clear()
    async with shop.executor.run_scope("mine", "ann"):
        await run(_tools(shop), turn)
    assert {(ctx.run_id, ctx.principal) for ctx in shop.contexts} == {("mine", "ann")}


async def test_arguments_that_are_no_object_are_refused() -> None:
    """A JSON array as arguments: the model is told, nobody is asked."""
    shop = Shop(approval=asking())
    found = await run(_tools(shop), [("c1", "refund", "[1]")])
    assert error_of(found["c1"])["kind"] == "tool-args-invalid"
    assert not shop.ran


async def test_an_error_of_the_library_shows_its_kind_only() -> None:
    """An error that is not for the model is shown by kind and class."""

    class Broken:
        async def run_spec(self, *args: Any, **options: Any) -> Any:
            raise aa.AgentAdapterError("secret path")

    tool = autogen_tool(Shop().registry.get("look_up"), executor=Broken())
    found = await run([tool], [("c1", "look_up", {"order": "A1"})])
    assert "secret" not in found["c1"].content
    assert error_of(found["c1"])["message"] == "AgentAdapterError"


async def test_a_recursive_schema_is_refused_at_export() -> None:
    """A schema that refers to itself cannot be inlined: said when the tool is exported."""
    schema = {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}}
    schema["$defs"] = {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}
    spec = aa.ToolSpec.from_json_schema("tree", "Takes a tree.", schema, lambda **kw: "ran")
    with pytest.raises(aa.ToolDefinitionError, match=r"tree: .*refers to itself"):
        autogen_tool(spec)


async def test_a_cancelled_token_reaches_the_tool() -> None:
    """AutoGen's cancellation token cancels a call that a workbench runs."""
    started, seen = asyncio.Event(), []
    registry = aa.ToolRegistry()

    @registry.tool(effects="read")
    async def hang() -> None:
        """Waits."""
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    bench = StaticWorkbench(autogen_tools(registry, executor=aa.Executor(registry)))  # type: ignore[arg-type]  # AutoGen wants a list of its own class
    token = CancellationToken()
    call = asyncio.ensure_future(bench.call_tool("hang", {}, token, "c1"))
    await started.wait()
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert seen == ["cancelled"]


# AutoGen's own tools


def _native(fn: Any, **options: Any) -> FunctionTool:
    return FunctionTool(fn, description="Multiplies.", **options)


async def times(a: int, b: int = 2) -> int:
    """Multiply."""
    return a * b


async def test_a_native_tool_runs_under_the_executor() -> None:
    """Imported: untrusted and egress, validated by its schema, run once, its value unchanged."""
    spec = INTEGRATION.import_tool(_native(times))
    assert (spec.name, spec.trust, spec.egress) == ("times", "untrusted", True)
    assert await aa.Executor().run_spec(spec, {"a": 4}) == 8
    with pytest.raises(aa.ToolArgsInvalid):
        await aa.Executor().run_spec(spec, {"a": "four"})


async def test_an_imported_tool_takes_policy() -> None:
    """Policy and another name are given at import."""
    spec = INTEGRATION.import_tool(_native(times), name="twice", effects="read", trust="trusted")
    assert (spec.name, spec.effects, spec.trust) == ("twice", "read", "trusted")


async def test_a_failure_of_a_native_tool_is_hidden() -> None:
    """What a native tool raises is named by its class."""

    async def failing(a: int) -> int:
        """Fail."""
        raise ValueError("secret")

    spec = INTEGRATION.import_tool(_native(failing))
    with pytest.raises(aa.ToolFailed, match=r"failed: ValueError$"):
        await aa.Executor().run_spec(spec, {"a": 1})


async def test_a_cancelled_call_cancels_the_native_token() -> None:
    """Cancellation reaches a native tool through AutoGen's token."""
    started = asyncio.Event()
    tokens: list[CancellationToken] = []

    async def hanging(cancellation_token: CancellationToken) -> str:
        """Hang."""
        tokens.append(cancellation_token)
        started.set()
        await asyncio.Event().wait()
        return "never"

    spec = INTEGRATION.import_tool(_native(hanging))
    call = asyncio.ensure_future(aa.Executor().run_spec(spec, {}))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert [token.is_cancelled() for token in tokens] == [True]


def test_what_is_no_autogen_tool_is_refused() -> None:
    """A function is no AutoGen tool; the error says what to do."""
    with pytest.raises(aa.ToolDefinitionError, match="FunctionTool"):
        INTEGRATION.import_tool(times)
