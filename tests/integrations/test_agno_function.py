"""Agno: the exported function, its ids, arguments, results and errors."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from typing import Any

import pytest

pytest.importorskip("agno")

from agno.exceptions import StopAgentRun
from agno.tools.function import Function, FunctionCall

import agent_adapter as aa
from agent_adapter.integrations import requirements
from agent_adapter.integrations.agno import INTEGRATION, agno_function, agno_functions, export

from ._agno_agent import agent_of, error_of, failed, offered, shown
from ._shop import Shop, asking

pytestmark = pytest.mark.anyio


def _function(tool: Any, **policy: Any) -> Function:
    registry = aa.ToolRegistry()
    registry.tool(**({"effects": "read"} | policy))(tool)
    spec = registry.get(tool.__name__)
    return agno_function(spec, executor=aa.Executor(registry, store=aa.open_store("memory://")))


def _schema_spec(name: str, *arguments: str, fn: Any = None) -> aa.ToolSpec:
    schema = {"type": "object", "properties": {argument: {} for argument in arguments}}
    return aa.ToolSpec.from_json_schema(
        name, "Echoes.", schema, fn or (lambda **given: given), effects="read"
    )


# Functions


def test_agno_function_is_one_function() -> None:
    """`agno_function(spec)` gives one `agno.tools.function.Function`."""
    function = agno_function(Shop().registry.get("look_up"))
    assert isinstance(function, Function)
    assert function.skip_entrypoint_processing
    assert function.requires_confirmation is None


def test_agno_functions_are_the_tools_exported_to_agno() -> None:
    """`agno_functions(registry)` gives one function per registry tool exported to `agno`."""
    registry = aa.ToolRegistry()

    @registry.tool(targets=["agno"])
    def ours() -> str:
        """Goes to Agno."""
        return ""

    @registry.tool(targets=["ag2"])
    def theirs() -> str:
        """Goes elsewhere."""
        return ""

    assert [function.name for function in agno_functions(registry)] == ["ours"]


def test_the_integration_is_found_by_name() -> None:
    """`INTEGRATION` is what `get_integration("agno")` gives."""
    found: object = aa.get_integration("agno")
    assert found is INTEGRATION
    assert INTEGRATION.bind_approval(asking()) is None


def test_a_function_call_binds_ids_only() -> None:
    """`bind_context(function_call)` gives ids, never an approval."""
    call = FunctionCall(function=agno_function(Shop().registry.get("refund")), call_id="c7")
    ctx = INTEGRATION.bind_context(call)
    assert (ctx.call_id, ctx.run_id, ctx.thread_id, ctx.approval) == ("c7", None, None, None)
    assert ctx.bound_by == "agno"
    assert ctx.identity.run is None


async def test_the_schema_reaches_the_model_as_it_is() -> None:
    """The function takes the neutral schema as parameters, untouched and a copy."""
    spec = Shop().registry.get("look_up")
    agent = agent_of([agno_function(spec)])
    await agent.arun("go")
    assert offered(agent)[0]["function"]["parameters"] == spec.json_schema()
    agno_function(spec).parameters.clear()
    assert spec.json_schema()["properties"]


@pytest.mark.parametrize("rule", [True, "tainted", lambda args, ctx: False])
def test_any_confirm_rule_pauses(rule: Any) -> None:
    """Any confirm rule sets `requires_confirmation=True`."""
    assert agno_function(Shop(confirm=rule).registry.get("refund")).requires_confirmation is True


def test_a_release_without_a_name_we_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An Agno that lacks what the bridge reads: `IntegrationError` with version, range and name."""
    reads = (*export.READS, ("agno.tools.function", ("Function.model_fields.no_such_field",)))
    monkeypatch.setattr(export, "READS", reads)
    export.check_agno.cache_clear()
    with pytest.raises(aa.IntegrationError, match=r"agno 3\.\S+ has no .*no_such_field.*>=3\.1"):
        agno_function(Shop().registry.get("refund"))
    export.check_agno.cache_clear()


def test_an_agno_outside_of_the_range_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An Agno outside the extra's range: `IntegrationError`, before anything is exported."""

    def refuse(extra: str, roots: Any) -> None:
        raise aa.IntegrationError(f"{extra} 2.0 is outside >=3.1,<4")

    monkeypatch.setattr(requirements, "check_installed", refuse)
    export.check_agno.cache_clear()
    with pytest.raises(aa.IntegrationError, match=r"outside"):
        agno_function(Shop().registry.get("refund"))
    export.check_agno.cache_clear()


