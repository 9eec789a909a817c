"""What a schema says, and what validation takes, agree: for functions and for foreign tools."""

from __future__ import annotations

import datetime as dt
import enum
import json
from collections import deque
from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import pytest
from pydantic import (
    Base64Bytes,
    Base64Str,
    BaseModel,
    Field,
    Json,
    PostgresDsn,
    SecretStr,
)
from pydantic import Secret as PydanticSecret
from typing_extensions import Doc

from agent_adapter.core.canonical import digest
from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import ToolArgsInvalid, ToolDefinitionError
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision


class Kind(enum.Enum):
    """A plain enum."""

    CASH = "cash"
    CARD = "card"


class Cash(BaseModel):
    """Paid in notes."""

    kind: Literal[Kind.CASH]
    notes: Iterable[int] = []


class Card(BaseModel):
    """Paid by card."""

    kind: Literal[Kind.CARD]
    number: str


def of(annotation: Any, **policy: Any) -> ToolSpec:
    """A tool with one parameter `x` of that type."""

    def tool(x: Any) -> Any:
        """Does."""
        return x

    tool.__annotations__["x"] = annotation
    return ToolSpec.from_function(tool, **policy)


def foreign(part: Any, **policy: Any) -> ToolSpec:
    """A foreign tool with one parameter `x`, which is required."""
    schema = {"properties": {"x": part}, "required": ["x"]}
    return ToolSpec.from_json_schema("t", "Does.", schema, lambda x: x, **policy)


def test_s5_member_of_an_enum_in_a_literal_is_its_value() -> None:
    """S5: As the schema shows it."""
    spec = of(Literal[Kind.CASH])
    assert spec.json_schema()["properties"]["x"]["const"] == "cash"
    assert spec.validate({"x": "cash"}) == {"x": Kind.CASH}
    with pytest.raises(ToolArgsInvalid):
        spec.validate({"x": "card"})


def test_s5_union_is_discriminated_by_the_values_of_an_enum() -> None:
    """S5: Also inside models, whose own validators Pydantic has built before."""
    spec = of(list[Annotated[Cash | Card, Field(discriminator="kind")]])
    values = spec.validate({"x": [{"kind": "card", "number": "4"}, {"kind": "cash"}]})
    assert values["x"][0] == Card(kind=Kind.CARD, number="4")
    assert spec.validate(json.loads(spec.dump(values))) == values


@pytest.mark.anyio
@pytest.mark.parametrize("confirm", [True, False])
async def test_s3_iterable_is_read_once_and_whole(confirm: bool) -> None:
    """S3: Two names arrive, however often the check, the reviewer and the function look."""
    from agent_adapter.exec.executor import Executor

    class Yes:
        async def request(self, request: Any) -> ApprovalDecision:
            return ApprovalDecision.approve(reviewer="ann")

    def notify(to: Iterable[str]) -> list[list[str]]:
        """Sends."""
        return [list(to), list(to)]

    spec = ToolSpec.from_function(notify, confirm=confirm)
    executor = Executor(approval=Yes())
    given = await executor.run_spec(spec, {"to": ["ann", "bob"]}, ToolContext())
    assert given == [["ann", "bob"], ["ann", "bob"]]


def test_s3_iterable_inside_a_model_is_read_whole() -> None:
    """S3: A model of the author's is no exception."""
    (cash,) = of(Cash).validate({"x": {"kind": "cash", "notes": [5, 10]}}).values()
    assert (list(cash.notes), list(cash.notes)) == ([5, 10], [5, 10])


@pytest.mark.parametrize(
    "annotation",
    [Iterator[int], Generator[int, None, None], AsyncIterator[int], list[Iterator[int]] | None],
    ids=str,
)
def test_s3_what_can_be_read_only_once_is_refused_at_definition(annotation: Any) -> None:
    """S3: With what to write instead."""
    with pytest.raises(ToolDefinitionError, match=r"parameter 'x' is an? .*; use `list\[T\]`"):
        of(annotation)


BINDABLE: list[tuple[Any, Any]] = [
    (PostgresDsn, "postgres://u:p@h/db"),
    (ZoneInfo, "Europe/Berlin"),
    (deque[int], [1, 2]),
    (Json, '{"a":1}'),
    (list[Json[list[int]]], ["[1]"]),
    (PydanticSecret[int], 5),
    (Base64Str, "aGk="),
    (dict[str, PydanticSecret[dt.date]], {"a": "2020-01-02"}),
    (Iterable[int], [1, 2]),
    (Literal[Kind.CASH], "cash"),
]


@pytest.mark.parametrize(("annotation", "value"), BINDABLE, ids=lambda item: str(item)[:40])
def test_s3_argument_can_be_bound_to_an_approval(annotation: Any, value: Any) -> None:
    """S3: What is written reads back as the same, and has a digest of its own."""
    spec = of(annotation, confirm=True)
    values = spec.validate({"x": value})
    again = spec.validate(json.loads(spec.dump(values)))
    assert digest(values, b"k") == digest(again, b"k")
    json.dumps(spec.masked(values, b"k"))


