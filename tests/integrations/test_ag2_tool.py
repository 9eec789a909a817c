"""AG2: the exported tool, its ids, arguments, results and errors."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2.events import DataInput, TextInput, ToolErrorEvent
from ag2.exceptions import HumanInputError
from ag2.middleware import approval_required
from ag2.tools.types import FunctionTool

import agent_adapter as aa
from agent_adapter.integrations import requirements
from agent_adapter.integrations.ag2 import INTEGRATION, ag2_tool, ag2_tools, export

from ._ag2_agent import ask, call_event, error_of, results, run, value
from ._shop import Shop, asking

pytestmark = pytest.mark.anyio

REFUND = {"order": "A1", "amount": 5}


def _tool(function: Any, **policy: Any) -> Any:
    registry = aa.ToolRegistry()
    registry.tool(**({"effects": "read"} | policy))(function)
    spec = registry.get(function.__name__)
    return ag2_tool(spec, executor=aa.Executor(registry, store=aa.open_store("memory://")))


# Functions


def test_ag2_tool_is_one_function_tool() -> None:
    """`ag2_tool(spec)` gives one `ag2.tools.types.FunctionTool`."""
    shop = Shop()
    tool = ag2_tool(shop.registry.get("refund"), executor=shop.executor)
    assert isinstance(tool, FunctionTool)
    assert tool.name == "refund"


def test_ag2_tools_are_the_tools_exported_to_ag2() -> None:
    """`ag2_tools(registry)` gives one tool per registry tool whose targets include `ag2`."""
    registry = aa.ToolRegistry()

    @registry.tool(targets=["ag2"])
    def ours() -> str:
        """Goes to AG2."""
        return ""

    @registry.tool(targets=["agno"])
    def theirs() -> str:
        """Goes elsewhere."""
        return ""

    assert [tool.name for tool in ag2_tools(registry)] == ["ours"]


def test_the_integration_is_found_by_name() -> None:
    """`INTEGRATION` is what `get_integration("ag2")` gives."""
    found: object = aa.get_integration("ag2")
    assert found is INTEGRATION


def test_an_event_binds_its_call_id_alone() -> None:
    """`bind_context(event)` knows the call id; the run is a fresh one."""
    ctx = INTEGRATION.bind_context(call_event("refund", call_id="call_7"))
    assert (ctx.call_id, ctx.run_id, ctx.bound_by, ctx.approval) == ("call_7", None, "ag2", None)


async def test_an_event_with_its_context_binds_the_stream() -> None:
    """`bind_context((event, context))` takes the stream's id for run and thread."""
    reply = await ask([])
    ctx = INTEGRATION.bind_context((call_event("refund"), reply.context))
    assert ctx.run_id == ctx.thread_id == str(reply.context.stream.id)


def test_there_is_no_native_approval_gate() -> None:
    """`bind_approval(port)` is `None`: the gate is `approval=`."""
    assert INTEGRATION.bind_approval(asking()) is None


def test_the_schema_is_the_neutral_one_and_a_copy() -> None:
    """The tool takes the neutral schema; AG2's removal of `title` reaches nothing of ours."""
    spec = Shop().registry.get("refund")
    tool = ag2_tool(spec)
    assert tool.schema.function.parameters == spec.json_schema()
    tool.schema.function.parameters.clear()
    assert spec.json_schema()["properties"]


async def test_middleware_runs_outermost_first_outside_of_the_gate() -> None:
    """`middleware` wraps the gate, the first entry outermost."""
    order: list[str] = []

    def layer(name: str) -> Any:
        async def hook(call_next: Any, event: Any, context: Any) -> Any:
            order.append(name)
            return await call_next(event, context)

        return hook

    def answer(request: aa.ApprovalRequest) -> aa.ApprovalDecision:
        order.append("port")
        return aa.ApprovalDecision.approve()

    port = asking(answer)
    shop = Shop()
    tools = ag2_tools(
        shop.registry, executor=shop.executor, approval=port, middleware=[layer("a"), layer("b")]
    )
    await run(tools, call_event("refund", REFUND))
    assert order == ["a", "b", "port"]