@pytest.mark.parametrize("name", ["fc", "_agno_agent", "_agno_team", "_agno_run_context"])
def test_an_argument_that_agno_fills_itself_is_refused(name: str) -> None:
    """Agno injects objects of its own into these names: `ToolDefinitionError` at export (U8)."""
    with pytest.raises(aa.ToolDefinitionError, match=f"echo.*{name}"):
        agno_function(_schema_spec("echo", name))


@pytest.mark.parametrize("name", ["get_user_input", "ask_user"])
def test_a_tool_name_that_agno_answers_itself_is_refused(name: str) -> None:
    """Agno would answer tools of these names by asking its user."""
    with pytest.raises(aa.ToolDefinitionError, match=name):
        agno_function(_schema_spec(name, "questions"))


@pytest.mark.parametrize("name", ["agent", "team", "run_context", "images", "self", "files"])
async def test_other_names_of_agnos_arrive(name: str) -> None:
    """Arguments named like Agno's other injections are the model's (U8)."""
    executor = aa.Executor(store=aa.open_store("memory://"))
    agent = agent_of(
        [agno_function(_schema_spec("echo", name, fn=_echo), executor=executor)],
        [("c1", "echo", {name: "x"})],
    )
    await agent.arun("go")
    assert json.loads(shown(agent)["c1"]) == {name: "x"}


def _echo(**given: Any) -> dict[str, Any]:
    return given


def test_exporting_keeps_no_executor_alive() -> None:
    """The executor of an export lives as long as what uses it."""
    spec = Shop().registry.get("refund")
    executor = aa.Executor(store=aa.open_store("memory://"))
    agno_function(spec, executor=executor)
    gone = weakref.ref(executor)
    del executor
    gc.collect()
    assert gone() is None


# Calls and errors


async def test_ids_come_from_the_call_the_run_and_the_session() -> None:
    """`FunctionCall.call_id`, the agent's `run_id` and its `session_id` are the context's ids."""
    shop = Shop()
    agent = agent_of(
        agno_functions(shop.registry, executor=shop.executor), [("c1", "look_up", {"order": "A1"})]
    )
    output = await agent.arun("go")
    ctx = shop.contexts[0]
    assert (ctx.call_id, ctx.run_id, ctx.thread_id) == ("c1", output.run_id, output.session_id)


async def test_results_are_json_text() -> None:
    """Results reach Agno as JSON text, not as Python's `str`."""

    def none() -> None:
        """Nothing."""

    def data() -> dict[str, Any]:
        """Data."""
        return {"ok": True, "names": ["ä"]}

    agent = agent_of([_function(none), _function(data)], [("c1", "none", {}), ("c2", "data", {})])
    output = await agent.arun("go")
    assert json.loads(shown(agent)["c1"]) is None
    assert json.loads(shown(agent)["c2"]) == {"ok": True, "names": ["ä"]}
    assert failed(output) == [False, False]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (aa.ToolError("closed"), "tool-error"),
        (aa.ApprovalDenied("no"), "approval-denied"),
        (aa.GuardrailBlocked("no"), "guardrail-blocked"),
        (aa.RunLimitExceeded("no"), "run-limit-exceeded"),
        (aa.ToolArgsInvalid("refund", ["order: missing"]), "tool-args-invalid"),
    ],
)
async def test_errors_for_the_model_are_returned_as_json(error: Exception, kind: str) -> None:
    """The five kinds of errors that a model may read come back as `{"error": …}` in JSON text."""

    class Runner:
        async def run_spec(self, *args: Any, **options: Any) -> Any:
            raise error

    agent = agent_of(
        [agno_function(Shop().registry.get("look_up"), executor=Runner())],
        [("c1", "look_up", {"order": "A1"})],
    )
    await agent.arun("go")
    assert error_of(agent)["kind"] == kind


async def test_invalid_arguments_are_returned_not_raised() -> None:
    """`ToolArgsInvalid` of a real call, unknown arguments included."""
    shop = Shop()
    agent = agent_of(
        agno_functions(shop.registry, executor=shop.executor),
        [("c1", "look_up", {"order": 7}), ("c2", "look_up", {"order": "A1", "fc": 1, "x": 2})],
    )
    await agent.arun("go")
    assert error_of(agent, "c1")["kind"] == error_of(agent, "c2")["kind"] == "tool-args-invalid"
    assert not shop.ran


