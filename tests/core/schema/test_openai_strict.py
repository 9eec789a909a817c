"""OpenAI's strict subset, by the rules of its guide to structured outputs, and the way back."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from decimal import Decimal
from enum import IntEnum
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, Field

from agent_adapter.core.schema.mending import mended
from agent_adapter.core.schema.openai_strict import openai_strict
from agent_adapter.core.tool import ToolSpec

Schema = dict[str, Any]


class Place(BaseModel):
    """A nested model with every kind of optional."""

    city: str
    height: float | None = None
    floor: int = 0


class Tree(BaseModel):
    """A model that contains itself."""

    kids: list[Tree] = []


class Cat(BaseModel):
    """One of two."""

    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    """The other of two."""

    kind: Literal["dog"]
    lives: int | None = 1


class Level(IntEnum):
    """An enum of numbers."""

    LOW = 1
    HIGH = 2


def everything(
    text: str,
    amount: Decimal,
    level: Level,
    place: Annotated[Place, Field(description="where")],
    places: list[Place],
    tree: Tree,
    pet: Annotated[Cat | Dog, Field(discriminator="kind")],
    few: Annotated[int, Field(ge=0, le=9)] = 5,
    maybe: str | None = None,
    named: str | None = "x",
) -> None:
    """Takes everything."""


SPEC = ToolSpec.from_function(everything)
NEUTRAL = SPEC.json_schema()
STRICT = openai_strict(NEUTRAL)


def nodes(node: Any) -> Iterator[Schema]:
    """Every schema in a schema."""
    if not isinstance(node, dict):
        return
    yield node
    for key in ("properties", "$defs"):
        for part in node.get(key, {}).values():
            yield from nodes(part)
    for part in node.get("anyOf", ()):
        yield from nodes(part)
    yield from nodes(node.get("items"))


def test_every_object_is_closed_and_every_property_required() -> None:
    """U4: `additionalProperties` is false and `required` names all, at every depth."""
    objects = [node for node in nodes(STRICT) if node.get("type") == "object"]
    assert len(objects) > 5
    assert all(node["additionalProperties"] is False for node in objects)
    assert all(node["required"] == list(node["properties"]) for node in objects)


@pytest.mark.parametrize(
    "keyword",
    ["default", "oneOf", "allOf", "not", "title", "discriminator", "minLength", "uniqueItems"],
)
def test_keyword_that_strict_refuses_is_nowhere(keyword: str) -> None:
    """What the API calls "not permitted" is left out."""
    assert [node for node in nodes(STRICT) if keyword in node] == []


def test_reference_stands_alone() -> None:
    """A `$ref` has no other key beside it: what stood beside it is dissolved into its target."""
    assert all(len(node) == 1 for node in nodes(STRICT) if "$ref" in node)
    assert STRICT["properties"]["place"]["description"] == "where"


def test_recursion_stays() -> None:
    """A type that contains itself keeps its reference."""
    kids = STRICT["$defs"]["Tree"]["properties"]["kids"]
    assert kids["anyOf"][0]["items"] == {"$ref": "#/$defs/Tree"}


def test_parameter_that_may_be_left_out_may_be_null() -> None:
    """U1, U2: an optional becomes nullable, and the description says what null means."""
    few = STRICT["properties"]["few"]
    assert few["anyOf"] == [{"type": "integer", "minimum": 0, "maximum": 9}, {"type": "null"}]
    assert few["description"] == "Default: 5. Null means: not given."
    assert STRICT["properties"]["maybe"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}


def test_integer_enum_stays() -> None:
    """U9: numbers in an enum are numbers."""
    assert STRICT["$defs"]["Level"]["enum"] == [1, 2]


def test_pattern_with_a_lookaround_is_left_out() -> None:
    """The API's regular expressions have no lookarounds, Pydantic's for decimals has one."""
    assert STRICT["properties"]["amount"] == {"anyOf": [{"type": "number"}, {"type": "string"}]}


def test_the_schema_given_is_not_changed() -> None:
    """Dialects are pure."""
    before = copy.deepcopy(NEUTRAL)
    openai_strict(NEUTRAL)
    assert before == NEUTRAL


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "free keys"),
        ({"type": "object"}, "free keys"),
        ({"type": "array", "items": {}}, "list of anything"),
        ({"type": "array"}, "list of anything"),
        ({}, "value of any type"),
        (True, "value of any type"),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, "tuple"),
        ({"allOf": [{"type": "string"}, {"minLength": 2}]}, "intersection"),
    ],
    ids=str,
)
def test_what_strict_cannot_say_is_refused_by_name(part: Any, reason: str) -> None:
    """U3: the place, the reason and the way out."""
    schema = {"type": "object", "properties": {"table": part}, "required": ["table"]}
    with pytest.raises(ValueError, match=rf"arguments\.table.*{reason}.*without strict"):
        openai_strict(schema)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"properties": {f"p{n}": {"type": "string"} for n in range(5001)}}, "5000 properties"),
        ({"properties": {"e": {"enum": list(range(1001))}}}, "1000 enum values"),
    ],
    ids=["properties", "enum"],
)
def test_limit_of_the_api_is_kept(schema: Schema, reason: str) -> None:
    """A schema that the API would refuse for its size is refused here."""
    with pytest.raises(ValueError, match=reason):
        openai_strict(schema)


def test_nesting_has_a_limit() -> None:
    """Ten levels are the most."""
    schema: Schema = {"type": "string"}
    for _ in range(11):
        schema = {"type": "object", "properties": {"deeper": schema}, "required": ["deeper"]}
    with pytest.raises(ValueError, match="10 levels"):
        openai_strict(schema)


def test_definition_that_nothing_uses_any_more_is_gone() -> None:
    """Only what is referred to is sent."""
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A", "description": "one"}},
        "$defs": {"A": {"type": "string"}},
    }
    assert "$defs" not in openai_strict(schema)


SENT = {
    "text": "null",
    "amount": 1,
    "level": 2,
    "place": {"city": "Bonn", "height": None, "floor": None},
    "places": [{"city": "Ulm", "height": 1.5, "floor": 3}],
    "tree": {"kids": [{"kids": None}]},
    "pet": {"kind": "cat", "lives": None},
    "few": None,
    "maybe": None,
    "named": None,
}


def test_null_for_a_parameter_without_null_means_not_given() -> None:
    """The inverse: such nulls go, at every depth, and all others stay."""
    assert mended(NEUTRAL, SENT) == {
        "text": "null",
        "amount": 1,
        "level": 2,
        "place": {"city": "Bonn", "height": None},
        "places": [{"city": "Ulm", "height": 1.5, "floor": 3}],
        "tree": {"kids": [{}]},
        "pet": {"kind": "cat"},
        "maybe": None,
        "named": None,
    }


def test_union_is_read_by_its_discriminator() -> None:
    """In the other member the same property may be null."""
    dog = mended(NEUTRAL, {"pet": {"kind": "dog", "lives": None}})
    assert dog == {"pet": {"kind": "dog", "lives": None}}


def test_what_strict_allows_the_tool_takes() -> None:
    """Arguments that fit the strict schema pass the tool's own check once they are mapped back."""
    jsonschema.validate(SENT, STRICT)
    values = SPEC.validate(mended(NEUTRAL, SENT))
    assert values["few"] == 5
    assert values["pet"] == Cat(kind="cat")
    assert values["place"] == Place(city="Bonn")


@pytest.mark.parametrize("sent", [None, 7, [1], {"text": None}, {"unknown": None}], ids=str)
def test_nonsense_stays_nonsense(sent: Any) -> None:
    """Whatever does not fit is left for the executor to refuse."""
    assert mended(NEUTRAL, sent) == sent
