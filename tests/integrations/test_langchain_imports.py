"""LangChain's own tools under the executor, and from there anywhere else."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

pytest.importorskip("langchain")

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException, tool
from langgraph.prebuilt import InjectedState, ToolRuntime
from pydantic import BaseModel, Field, field_validator

import agent_adapter as aa
from agent_adapter.integrations.langchain import INTEGRATION, langchain_tool
from agent_adapter.integrations.langgraph import INTEGRATION as LANGGRAPH

from ._langchain_agent import agent_of, answers, run
from ._shop import asking

pytestmark = pytest.mark.anyio


class Place(BaseModel):
    """A place."""

    city: str
    height: float = 0.0


@tool
def describe(place: Place, words: int = 3) -> dict[str, Any]:
    """Describes a place."""
    return {"city": place.city, "words": words}


async def called(native: BaseTool, args: dict[str, Any], **policy: Any) -> Any:
    """What an imported tool gives under a fresh executor."""
    return await aa.Executor().run_spec(INTEGRATION.import_tool(native, **policy), args)


@pytest.mark.parametrize("integration", [INTEGRATION, LANGGRAPH])
async def test_an_imported_tool_is_untrusted(integration: Any) -> None:
    """Its schema and description are kept, its policy is the careful one."""
    spec = integration.import_tool(describe)
    assert (spec.name, spec.description) == ("describe", "Describes a place.")
    assert (spec.trust, spec.egress, spec.effects) == ("untrusted", True, "write")
    assert set(spec.json_schema()["properties"]) == {"place", "words"}


async def test_its_value_comes_back_unchanged() -> None:
    """The raw value and the defaults of the native tool, not the text of a message."""
    assert await called(describe, {"place": {"city": "Köln"}}) == {"city": "Köln", "words": 3}


async def test_arguments_are_checked_before_it_runs() -> None:
    """Its own schema refuses what does not fit."""
    with pytest.raises(aa.ToolArgsInvalid, match="place"):
        await called(describe, {"place": {"height": 1.0}})


async def test_it_runs_in_an_agent_again_and_asks() -> None:
    """Imported with `confirm=True` and exported: the port decides about a foreign tool."""
    port = asking()
    spec = INTEGRATION.import_tool(describe, confirm=True)
    native = langchain_tool(spec, executor=aa.Executor(approval=port))
    output = await run(agent_of([native], [("c1", "describe", {"place": {"city": "Bonn"}})]))
    assert answers(output)["c1"].content == '{"city":"Bonn","words":3}'
    assert [request.arguments for request in port.requests] == [{"place": {"city": "Bonn"}}]


@pytest.mark.parametrize(
    ("handling", "text"),
    [(False, "no such place"), (True, "no such place"), ("try again", "try again")],
)
async def test_a_tool_exception_is_for_the_model(handling: Any, text: str) -> None:
    """`ToolException` is the author's word to the model, as its own handling shapes it."""

    def fail(a: int) -> str:
        """Fail."""
        raise ToolException("no such place")

    native = StructuredTool.from_function(fail, handle_tool_error=handling)
    with pytest.raises(aa.ToolError, match=text):
        await called(native, {"a": 1})


async def test_a_handler_shapes_the_text() -> None:
    """A callable `handle_tool_error` makes the text; one that fails is named by its class."""

    def fail(a: int) -> str:
        """Fail."""
        raise ToolException("x")

    native = StructuredTool.from_function(fail, handle_tool_error=lambda exc: f"shaped {exc}")
    with pytest.raises(aa.ToolError, match="shaped x"):
        await called(native, {"a": 1})
    native = StructuredTool.from_function(fail, handle_tool_error=lambda exc: 1 / 0)  # type: ignore[arg-type,return-value]  # what is tested
    with pytest.raises(aa.ToolFailed, match=r"ZeroDivisionError$"):
        await called(native, {"a": 1})


async def test_other_exceptions_are_hidden() -> None:
    """Any other exception is named by its class; so is one of a validator of the tool's own."""

    class Checked(BaseModel):
        a: int = Field(description="A number.")

        @field_validator("a")
        @classmethod
        def never(cls, value: int) -> int:
            raise ValueError("secret")

    def fail(a: int) -> str:
        """Fail."""
        raise RuntimeError("secret")

    for native in (
        StructuredTool.from_function(fail),
        StructuredTool.from_function(fail, args_schema=Checked, handle_validation_error=True),
    ):
        with pytest.raises(aa.ToolError) as caught:
            await called(native, {"a": 1})
        assert "secret" not in str(caught.value)


async def test_a_tool_that_wants_its_call_id_gets_it() -> None:
    """`InjectedToolCallId` is filled in and is not in the schema."""

    @tool
    def who(a: int, call: Annotated[str, InjectedToolCallId]) -> ToolMessage:
        """Tells its id."""
        return ToolMessage(f"I am {call}", tool_call_id=call)

    spec = INTEGRATION.import_tool(who)
    assert set(spec.json_schema()["properties"]) == {"a"}
    assert await aa.Executor().run_spec(spec, {"a": 1}, call_id="c7") == "I am c7"


def test_a_tool_of_a_graph_stays_there() -> None:
    """One that needs the state or the runtime of a graph is refused with the parameter's name."""

    @tool
    def state_reader(a: int, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Reads."""
        return "x"

    @tool
    def runner(a: int, runtime: ToolRuntime) -> str:
        """Runs."""
        return "x"

    for native, name in ((state_reader, "state"), (runner, "runtime")):
        with pytest.raises(aa.ToolDefinitionError, match=f"parameter {name} is filled in"):
            INTEGRATION.import_tool(native)


def test_a_name_for_other_frameworks_is_given_at_import() -> None:
    """A name with spaces is refused, unless another one is given (U10)."""
    native = StructuredTool.from_function(lambda a: a, name="my tool", description="Mine.")
    with pytest.raises(aa.ToolDefinitionError, match="my tool"):
        INTEGRATION.import_tool(native)
    assert INTEGRATION.import_tool(native, name="my_tool").name == "my_tool"


def test_what_is_no_langchain_tool_is_refused() -> None:
    """A function is no LangChain tool; the error says what to do."""
    with pytest.raises(aa.ToolDefinitionError, match="no LangChain tool"):
        INTEGRATION.import_tool(len)