def test_secrets_of_any_type_are_masked_and_told_apart() -> None:
    """`Secret[int]` is one like `SecretStr`."""
    spec = of(PydanticSecret[int])
    five, six = (spec.validate({"x": number}) for number in (5, 6))
    assert spec.masked(five, b"k") != spec.masked(six, b"k")
    assert "5" not in str(spec.masked(five, b"k")["x"].keys())
    assert digest(five, b"k") != digest(six, b"k")


class Mixed(BaseModel):
    """A secret beside a type that keeps another value than it reads."""

    token: SecretStr
    data: Json[Any]


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Mixed, "parameter 'x' holds a secret beside a type"),
        (type[int], "parameter 'x' is a class"),
        (Base64Bytes, "parameter 'x' is decoded twice"),
    ],
    ids=str,
)
def test_type_that_cannot_be_bound_is_refused_at_definition(annotation: Any, text: str) -> None:
    """Never after a person's yes."""
    with pytest.raises(ToolDefinitionError, match=text):
        of(annotation)


@pytest.mark.parametrize("spec", [of(int), foreign({"type": "integer"})], ids=["ours", "foreign"])
def test_whole_number_is_an_integer_however_it_is_written(spec: ToolSpec) -> None:
    """JSON has no other kind; 5.5 is none, and a truth value is none."""
    assert spec.validate({"x": 5.0}) == {"x": 5}
    for wrong in (5.5, True, "5"):
        with pytest.raises(ToolArgsInvalid):
            spec.validate({"x": wrong})


def test_whole_number_is_an_integer_inside_of_models_too() -> None:
    """And stays a float where the schema says number."""

    class Row(BaseModel):
        count: int
        price: float

    assert of(list[Row]).validate({"x": [{"count": 2.0, "price": 3.0}]}) == {
        "x": [Row(count=2, price=3.0)]
    }
    assert isinstance(of(int | float).validate({"x": 5.0})["x"], float)


def optional(lang: str = "en", near: list[str] | None = None, top: int = 3) -> Any:
    """Finds."""
    return lang, near, top


def test_s13_null_for_an_optional_parameter_means_not_given() -> None:
    """Unless the parameter can be null; a required one is still refused."""
    spec = ToolSpec.from_function(optional)
    assert spec.validate({"lang": None, "near": None, "top": 1}) == {
        "lang": "en",
        "near": None,
        "top": 1,
    }
    foreign_spec = ToolSpec.from_json_schema(
        "t", "Does.", {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["b"]}, print
    )
    assert foreign_spec.validate({"a": None, "b": None}) == {"b": None}
    with pytest.raises(ToolArgsInvalid):
        of(str).validate({"x": None})


def test_s13_nulls_inside_of_objects_and_lists_are_not_given_either() -> None:
    """At every depth."""
    part = {"type": "object", "properties": {"c": {"type": "integer"}}}
    spec = foreign({"type": "array", "items": part})
    assert spec.validate({"x": [{"c": None}, {"c": 1}]}) == {"x": [{}, {"c": 1}]}


def test_texts_of_annotations_are_descriptions() -> None:
    """`Annotated[str, "…"]` and `Doc`, also within; a `Field` beside them wins."""

    def tool(
        a: Annotated[str, "first"],
        b: Annotated[int, Doc("second")] = 0,
        c: list[Annotated[str, "each"]] | None = None,
        d: Annotated[str, "not this", Field(description="this")] = "",
    ) -> None:
        """Does."""

    shown = ToolSpec.from_function(tool).json_schema()["properties"]
    assert shown["a"] == {"type": "string", "description": "first"}
    assert shown["b"]["description"] == "second"
    assert shown["c"]["anyOf"][0]["items"]["description"] == "each"
    assert shown["d"]["description"] == "this"


TEXT = '{"city": "Bonn"}'
PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Place(BaseModel):
    """A place."""

    city: str


@pytest.mark.parametrize("make", [lambda **p: of(Place, **p), lambda **p: foreign(PLACE, **p)])
def test_json_text_in_the_place_of_an_object_is_told_apart(make: Any) -> None:
    """The error says so, and a tool may accept it."""
    with pytest.raises(ToolArgsInvalid, match="you sent JSON text where an object or array belong"):
        make().validate({"x": TEXT})
    opted_in = make(json_text=True)
    expected = opted_in.validate({"x": json.loads(TEXT)})
    assert opted_in.validate({"x": TEXT}) == expected
    assert opted_in.validate(json.dumps({"x": TEXT})) == expected


def test_json_text_stays_text_where_text_is_allowed() -> None:
    """Nothing is read that was meant as it is."""
    assert of(str | dict[str, str], json_text=True).validate({"x": TEXT}) == {"x": TEXT}


def test_s8_alias_of_a_parameter_name_is_taken_back() -> None:
    """Whichever provider asked for it, and also where an object is open."""
    schema = {"properties": {"$filter": {"type": "string"}, "año": {"type": "integer"}}}
    from agent_adapter.core.names import aliases

    spec = ToolSpec.from_json_schema("t", "Does.", schema, print)
    named = aliases(schema["properties"])
    assert named["$filter"] == "filter"
    assert spec.validate({"filter": "a", named["año"]: 7}) == {"$filter": "a", "año": 7}
    both = {"properties": {"filter": {}, "$filter": {}}}
    assert aliases(both["properties"])["$filter"].startswith("filter_")