async def test_the_port_sees_what_middleware_changed() -> None:
    """The gate is innermost, so the port sees the arguments that run."""

    async def halve(call_next: Any, event: Any, context: Any) -> Any:
        event.serialized_arguments = {**event.serialized_arguments, "amount": 2}
        return await call_next(event, context)

    port, shop = asking(), Shop()
    tools = ag2_tools(shop.registry, executor=shop.executor, approval=port, middleware=[halve])
    await run(tools, call_event("refund", REFUND))
    assert port.requests[0].arguments["amount"] == 2
    assert shop.refunds == [{"order": "A1", "amount": 2}]


def test_a_release_without_a_name_we_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An AG2 that lacks what the bridge reads: `IntegrationError` with version, range and name."""
    reads = (*export.READS, ("ag2.tools.types", ("FunctionTool.no_such_name",)))
    monkeypatch.setattr(export, "READS", reads)
    export.check_ag2.cache_clear()
    with pytest.raises(aa.IntegrationError, match=r"ag2 1\.\S+ has no ag2\.tools.*ag2\S*>=1\.2"):
        ag2_tool(Shop().registry.get("refund"))
    export.check_ag2.cache_clear()


def test_a_module_we_read_may_not_be_missing() -> None:
    """A module that is gone is named like any other name."""
    with pytest.raises(aa.IntegrationError, match=r"has no ag2\.no_such_module"):
        requirements.check_surface("ag2", "ag2", [("ag2.no_such_module", ())])


def test_an_ag2_outside_of_the_range_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An AG2 outside the extra's range: `IntegrationError`, before anything is exported."""

    def refuse(extra: str, roots: Any) -> None:
        raise aa.IntegrationError(f"{extra} 0.10.1 is outside >=1.2,<2")

    monkeypatch.setattr(requirements, "check_installed", refuse)
    export.check_ag2.cache_clear()
    with pytest.raises(aa.IntegrationError, match=r"0\.10\.1"):
        ag2_tool(Shop().registry.get("refund"))
    export.check_ag2.cache_clear()


def test_a_function_is_no_approval_port() -> None:
    """A reviewer function in place of a port is refused with the fix in the message."""
    with pytest.raises(TypeError, match=r"CallbackApproval"):
        ag2_tool(Shop().registry.get("refund"), approval=lambda request: True)  # type: ignore[arg-type]  # what is tested


# Calls and errors


async def test_the_event_id_is_the_call_id_and_the_stream_is_the_run() -> None:
    """`ToolCallEvent.id` is `ctx.call_id`; the stream's id is `ctx.run_id` and `ctx.thread_id`."""
    shop = Shop()
    reply = await ask(
        ag2_tools(shop.registry, executor=shop.executor),
        [call_event("look_up", {"order": "A1"}, call_id="call_9")],
    )
    ctx = shop.contexts[0]
    stream = str(reply.context.stream.id)
    assert (ctx.call_id, ctx.run_id, ctx.thread_id) == ("call_9", stream, stream)


@pytest.mark.parametrize("text", ["[1]", '"x"', "1", "null", "true", "{", "{'order': 1}", "NaN x"])
@pytest.mark.parametrize("gated", [True, False])
async def test_arguments_that_are_no_object_are_refused_unasked(text: str, gated: bool) -> None:
    """Arguments that are not a JSON object: error `tool-args-invalid`, and nobody is asked."""
    port, shop = asking(), Shop()
    tools = ag2_tools(shop.registry, executor=shop.executor, approval=port if gated else None)
    found = await run(tools, call_event("refund", text))
    assert error_of(found["call_1"])["kind"] == "tool-args-invalid"
    assert isinstance(found["call_1"].error, aa.ToolArgsInvalid)
    assert not port.requests
    assert not shop.ran


async def test_no_arguments_are_an_empty_object() -> None:
    """An empty argument text is a call without arguments, as in AG2 itself."""

    def ping() -> str:
        """Answers."""
        return "pong"

    found = await run([_tool(ping)], call_event("ping", ""))
    assert value(found["call_1"]) == "pong"


