"""Tools of AG2, Agno and the SDKs as specs: policy, errors, and what cannot come along."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("ag2")
pytest.importorskip("agno")
pytest.importorskip("anthropic")
pytest.importorskip("openai")

import ag2
import agno.tools
from ag2.middleware import approval_required
from agno.tools.function import Function, ToolResult
from anthropic.lib.tools import ToolError as AnthropicError
from anthropic.lib.tools import beta_async_tool, beta_tool
from openai.lib.responses_tool_runner import AsyncRegisteredFunction, RegisteredFunction

import agent_adapter as aa
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.discovery import get_integration

from ._shop import NO, YES, asking

pytestmark = [pytest.mark.anyio, pytest.mark.contract]

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def run(spec: ToolSpec, args: Any, **options: Any) -> Any:
    """One call of an imported tool through an executor."""
    return await aa.Executor(store=aa.open_store("memory://"), **options).run_spec(spec, args)


async def double(n: int) -> int:
    """Doubles a number."""
    return 2 * n


def double_now(n: int) -> int:
    """Doubles a number."""
    return 2 * n


async def double_text(n: int) -> str:
    """Doubles a number."""
    return str(2 * n)


def double_text_now(n: int) -> str:
    """Doubles a number."""
    return str(2 * n)


async def _execute(args: Any) -> Any:
    return {"n": 2 * args["n"]}


def _execute_now(args: Any) -> Any:
    return {"n": 2 * args["n"]}


TOOL: Any = {"type": "function", "name": "double", "description": "Doubles.", "parameters": SCHEMA}
NATIVES: dict[str, tuple[str, Any, Any]] = {
    "ag2": ("ag2", ag2.tool(double), 14),
    "ag2-sync": ("ag2", ag2.tool(double_now), 14),
    "agno": ("agno", Function.from_callable(double), 14),
    "agno-sync": ("agno", Function.from_callable(double_now), 14),
    "agno-decorated": ("agno", agno.tools.tool(double), 14),
    "anthropic": ("anthropic", beta_async_tool(double_text), "14"),
    "anthropic-sync": ("anthropic", beta_tool(double_text_now), "14"),
    "openai": ("openai", AsyncRegisteredFunction(TOOL, _execute), {"n": 14}),
    "openai-sync": ("openai", RegisteredFunction(TOOL, _execute_now), {"n": 14}),
}


@pytest.fixture(params=list(NATIVES))
def native(request: pytest.FixtureRequest) -> tuple[Any, Any, Any]:
    """Integration, native tool, and what it makes of 7."""
    name, tool, result = NATIVES[request.param]
    return get_integration(name), tool, result


async def test_imported_tool_runs_under_the_executor(native: Any) -> None:
    """Same description and schema, and the native result as JSON values."""
    integration, tool, result = native
    spec = integration.import_tool(tool)
    assert spec.description.startswith("Doubles")
    assert spec.json_schema()["properties"]["n"]["type"] == "integer"
    assert await run(spec, {"n": 7}) == result


async def test_imported_tool_is_foreign(native: Any) -> None:
    """A22: untrusted, and counted as sending data out, unless the importer says otherwise."""
    integration, tool, _ = native
    spec = integration.import_tool(tool)
    assert (spec.trust, spec.egress, spec.effects) == ("untrusted", True, "write")
    said = integration.import_tool(tool, name="twice", trust="trusted", effects="read")
    assert (said.name, said.trust, said.effects) == ("twice", "trusted", "read")


async def test_imported_tool_checks_its_arguments(native: Any) -> None:
    """The framework is not reached by what does not fit."""
    integration, tool, _ = native
    with pytest.raises(aa.ToolArgsInvalid):
        await run(integration.import_tool(tool), {"n": "seven"})


async def test_imported_tool_can_ask(native: Any) -> None:
    """`confirm=True` puts our approval before any framework's tool."""
    integration, tool, result = native
    spec = integration.import_tool(tool, confirm=True)
    with pytest.raises(aa.ApprovalDenied):
        await run(spec, {"n": 7}, approval=asking(NO))
    assert await run(spec, {"n": 7}, approval=asking(YES)) == result


