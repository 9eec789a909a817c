"""What the providers' APIs take of a tool's schema."""

from __future__ import annotations

import copy
from enum import IntEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from agent_adapter.core.schema.providers import anthropic, gemini, openai
from agent_adapter.core.tool import ToolSpec


class Level(IntEnum):
    """An enum of numbers."""

    LOW = 1
    HIGH = 2


class Place(BaseModel):
    """A nested model."""

    city: str
    level: Level = Level.LOW


class Tree(BaseModel):
    """A model that contains itself."""

    kids: list[Tree] = []


def visit(
    place: Place,
    mode: Literal["walk"],
    tree: Tree | None = None,
    few: int = 5,
    tags: list = [],  # type: ignore[type-arg]  # noqa: B006
) -> None:
    """Goes there."""


NEUTRAL = ToolSpec.from_function(visit).json_schema()


@pytest.mark.parametrize("dialect", [openai, anthropic, gemini])
def test_dialect_is_pure(dialect: Any) -> None:
    """What is given stays as it was, and what comes out shares nothing with it."""
    before = copy.deepcopy(NEUTRAL)
    shown = dialect(NEUTRAL)
    shown["properties"]["place"].clear()
    shown["$defs"].clear()
    assert before == NEUTRAL


@pytest.mark.parametrize("dialect", [openai, anthropic, gemini])
def test_union_at_the_top_is_left_to_the_executor(dialect: Any) -> None:
    """No provider takes one there."""
    schema = {"type": "object", "anyOf": [{"required": ["a"]}], "properties": {"a": {"enum": [1]}}}
    assert dialect(schema) == {"type": "object", "properties": {"a": {"enum": [1]}}}


@pytest.mark.parametrize("dialect", [openai, anthropic, gemini])
def test_tool_without_arguments_has_an_empty_object(dialect: Any) -> None:
    """`properties` is always there."""
    assert dialect({"type": "object"}) == {"type": "object", "properties": {}}


def test_openai_array_has_items() -> None:
    """U3: the API refuses an array that does not say of what."""
    schema = {"type": "object", "properties": {"a": {"type": "array"}, "type": {"type": "string"}}}
    shown = openai(schema)["properties"]
    assert shown == {"a": {"type": "array", "items": {}}, "type": {"type": "string"}}


def test_openai_leaves_the_rest_alone() -> None:
    """Everything else is the neutral schema."""
    assert openai(NEUTRAL) == NEUTRAL == anthropic(NEUTRAL)


def test_s8_anthropic_shows_a_name_that_it_refuses_under_another() -> None:
    """The API takes letters, digits and three marks; the description has the tool's own name."""
    schema = {
        "type": "object",
        "properties": {"$filter": {"type": "string", "description": "which"}, "a.b": {}},
        "required": ["$filter"],
    }
    assert anthropic(schema) == {
        "type": "object",
        "properties": {"filter": {"type": "string", "description": "which (`$filter`)"}, "a.b": {}},
        "required": ["filter"],
    }


def test_gemini_constant_is_an_enum_of_one() -> None:
    """`const` is not among the keywords that Gemini reads."""
    schema = {"type": "object", "properties": {"mode": {"const": "walk", "type": "string"}}}
    assert gemini(schema)["properties"]["mode"] == {"type": "string", "enum": ["walk"]}


def test_gemini_reference_stands_alone() -> None:
    """U5: beside `$ref` only keys that begin with `$` may stand."""
    schema = copy.deepcopy(NEUTRAL)
    schema["properties"]["place"]["description"] = "where"
    place = gemini(schema)["properties"]["place"]
    assert "$ref" not in place
    assert place["description"] == "where"
    assert place["properties"]["city"] == {"type": "string"}


def test_gemini_recursive_reference_keeps_only_itself() -> None:
    """It cannot be dissolved, so its siblings go."""
    schema = copy.deepcopy(NEUTRAL)
    schema["properties"]["tree"] = {"$ref": "#/$defs/Tree", "description": "gone"}
    assert gemini(schema)["properties"]["tree"] == {"$ref": "#/$defs/Tree"}


def test_gemini_enum_of_numbers_stays() -> None:
    """U9: an enum may hold numbers."""
    assert gemini(NEUTRAL)["$defs"]["Place"]["properties"]["level"]["enum"] == [1, 2]


def test_gemini_default_is_told_in_words() -> None:
    """U1: `default` is not among the keywords that Gemini reads."""
    few = gemini(NEUTRAL)["properties"]["few"]
    assert few == {"type": "integer", "description": "Default: 5."}


def test_gemini_renamed_reference_stands_alone() -> None:
    """A description with the tool's own name would stand beside the reference."""
    schema = {"type": "object", "properties": {"año": {"$ref": "#"}}}
    assert list(gemini(schema)["properties"].values()) == [{"$ref": "#"}]


def test_gemini_shows_the_properties_of_an_intersection() -> None:
    """`allOf` is not among the keywords that Gemini reads."""
    parts = [{"pattern": "a", "properties": {"b": {}}, "required": ["b"]}, {"pattern": "b"}]
    schema = {"type": "object", "properties": {"a": {"allOf": parts}}}
    assert gemini(schema)["properties"]["a"] == {"properties": {"b": {}}, "required": ["b"]}