async def test_invalid_arguments_are_shown_without_a_traceback() -> None:
    """`ToolArgsInvalid` reaches the model as kind and message; the event holds the exception."""
    shop = Shop()
    tools = ag2_tools(shop.registry, executor=shop.executor)
    found = await run(tools, call_event("look_up", {"order": 7}))
    shown = error_of(found["call_1"])
    assert shown["kind"] == "tool-args-invalid"
    assert "order" in shown["message"]
    assert "Traceback" not in shown["message"]
    assert isinstance(found["call_1"].error, aa.ToolArgsInvalid)


async def test_arguments_are_neither_coerced_nor_dropped() -> None:
    """AG2's own coercion ("7" for 7) and silent dropping of unknown arguments do not happen."""
    shop = Shop()
    tools = ag2_tools(shop.registry, executor=shop.executor)
    for extra in ({"amount": "7"}, {"currency": "EUR"}):
        found = await run(tools, call_event("refund", REFUND | extra))
        assert error_of(found["call_1"])["kind"] == "tool-args-invalid"
    assert not shop.ran


async def test_a_foreign_exception_shows_its_class_only() -> None:
    """`ToolFailed`: the model sees the class, the event's error has the original as its cause."""

    def broken() -> str:
        """Fails."""
        raise RuntimeError("the password is hunter2")

    found = (await run([_tool(broken)], call_event("broken")))["call_1"]
    assert error_of(found)["kind"] == "tool-failed"
    assert "hunter2" not in json.dumps(error_of(found))
    assert isinstance(found.error, aa.ToolFailed)
    assert isinstance(found.error.__cause__, RuntimeError)


async def test_an_authors_error_is_shown_as_written() -> None:
    """`ToolError` is what a tool's author says to the model."""

    def closed() -> str:
        """Is closed."""
        raise aa.ToolError("the shop is closed")

    found = await run([_tool(closed)], call_event("closed"))
    assert error_of(found["call_1"]) == {"kind": "tool-error", "message": "the shop is closed"}


async def test_an_error_for_the_program_shows_its_kind_only() -> None:
    """An error of ours that a model may not read keeps its text for the program."""

    class Runner:
        async def run_spec(self, *args: Any, **options: Any) -> Any:
            raise aa.StoreError("cannot write /srv/secret/path.db")

    spec = Shop().registry.get("look_up")
    found = (await run([ag2_tool(spec, executor=Runner())], call_event("look_up", {})))["call_1"]
    assert error_of(found) == {"kind": "store-error", "message": "StoreError"}
    assert "secret" in str(found.error)


async def test_cancellation_propagates() -> None:
    """`CancelledError` reaches the tool, and the caller of the agent."""
    entered, seen = asyncio.Event(), []

    async def wait() -> str:
        """Waits."""
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return ""

    task = asyncio.ensure_future(run([_tool(wait)], call_event("wait")))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


@pytest.mark.parametrize("gated", [False, True])
async def test_the_tool_itself_lets_cancellation_pass(gated: bool) -> None:
    """Called without AG2's tasks around it, neither the tool nor its gate answers a cancelled call.

    AG2 runs tools in tasks of their own, so that an agent's turn would end even if they did.
    """
    entered, registry = asyncio.Event(), aa.ToolRegistry()

    @registry.tool(confirm=gated)
    async def wait() -> str:
        """Waits."""
        entered.set()
        await asyncio.Event().wait()
        return ""

    executor = aa.Executor(registry, store=aa.open_store("memory://"))
    tool = ag2_tool(registry.get("wait"), executor=executor, approval=asking())
    event, context = call_event("wait"), SimpleNamespace(stream=SimpleNamespace(id="s"))
    entry = partial(tool.middleware[0].middleware, tool) if gated else tool
    task = asyncio.ensure_future(entry(event, context))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_registration_copies_share_spec_executor_and_tokens() -> None:
    """AG2 deep-copies tools; a copy of a copy still runs through the very executor, once asked."""
    port, shop = asking(), Shop()
    tool = ag2_tool(shop.registry.get("refund"), executor=shop.executor, approval=port)
    found = await run([copy.deepcopy(copy.deepcopy(tool))], call_event("refund", REFUND))
    assert value(found["call_1"]) == "5 for A1"
    assert len(port.requests) == 1
    assert shop.contexts[0].call_id == "call_1"


