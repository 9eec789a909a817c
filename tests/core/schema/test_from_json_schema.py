"""A foreign tool is checked by the schema it came with, and trusted with nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import ToolArgsInvalid, ToolDefinitionError
from agent_adapter.core.tool import ToolSpec

pytestmark = pytest.mark.anyio

SCHEMA: dict[str, Any] = {
    "title": "Search",
    "type": "object",
    "properties": {
        "max-results": {"type": "integer", "minimum": 1},
        "class": {"enum": ["a", "b"]},
        "where": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
    "required": ["max-results"],
    "additionalProperties": False,
}


def echo(**arguments: Any) -> dict[str, Any]:
    """Gives back what it got."""
    return arguments


def search(**policy: Any) -> ToolSpec:
    """The foreign tool of these tests."""
    return ToolSpec.from_json_schema("search", "Searches.", SCHEMA, echo, **policy)


async def test_arguments_reach_the_function_under_any_name() -> None:
    """Keys that are no identifiers, and keywords, are passed on."""
    assert await search().invoke({"max-results": 3, "class": "a"}) == {
        "max-results": 3,
        "class": "a",
    }


def test_foreign_tools_are_untrusted_and_send_data_out() -> None:
    """Unless said otherwise."""
    assert (search().trust, search().egress) == ("untrusted", True)
    trusted = search(trust="trusted", egress=False)
    assert (trusted.trust, trusted.egress) == ("trusted", False)


def test_every_problem_is_one_line() -> None:
    """Path, problem, expectation, as for a tool of our own."""
    with pytest.raises(ToolArgsInvalid) as caught:
        search().validate({"max_result": 1, "class": "c", "where": {"town": "x"}})
    assert sorted(caught.value.problems) == [
        "class: 'c' is not one of ['a', 'b'] (expected enum ['a', 'b'])",
        "max-results: is missing (expected integer)",
        "max_result: unknown argument; did you mean 'max-results'? "
        "(expected class, max-results, where)",
        "where.city: is missing (expected string)",
        "where.town: unknown argument (expected city)",
    ]


@pytest.mark.parametrize("args", [[1], None, {1: 2}, {"max-results": float("nan")}], ids=str)
def test_what_is_no_json_object_is_refused(args: Any) -> None:
    """Every other shape is a problem of the arguments."""
    with pytest.raises(ToolArgsInvalid):
        search().validate(args)


def test_caller_s_schema_is_neither_changed_nor_kept() -> None:
    """Later changes to the schema do not reach the tool, nor the tool's the schema."""
    mine = copy.deepcopy(SCHEMA)
    spec = ToolSpec.from_json_schema("search", "Searches.", mine, echo)
    spec.json_schema()["properties"].clear()
    mine["properties"].clear()
    assert spec.json_schema() == {k: v for k, v in SCHEMA.items() if k != "title"}


async def test_context_is_given_where_the_function_asks_for_it() -> None:
    """A parameter annotated as the context is filled in and cannot be supplied."""

    def fn(ctx: ToolContext, **arguments: Any) -> str | None:
        return ctx.principal

    spec = ToolSpec.from_json_schema("t", "Does.", {"type": "object"}, fn)
    assert await spec.invoke({"x": 1}, ToolContext(principal="ann")) == "ann"
    with pytest.raises(ToolArgsInvalid, match="ctx: unknown argument"):
        await spec.invoke({"ctx": 1})


def test_older_drafts_are_honoured() -> None:
    """`$schema` chooses the draft: a tuple in `items` is draft 7."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"pair": {"type": "array", "items": [{"type": "integer"}]}},
    }
    spec = ToolSpec.from_json_schema("t", "Does.", schema, echo)
    assert spec.validate({"pair": [1, "x"]}) == {"pair": [1, "x"]}
    with pytest.raises(ToolArgsInvalid, match=r"pair\[0\]"):
        spec.validate({"pair": ["x"]})


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "objekt"}, "describes 'objekt'; arguments are always an 'object'"),
        ({"type": "array"}, "describes 'array'; arguments are always an 'object'"),
        (
            {"properties": {"x": {"type": "integr"}}},
            "its JSON Schema is invalid at properties.x.type: 'integr' is not valid",
        ),
        ({"properties": {"x": {"$ref": "#/$defs/Gone"}}}, "refers to '#/$defs/Gone'"),
        ({"properties": {"x": {"$ref": "http://example.com/x"}}}, "refers to 'http://example.com"),
        ({"properties": {"x": {"default": object()}}}, "holds something that is not JSON"),
        ([], "its JSON Schema is an object, not list"),
    ],
    ids=lambda part: str(part).partition(" at 0x")[0],
)
def test_invalid_schema_is_refused(schema: Any, text: str) -> None:
    """When the tool is defined, naming the place."""
    with pytest.raises(ToolDefinitionError) as caught:
        ToolSpec.from_json_schema("t", "Does.", schema, echo)
    assert text in str(caught.value)
    assert "tool 't'" in str(caught.value)


def test_function_must_be_callable() -> None:
    """What cannot be called is no tool."""
    with pytest.raises(ToolDefinitionError, match="fn is 3, which cannot be called"):
        ToolSpec.from_json_schema("t", "Does.", {}, 3)  # type: ignore[arg-type]  # the case


def test_argument_that_the_library_fills_in_is_refused() -> None:
    """A schema cannot claim a parameter that the function gets from the library."""

    def fn(ctx: ToolContext, **arguments: Any) -> None:
        """Does."""

    with pytest.raises(ToolDefinitionError, match="argument 'ctx', which the function receives"):
        ToolSpec.from_json_schema("t", "Does.", {"properties": {"ctx": {}}}, fn)


def test_references_inside_the_schema_are_followed() -> None:
    """`$defs`, escaped names and recursion work; data that looks like a reference is data."""
    schema = {
        "properties": {
            "x": {"$ref": "#/$defs/a~1b", "default": {"$ref": "http://example.com"}},
            "tree": {"$ref": "#"},
        },
        "$defs": {"a/b": {"type": "object"}},
    }
    spec = ToolSpec.from_json_schema("t", "Does.", schema, echo)
    assert spec.validate({"x": {}, "tree": {"x": {}}}) == {"x": {}, "tree": {"x": {}}}
    with pytest.raises(ToolArgsInvalid, match=r"tree\.x: 3 is not of type 'object'"):
        spec.validate({"tree": {"x": 3}})
