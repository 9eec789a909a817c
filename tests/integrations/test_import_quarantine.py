"""Tools that a framework fills in, and bad ones among good: refused by name, and alone."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

import agent_adapter as aa
from agent_adapter.core.errors import IntegrationError
from agent_adapter.integrations.discovery import get_integration
from agent_adapter.integrations.generic import run_tool_loop

pytestmark = [pytest.mark.contract, pytest.mark.anyio]


def _langchain(needy: bool) -> Any:
    from langchain_core.tools import InjectedToolArg, StructuredTool

    def look(a: int) -> int:
        """Looks."""
        return a

    def needs(a: int, user: Annotated[str, InjectedToolArg]) -> int:
        """Needs."""
        return a

    needs.__annotations__["user"] = Annotated[str, InjectedToolArg]
    return StructuredTool.from_function(needs if needy else look)


def _fastmcp(needy: bool) -> Any:
    from fastmcp import Context
    from fastmcp.tools import Tool

    def look(a: int) -> int:
        """Looks."""
        return a

    def needs(a: int, user: Context) -> int:
        """Needs."""
        return a

    needs.__annotations__["user"] = Context
    return Tool.from_function(needs if needy else look)


def _agno(needy: bool) -> Any:
    from agno.run import RunContext
    from agno.tools.function import Function

    def look(a: int) -> int:
        """Looks."""
        return a

    def needs(a: int, user: RunContext) -> int:
        """Needs."""
        return a

    needs.__annotations__["user"] = RunContext
    return Function.from_callable(needs if needy else look)


def _ag2(needy: bool) -> Any:
    from ag2 import Inject, tool

    def look(a: int) -> int:
        """Looks."""
        return a

    def needs(a: int, user: Annotated[str, Inject()]) -> int:
        """Needs."""
        return a

    needs.__annotations__ = {"a": int, "user": Annotated[str, Inject()], "return": int}
    look.__annotations__ = {"a": int, "return": int}
    return tool(needs if needy else look)


_MADE: dict[str, Callable[[bool], Any]] = {
    "langchain": _langchain,
    "fastmcp": _fastmcp,
    "agno": _agno,
    "ag2": _ag2,
}


@pytest.mark.parametrize("target", _MADE)
def test_s14_what_only_the_framework_can_fill_in_is_refused_by_name(target: str) -> None:
    """S14: a tool that would always fail is refused at its import, with the parameter."""
    pytest.importorskip(target)
    with pytest.raises(
        aa.ToolDefinitionError, match=r"needs: its parameter user is .*default|None"
    ):
        get_integration(target).import_tool(_MADE[target](True))  # type: ignore[attr-defined]


@pytest.mark.parametrize("target", [*_MADE, "autogen"])
async def test_s8_one_bad_tool_of_many_costs_no_other(
    target: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S8: each importer leaves a bad tool out with a warning, or raises its error."""
    pytest.importorskip("autogen_core" if target == "autogen" else target)
    if target == "autogen":
        from autogen_core.tools import FunctionTool

        def look(a: int) -> int:
            return a

        good, bad = FunctionTool(look, description="Looks."), object()
    else:
        good, bad = _MADE[target](False), _MADE[target](True)
    integration: Any = get_integration(target)
    with caplog.at_level(logging.WARNING):
        specs = integration.import_tools([good, bad, good, object()], effects="read")
    assert [(spec.name, spec.effects) for spec in specs] == [("look", "read")] * 2
    assert await aa.Executor(store=aa.open_store("memory://")).run_spec(specs[0], {"a": 1}) == 1
    assert "is not imported from" in caplog.text
    with pytest.raises((aa.ToolDefinitionError, IntegrationError)):
        integration.import_tools([good, bad], on_error="raise")


def test_an_integration_without_tools_of_its_own_imports_none() -> None:
    """What has no import says so."""
    with pytest.raises(IntegrationError, match="generic has no tools"):
        get_integration("generic").import_tools([])  # type: ignore[attr-defined]


class Aliased(BaseModel):
    """Arguments whose names are not those of the fields."""

    from_city: str = Field(alias="fromCity")
    most: int = Field(3, validation_alias="$max")


async def test_s14_arguments_are_shown_by_the_names_that_are_taken() -> None:
    """S14: a field with an alias is shown, and called, by its alias."""
    pytest.importorskip("langchain")
    from langchain_core.tools import StructuredTool

    def find(from_city: str, most: int) -> str:
        """Finds."""
        return f"{from_city} {most}"

    native = StructuredTool.from_function(find, args_schema=Aliased)
    spec = get_integration("langchain").import_tool(native)  # type: ignore[attr-defined]
    schema = spec.json_schema()
    assert (list(schema["properties"]), schema["required"]) == (["fromCity", "$max"], ["fromCity"])
    run = aa.Executor(store=aa.open_store("memory://"))
    assert await run.run_spec(spec, {"fromCity": "Oslo"}) == "Oslo 3"
    assert await run.run_spec(spec, {"fromCity": "Oslo", "$max": 5}) == "Oslo 5"


async def test_s14_what_is_injected_with_a_default_works() -> None:
    """S14: a parameter that nobody gives is left to its default, and is not shown."""
    pytest.importorskip("langchain")
    pytest.importorskip("fastmcp")
    from fastmcp import Context
    from fastmcp.tools import Tool
    from langchain_core.tools import InjectedToolArg, StructuredTool

    def find(a: int, user: str = "nobody") -> str:
        """Finds."""
        return f"{a} {user}"

    def look(a: int, ctx: Any = None) -> str:
        """Looks."""
        return f"{a} {ctx}"

    find.__annotations__["user"] = Annotated[str, InjectedToolArg]
    look.__annotations__["ctx"] = Context | None
    run = aa.Executor(store=aa.open_store("memory://"))
    for target, native, value in (
        ("langchain", StructuredTool.from_function(find), "1 nobody"),
        ("fastmcp", Tool.from_function(look), "1 None"),
    ):
        spec = get_integration(target).import_tool(native)  # type: ignore[attr-defined]
        assert list(spec.json_schema()["properties"]) == ["a"]
        assert await run.run_spec(spec, {"a": 1}) == value


async def test_s8_the_loop_leaves_out_what_the_provider_cannot_take(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S8: one tool that cannot be written for the provider costs the loop no other."""
    openai = pytest.importorskip("openai")
    httpx2 = pytest.importorskip("httpx2")
    seen: list[Any] = []

    def answer(request: Any) -> Any:
        import json

        seen.append(json.loads(request.content))
        message = {"role": "assistant", "content": "done"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        return httpx2.Response(200, json=body | {"choices": [choice]})

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    client = openai.AsyncOpenAI(api_key="x", http_client=http)
    registry = aa.ToolRegistry()

    @registry.tool(effects="read")
    def look(a: int) -> int:
        """Looks."""
        return a

    @registry.tool(effects="read")
    def broken(a: int) -> int:
        """Breaks."""
        return a

    spec = registry.get("broken")
    object.__setattr__(spec, "description", None)
    object.__setattr__(spec.arguments, "schema", None)
    result = await run_tool_loop(client, registry, model="m", messages="hi")
    assert result.text == "done"
    assert [tool["function"]["name"] for tool in seen[0]["tools"]] == ["look"]
    assert "the tool 'broken' is not sent to OpenAI" in caplog.text
    with pytest.raises(Exception, match="None"):
        await run_tool_loop(client, registry, model="m", messages="hi", on_error="raise")
    await http.aclose()
