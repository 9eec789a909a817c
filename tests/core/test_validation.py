"""Arguments are checked once, strictly, and every problem is one line for the model to read."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import uuid
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, SecretStr, ValidationError
from pydantic_core import CoreSchema, core_schema

from agent_adapter.core.errors import ToolArgsInvalid
from agent_adapter.core.inject import Secret
from agent_adapter.core.tool import ToolSpec


class Level(enum.IntEnum):
    """An integer enum, as U9 reports."""

    LOW = 1
    HIGH = 2


class Line(BaseModel):
    """A nested model."""

    sku: str
    count: int = Field(gt=0)


@dataclasses.dataclass
class Address:
    """A dataclass as a parameter."""

    street: str
    since: dt.date


def order(
    lines: list[Line],
    level: Level = Level.LOW,
    to: Address | None = None,
    price: Decimal | None = None,
    note: str | int = "",
) -> None:
    """Orders."""


def problems(spec: ToolSpec, args: Any) -> list[str]:
    """What is wrong with `args`, after a look at the error itself."""
    with pytest.raises(ToolArgsInvalid) as caught:
        spec.validate(args)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "pydantic" not in str(caught.value)
    return list(caught.value.problems)


ORDER = ToolSpec.from_function(order)


def test_json_values_become_what_the_signature_says() -> None:
    """Dates, Decimals, enums, models and dataclasses come out of JSON."""
    args = {
        "lines": [{"sku": "a", "count": 1}],
        "level": 2,
        "to": {"street": "x", "since": "2020-01-02"},
        "price": "1.50",
    }
    assert ORDER.validate(args) == {
        "lines": [Line(sku="a", count=1)],
        "level": Level.HIGH,
        "to": Address("x", dt.date(2020, 1, 2)),
        "price": Decimal("1.50"),
        "note": "",
    }


def test_every_problem_is_one_line() -> None:
    """Path, problem, expectation: for nested fields, missing ones and unknown ones alike."""
    args = {"lines": [{"sku": 3, "cuont": 1}], "level": 9, "to": {"street": "x"}, "nte": 1}
    assert problems(ORDER, args) == [
        "nte: unknown argument; did you mean 'note'? (expected level, lines, note, price, to)",
        "lines[0].sku: input should be a valid string (expected string)",
        "lines[0].count: is missing (expected integer)",
        "level: input should be 1 or 2 (expected one of 1, 2)",
        "to.since: is missing (expected string (date))",
    ]


def test_union_is_one_line() -> None:
    """The members of a union do not each get a line."""
    assert problems(ORDER, {"lines": [], "note": []}) == [
        "note: input should be a valid string or input should be a valid integer "
        "(expected string or integer)"
    ]


def test_nested_unknown_field_names_the_near_match() -> None:
    """Models that forbid extra fields are as helpful as the tool itself."""

    class Strict(BaseModel, extra="forbid"):
        street: str

    def tool(to: Strict) -> None:
        """Does."""

    assert problems(ToolSpec.from_function(tool), {"to": {"street": "x", "stret": "y"}}) == [
        "to.stret: unknown argument; did you mean 'street'? (expected street)"
    ]


def scalars(
    i: int = 0, f: float = 0.0, b: bool = False, s: str = "", c: Literal["x", 1] = "x"
) -> None:
    """Does."""


@pytest.mark.parametrize(
    "args",
    [
        {"i": "7"},
        {"i": True},
        {"f": "1.5"},
        {"f": True},
        {"f": float("nan")},
        {"f": float("inf")},
        {"b": 1},
        {"b": "true"},
        {"s": 1},
        {"c": "1"},
    ],
    ids=str,
)
def test_nothing_is_silently_something_else(args: dict[str, Any]) -> None:
    """A value of another JSON type is refused, and NaN is no number."""
    (line,) = problems(ToolSpec.from_function(scalars), args)
    assert line.startswith(f"{next(iter(args))}: input should be ")


@pytest.mark.parametrize(
    ("args", "line"),
    [
        ([1], "arguments: got list (expected an object with string keys)"),
        ("{}", "arguments: got str (expected an object with string keys)"),
        (None, "arguments: got NoneType (expected an object with string keys)"),
        ({1: 2}, "int key: argument names are strings (expected b, c, f, i, s)"),
        ({b"i": 2}, "bytes key: argument names are strings (expected b, c, f, i, s)"),
        ({"s": "\ud800"}, "arguments: a text has a lone surrogate (expected Unicode text)"),
        ({"i\u202e": 2}, "i\\u202e: unknown argument; did you mean 'i'? (expected b, c, f, i, s)"),
    ],
    ids=["list", "text", "none", "int key", "bytes key", "surrogate", "bidi key"],
)
def test_what_is_no_json_object_is_refused(args: Any, line: str) -> None:
    """Every other shape is a problem of the arguments, not an exception of ours."""
    assert problems(ToolSpec.from_function(scalars), args) == [line]


def test_cycles_and_depth_are_refused() -> None:
    """Arguments that contain themselves or nest too deeply are a problem like any other."""

    def tool(x: list[Any]) -> None:
        """Does."""

    spec = ToolSpec.from_function(tool)
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    text = "arguments: they contain themselves or nest too deeply (expected JSON values)"
    assert problems(spec, {"x": cycle}) == problems(spec, {"x": deep}) == [text]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["anything", "table", "model"])
def test_nan_is_refused_wherever_it_stands(name: str, value: float) -> None:
    """Also inside a bare dict, `Any` and a model with a configuration of its own."""

    class Reading(BaseModel):
        value: float

    def tool(anything: Any = None, table: dict = {}, model: Reading | None = None) -> None:  # type: ignore[type-arg]  # noqa: B006  # bare and mutable is the case
        """Does."""

    lines = problems(ToolSpec.from_function(tool), {name: {"value": value}})
    assert lines[0].endswith("is not a number that JSON has (expected finite numbers)")


def test_text_that_says_nan_is_text() -> None:
    """Only numbers are looked at."""

    def tool(anything: Any) -> None:
        """Does."""

    assert ToolSpec.from_function(tool).validate({"anything": "NaN"}) == {"anything": "NaN"}


def test_python_objects_of_the_embedding_code_are_accepted_whole() -> None:
    """A model or secret given as an object arrives as it is, not as its masked dump."""

    class Login(BaseModel):
        user: str = Field(alias="userName")
        password: SecretStr
        hidden: int = Field(default=1, exclude=True)

    def tool(login: Login, token: str, day: dt.date, lines: list[Line]) -> None:
        """Does."""

    login = Login(userName="ann", password=SecretStr("pw"), hidden=5)
    values = ToolSpec.from_function(tool).validate(
        {
            "login": login,
            "token": SecretStr("t"),
            "day": dt.date(2020, 1, 2),
            "lines": (Line(sku="a", count=1),),
        }
    )
    assert values == {
        "login": login,
        "token": "t",
        "day": dt.date(2020, 1, 2),
        "lines": [Line(sku="a", count=1)],
    }


def test_secret_object_for_a_plain_text_parameter_is_not_masked() -> None:
    """Also where all types are plain, the function gets the secret and not the asterisks."""

    def tool(token: str, stars: str) -> None:
        """Does."""

    values = ToolSpec.from_function(tool).validate({"token": SecretStr("t"), "stars": "***"})
    assert values == {"token": "t", "stars": "***"}


@pytest.mark.parametrize("args", [MappingProxyType({"i": 3}), {"i": 3}], ids=["proxy", "dict"])
def test_any_mapping_will_do(args: Mapping[str, Any]) -> None:
    """Arguments need not be a dict."""
    assert ToolSpec.from_function(scalars).validate(args)["i"] == 3


def test_values_are_not_shared_with_the_caller() -> None:
    """Changing what was given does not change what was checked."""

    def tool(items: list[list[int]]) -> None:
        """Does."""

    given = [[1]]
    values = ToolSpec.from_function(tool).validate({"items": given})
    given[0].append(2)
    assert values == {"items": [[1]]}


def test_mutable_defaults_are_not_shared_between_calls() -> None:
    """Each call gets a default of its own."""

    def tool(items: list = []) -> None:  # type: ignore[type-arg]  # noqa: B006  # the case
        """Does."""

    spec = ToolSpec.from_function(tool)
    spec.validate({})["items"].append(1)
    assert spec.validate({}) == {"items": []}


def _even(value: int) -> int:
    if value == 13:
        raise KeyError("secret internals")
    if value % 2:
        raise ValueError(f"{value} is odd")
    return value


def test_text_of_an_author_s_validator_is_shown() -> None:
    """A `ValueError` is the author's sentence for the model; of others only the class is shown."""

    def tool(n: Annotated[int, AfterValidator(_even)]) -> None:
        """Does."""

    spec = ToolSpec.from_function(tool)
    assert problems(spec, {"n": 3}) == ["n: 3 is odd (expected integer)"]
    assert problems(spec, {"n": 13}) == [
        "arguments: checking them raised KeyError (expected other values)"
    ]