async def test_a_runner_with_a_lock_can_be_registered() -> None:
    """A lock in the runner does not break registration: it is not copied."""

    class Locked:
        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.calls = 0

        async def run_spec(self, *args: Any, **options: Any) -> Any:
            self.calls += 1
            return "ok"

    runner = Locked()
    await run([ag2_tool(Shop().registry.get("look_up"), executor=runner)], call_event("look_up"))
    assert runner.calls == 1


def test_two_tools_of_one_name_have_two_sources() -> None:
    """AG2 grants "always" by source: exports do not share one, copies do."""
    spec = Shop().registry.get("refund")
    first, second = ag2_tool(spec), ag2_tool(spec)
    assert first.source != second.source
    assert copy.deepcopy(first).source == first.source


async def test_text_stays_text_and_other_results_are_data() -> None:
    """A str result is a `TextInput`; everything else a `DataInput` of JSON values."""

    def text() -> str:
        """Text."""
        return "plain"

    def data() -> list[dict[str, int]]:
        """Data."""
        return [{"a": 1}]

    found = await run([_tool(text), _tool(data)], call_event("text"))
    assert isinstance(found["call_1"].result.parts[0], TextInput)
    found = await run([_tool(data)], call_event("data"))
    part = found["call_1"].result.parts[0]
    assert isinstance(part, DataInput)
    assert part.data == [{"a": 1}]


async def test_routing_results_keep_their_type() -> None:
    """`Handoff` and `Finish` stay what they are, for whoever runs the turn."""

    def route() -> aa.Handoff:
        """Hands over."""
        return aa.Handoff("ann", "billing")

    found = await run([_tool(route)], call_event("route"))
    assert value(found["call_1"]) == aa.Handoff("ann", "billing")


async def test_a_human_channel_that_breaks_ends_the_turn() -> None:
    """AG2's own `HumanInputError`, raised around the tool, ends the turn as AG2 intends."""
    shop = Shop(confirm=False)
    tools = ag2_tools(
        shop.registry, executor=shop.executor, middleware=[approval_required("sure?")]
    )
    with pytest.raises(HumanInputError):
        await run(tools, call_event("refund", REFUND))
    assert not shop.ran


async def test_a_tool_cannot_end_the_turn_with_ag2s_error() -> None:
    """The same error out of a tool is that tool's failure."""

    def broken() -> str:
        """Fails."""
        raise HumanInputError("nobody there")

    found = await run([_tool(broken)], call_event("broken"))
    assert isinstance(found["call_1"], ToolErrorEvent)
    assert error_of(found["call_1"])["kind"] == "tool-failed"


@pytest.mark.parametrize("name", ["stack", "context", "cache_dependencies", "dependency_provider"])
async def test_argument_names_that_ag2_takes_arrive(name: str) -> None:
    """Arguments named like parameters of AG2's call machinery reach the tool (U8)."""
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}

    def echo(**arguments: Any) -> str:
        return str(arguments[name])

    spec = aa.ToolSpec.from_json_schema("echo", "Echoes.", schema, echo, effects="read")
    executor = aa.Executor(store=aa.open_store("memory://"))
    found = await run([ag2_tool(spec, executor=executor)], call_event("echo", {name: "x"}))
    assert value(found["call_1"]) == "x"


async def test_results_come_back_by_call_id() -> None:
    """The wiring's reading of the history: one batch per model turn, results by name."""
    shop = Shop()
    calls = [call_event("look_up", {"order": o}, call_id=o) for o in ("A1", "A2")]
    found = await results(await ask(ag2_tools(shop.registry, executor=shop.executor), calls))
    assert {key: value(item) for key, item in found.items()} == {
        "A1": {"order": "A1"},
        "A2": {"order": "A2"},
    }