async def test_other_errors_fail_the_call_and_show_their_class_only() -> None:
    """Other errors are raised: Agno reports a failed tool call, without their text."""

    class Runner:
        async def run_spec(self, *args: Any, **options: Any) -> Any:
            raise OSError("hunter2")

    agent = agent_of(
        [agno_function(Shop().registry.get("look_up"), executor=Runner())],
        [("c1", "look_up", {"order": "A1"})],
    )
    output = await agent.arun("go")
    assert failed(output) == [True]
    assert shown(agent)["c1"] == "OSError"


async def test_a_tools_own_exception_shows_its_class_only() -> None:
    """A tool's exception is `ToolFailed`: neither text nor arguments reach the model."""

    def broken() -> str:
        """Fails."""
        raise StopAgentRun("hunter2")

    agent = agent_of([_function(broken)], [("c1", "broken", {})], "done")
    output = await agent.arun("go")
    assert error_of(agent)["kind"] == "tool-failed"
    assert "hunter2" not in shown(agent)["c1"]
    assert output.content == "done"


async def test_a_pending_approval_is_no_success() -> None:
    """The executor's own deferred port: a failed call that names the record, and nothing ran."""
    store = aa.open_store("memory://")
    shop = Shop(store=store, approval=aa.DeferredApproval(store))
    agent = agent_of(
        agno_functions(shop.registry, executor=shop.executor),
        [("c1", "refund", {"order": "A1", "amount": 5})],
    )
    output = await agent.arun("go")
    output.active_requirements[0].confirm()  # type: ignore[no-untyped-call]  # Agno's
    output = await agent.acontinue_run(run_response=output)
    assert failed(output) == [True]
    assert shown(agent)["c1"].startswith("approval required: apr_")
    assert not shop.ran


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

    task = asyncio.ensure_future(agent_of([_function(wait)], [("c1", "wait", {})]).arun("go"))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


# Arguments that Agno rewrites


@pytest.mark.parametrize("text", ["none", "None", " NULL ", "true", " TRUE", "False"])
async def test_rewritten_text_is_recovered(text: str) -> None:
    """Agno turns these texts into None and booleans; the tool gets what the model wrote."""
    shop = Shop()
    agent = agent_of(
        agno_functions(shop.registry, executor=shop.executor), [("c1", "look_up", {"order": text})]
    )
    await agent.arun("go")
    assert shop.ran == [("look_up", {"order": text})]


async def test_real_nulls_and_booleans_stay_what_they_are() -> None:
    """What the model meant as null or a boolean is not made text."""

    def flags(on: bool, name: str | None = "x") -> list[Any]:
        """Flags."""
        return [on, name]

    agent = agent_of([_function(flags)], [("c1", "flags", {"on": True, "name": None})])
    await agent.arun("go")
    assert json.loads(shown(agent)["c1"]) == [True, None]


async def test_parallel_calls_recover_their_own_text() -> None:
    """Each of several calls of one message recovers its own arguments, by call id."""
    shop = Shop()
    agent = agent_of(
        agno_functions(shop.registry, executor=shop.executor),
        [("c1", "look_up", {"order": "none"}), ("c2", "look_up", {"order": "null"})],
    )
    await agent.arun("go")
    assert sorted(arguments["order"] for _, arguments in shop.ran) == ["none", "null"]


async def test_text_that_cannot_be_told_apart_stays_rewritten() -> None:
    """Two calls under one id that Agno made alike are not guessed at."""
    shop = Shop()
    agent = agent_of(
        agno_functions(shop.registry, executor=shop.executor),
        [("c1", "look_up", {"order": "none"}), ("c1", "look_up", {"order": "null"})],
    )
    await agent.arun("go")
    assert not shop.ran
    assert error_of(agent)["kind"] == "tool-args-invalid"


async def test_without_a_run_the_arguments_are_as_agno_gives_them() -> None:
    """A function called outside of a run has no message to recover from."""
    shop = Shop()
    function = agno_function(shop.registry.get("look_up"), executor=shop.executor)
    outcome = await FunctionCall(function=function, arguments={"order": None}).aexecute()
    assert json.loads(str(outcome.result))["error"]["kind"] == "tool-args-invalid"