def test_secret_value_is_in_no_problem() -> None:
    """Not even where a validator puts the value into its text."""

    def tool(pin: Annotated[int, Secret(), AfterValidator(_even)]) -> None:
        """Does."""

    assert problems(ToolSpec.from_function(tool), {"pin": 4711}) == [
        "pin: is not valid (expected integer)"
    ]


def test_dump_of_values_validates_to_the_same_values() -> None:
    """`validate(json.loads(dump(v)))` is `v` for every type that JSON can bring back."""

    class Row(BaseModel):
        key: bytes
        secret: SecretStr
        nested: list[Line]

    def tool(
        row: Row,
        raw: bytes,
        tags: set[str],
        pair: tuple[int, str],
        when: dt.datetime,
        lasts: dt.timedelta,
        id: uuid.UUID,
        by_day: dict[dt.date, Decimal],
        level: Level,
    ) -> None:
        """Does."""

    spec = ToolSpec.from_function(tool)
    values = spec.validate(
        {
            "row": {"key": "k", "secret": "s", "nested": [{"sku": "a", "count": 1}]},
            "raw": b"\xff\x00",
            "tags": ["a", "b"],
            "pair": [1, "x"],
            "when": "2020-01-02T03:04:05Z",
            "lasts": "PT3.5S",
            "id": str(uuid.UUID(int=7)),
            "by_day": {"2020-01-02": "1.10"},
            "level": 2,
        }
    )
    assert values["raw"] == b"\xff\x00"
    assert spec.validate(json.loads(spec.dump(values))) == values