async def fail(n: int) -> str:
    """Doubles, were it not for a secret."""
    raise RuntimeError("canary")


async def _fail(args: Any) -> Any:
    raise RuntimeError("canary")


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("ag2", ag2.tool(fail)),
        ("agno", Function.from_callable(fail)),
        ("anthropic", beta_async_tool(fail)),
        ("openai", AsyncRegisteredFunction(TOOL, _fail)),
    ],
)
async def test_text_of_a_foreign_exception_stays_hidden(name: str, tool: Any) -> None:
    """C9: whichever framework it comes through."""
    integration: Any = get_integration(name)
    with pytest.raises(aa.ToolFailed) as failed:
        await run(integration.import_tool(tool), {"n": 7})
    assert "canary" not in str(failed.value)


async def test_anthropic_error_of_the_author_is_shown() -> None:
    """Its author wrote it for a model."""

    async def refuse(n: int) -> str:
        """Refuses."""
        raise AnthropicError("not that number")

    integration: Any = get_integration("anthropic")
    with pytest.raises(aa.ToolFailed, match="not that number"):
        await run(integration.import_tool(beta_async_tool(refuse)), {"n": 7})


async def test_native_approval_becomes_ours() -> None:
    """AG2's `approval_required` and Agno's `requires_confirmation` ask our port."""
    ag2_tool = ag2.tool(double, middleware=[approval_required()])
    agno_tool = Function.from_callable(double)
    agno_tool.requires_confirmation = True
    for name, tool in (("ag2", ag2_tool), ("agno", agno_tool)):
        integration: Any = get_integration(name)
        spec = integration.import_tool(tool)
        assert spec.confirm is True
        assert await run(spec, {"n": 7}, approval=asking(YES)) == 14


async def test_ag2_middleware_of_the_tool_stays_around_it() -> None:
    """It belongs to the tool."""

    async def shout(call_next: Any, event: Any, context: Any) -> Any:
        event.serialized_arguments["n"] += 1
        return await call_next(event, context)

    integration: Any = get_integration("ag2")
    assert await run(integration.import_tool(ag2.tool(double, middleware=[shout])), {"n": 7}) == 16


async def test_agno_result_with_media_is_its_text() -> None:
    """An Agno `ToolResult` has its content in text."""

    async def draw(n: int) -> ToolResult:
        """Draws."""
        return ToolResult(content=f"drew {n}")

    integration: Any = get_integration("agno")
    assert await run(integration.import_tool(Function.from_callable(draw)), {"n": 7}) == "drew 7"


async def test_importing_changes_nothing() -> None:
    """The native tool's schema is its owner's."""
    tool = agno.tools.tool(double)
    before = json.dumps(tool.parameters)
    integration: Any = get_integration("agno")
    integration.import_tool(tool)
    assert json.dumps(tool.parameters) == before


@pytest.mark.parametrize("name", ["ag2", "agno", "anthropic", "openai"])
async def test_what_is_no_tool_is_refused_by_name(name: str) -> None:
    """The message says what can be imported."""
    integration: Any = get_integration(name)
    with pytest.raises(aa.IntegrationError, match=rf"{name} imports"):
        integration.import_tool(double)


@pytest.mark.parametrize("flag", ["external_execution", "requires_user_input"])
async def test_agno_function_that_runs_elsewhere_is_refused(flag: str) -> None:
    """There is nothing here that could run it."""
    tool = Function.from_callable(double)
    setattr(tool, flag, True)
    integration: Any = get_integration("agno")
    with pytest.raises(aa.IntegrationError, match="cannot be imported"):
        integration.import_tool(tool)


async def test_anthropic_tool_of_the_provider_is_refused() -> None:
    """The provider defines its schema, so it can run nowhere else."""
    from anthropic.lib.tools import BetaAbstractMemoryTool

    class Memory(BetaAbstractMemoryTool):
        """The SDK's memory tool."""

    Memory.__abstractmethods__ = frozenset()
    integration: Any = get_integration("anthropic")
    with pytest.raises(aa.IntegrationError, match="the provider defines it"):
        integration.import_tool(Memory())  # type: ignore[abstract]  # no method of it is called