def test_pydantic_s_own_error_is_never_raised() -> None:
    """The error tree of the library holds for arguments, too."""
    with pytest.raises(ToolArgsInvalid) as caught:
        ORDER.validate({})
    assert not isinstance(caught.value, ValidationError)
    assert str(caught.value) == (
        "invalid arguments for order:\n- lines: is missing (expected array of object)"
    )


def test_problems_are_bounded() -> None:
    """Neither a long name nor a long list of mistakes becomes a long answer."""

    def tool(x: list[int]) -> None:
        """Does."""

    lines = problems(ToolSpec.from_function(tool), {"x": ["a"] * 1000, "y" * 100_000: 1})
    assert (len(lines), lines[-1]) == (51, "and 951 more")
    assert all(len(line) < 200 for line in lines)


class Money:
    """A type that only its own schema knows how to read and write."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and other.text == self.text

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls,
            core_schema.str_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda v: v.text),
        )


def test_types_of_the_author_s_are_written_by_their_own_serialisers() -> None:
    """In records and before reviewers; as a secret they are hashed."""

    def tool(price: Money, parts: list[Money], hidden: Annotated[Money, Secret()]) -> None:
        """Does."""

    spec = ToolSpec.from_function(tool)
    args = {"price": "1 EUR", "parts": ["2 EUR"], "hidden": "3 EUR"}
    values = spec.validate(args)
    assert json.loads(spec.dump(values)) == args
    assert spec.validate(json.loads(spec.dump(values))) == values
    shown = spec.masked(values, b"key")
    assert (shown["price"], shown["parts"]) == ("1 EUR", ["2 EUR"])
    assert list(shown["hidden"]) == ["$secret"]
