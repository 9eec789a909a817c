"""Signatures are read as they are written, wherever their names are defined."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from agent_adapter.core.schema.from_function import read_function
from agent_adapter.core.tool import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable


class Colour(enum.Enum):
    """A text enum."""

    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    """An integer enum."""

    S = 1
    L = 2


class Point(BaseModel):
    """A nested model."""

    x: int
    y: int = 0


class Options(TypedDict, total=False):
    """A typed dictionary."""

    deep: bool
    limit: int


class Tree(BaseModel):
    """A model that contains itself."""

    name: str
    children: list[Tree] = []


def properties(fn: Callable[..., Any]) -> dict[str, Any]:
    """The properties of a function's schema."""
    schema: dict[str, Any] = ToolSpec.from_function(fn).json_schema()["properties"]
    return schema


def test_defaults_optionals_and_bare_containers() -> None:
    """U1 to U3: a default, `str | None`, bare `list` and `dict`."""

    def tool(a: int = 3, b: str | None = None, c: list = [], d: dict | None = None) -> None:  # type: ignore[type-arg]  # noqa: B006  # bare and mutable is the case
        """Does."""

    assert properties(tool) == {
        "a": {"type": "integer", "default": 3},
        "b": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "c": {"type": "array", "items": {}, "default": []},
        "d": {
            "anyOf": [{"type": "object", "additionalProperties": True}, {"type": "null"}],
            "default": None,
        },
    }


def test_enums_are_their_values() -> None:
    """U9: an `IntEnum` is an enum of integers, with its default as a value."""

    def tool(size: Size = Size.L, colour: Colour | None = None) -> None:
        """Does."""

    spec = ToolSpec.from_function(tool)
    assert spec.json_schema()["$defs"]["Size"]["enum"] == [1, 2]
    assert spec.json_schema()["properties"]["size"]["default"] == 2
    assert spec.validate({"size": 1, "colour": "red"}) == {"size": Size.S, "colour": Colour.RED}


def test_schema_is_self_contained_and_valid() -> None:
    """U5: every reference of a nested or recursive type leads into the schema."""

    def tool(point: Point, tree: Tree, options: Options) -> None:
        """Does."""

    schema = ToolSpec.from_function(tool).json_schema()
    Draft202012Validator.check_schema(schema)
    assert set(schema["$defs"]) == {"Options", "Point", "Tree"}
    assert "title" not in schema


def test_locally_defined_types_are_found() -> None:
    """U6: types of the defining function, also those that refer to each other."""

    class Local(BaseModel):
        when: dt.date

    @dataclasses.dataclass
    class Holder:
        inner: Local

    def tool(local: Local, holder: Holder) -> None:
        """Does."""

    values = ToolSpec.from_function(tool).validate(
        {"local": {"when": "2020-01-01"}, "holder": {"inner": {"when": "2020-01-02"}}}
    )
    assert values["holder"] == Holder(Local(when=dt.date(2020, 1, 2)))


def test_names_in_a_closure_are_found() -> None:
    """U6: a type that the function itself uses, after its definition has returned."""

    class Local(BaseModel):
        n: int

    def define() -> Callable[..., Any]:
        def tool(x: Local) -> Any:
            """Does."""
            return Local

        return tool

    assert properties(define())["x"] == {"$ref": "#/$defs/Local"}


def test_old_style_annotations_and_field_metadata() -> None:
    """`Union`, `Literal` and `Annotated[..., Field()]` mean what Pydantic says they mean."""

    def tool(
        a: Union[int, str],  # noqa: UP007  # the old spelling is the case
        b: Literal["x", "y"],
        c: Annotated[int, Field(ge=1, description="from the annotation")] = 1,
        d: int = Field(default=2, description="from the default"),
    ) -> None:
        """Does.

        Args:
            a: either
            b: one of two
            c: not used
            d: not used either
        """

    read = properties(tool)
    assert read["a"] == {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "description": "either",
    }
    assert read["b"]["enum"] == ["x", "y"]
    assert read["c"]["description"] == "from the annotation"
    assert read["c"]["minimum"] == 1
    assert read["d"]["description"] == "from the default"


def test_unreadable_return_annotation_is_no_hindrance() -> None:
    """A result needs no type."""

    def tool(x: int) -> Nowhere:  # type: ignore[name-defined]  # noqa: F821  # the case
        """Does."""

    assert read_function("tool", tool).returns is None


SIMPLE: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers()),
    (float, st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**6), 10**6)),
    (bool, st.booleans()),
    (str, st.text()),
    (Literal["a", 1], st.sampled_from(["a", 1])),
    (Colour, st.sampled_from(["red", "blue"])),
    (Size, st.sampled_from([1, 2])),
    (Point, st.fixed_dictionaries({"x": st.integers()}, optional={"y": st.integers()})),
    (Options, st.fixed_dictionaries({}, optional={"deep": st.booleans(), "limit": st.integers()})),
    (list, st.lists(st.integers() | st.text(), max_size=3)),
    (dict, st.dictionaries(st.text(), st.none() | st.booleans(), max_size=3)),
    (Annotated[int, Field(ge=0, le=9)], st.integers(-2, 11)),
    (Annotated[str, Field(max_length=2)], st.text(max_size=4)),
]
JUNK = st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3) | st.just([])


@st.composite
def signatures(draw: st.DrawFn) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A function with a generated signature, and arguments that fit or nearly fit it."""
    annotations: dict[str, Any] = {}
    args: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(["a", "b", "json", "_x"]), max_size=3, unique=True)):
        annotation, values = draw(st.sampled_from(SIMPLE))
        shape = draw(st.sampled_from(["one", "many", "optional"]))
        if shape == "many":
            annotation, values = list[annotation], st.lists(values, max_size=3)
        elif shape == "optional":
            annotation, values = annotation | None, values | st.none()
        annotations[name] = annotation
        if draw(st.integers(0, 9)):
            args[name] = draw(values if draw(st.integers(0, 4)) else JUNK)
    if not draw(st.integers(0, 9)):
        args["other"] = 1
    namespace: dict[str, Any] = {}
    exec(f"def tool({', '.join(annotations)}):\n    'Does.'", namespace)
    namespace["tool"].__annotations__ = annotations
    return namespace["tool"], args


@given(signatures())
def test_what_the_schema_accepts_the_tool_accepts(case: tuple[Any, dict[str, Any]]) -> None:
    """Arguments that fit the exported schema are never refused, and unknown ones always are."""
    fn, args = case
    spec = ToolSpec.from_function(fn)
    fits = Draft202012Validator(spec.json_schema()).is_valid(args)
    accepted = True
    try:
        values = spec.validate(args)
    except Exception:
        accepted = False
    assert accepted or not fits
    if accepted:
        assert "other" not in args
        assert spec.validate(__import__("json").loads(spec.dump(values))) == values


@pytest.mark.parametrize("annotation", [item for item, _ in SIMPLE], ids=str)
def test_every_schema_is_valid(annotation: Any) -> None:
    """What is exported is JSON Schema 2020-12."""

    def tool(x: Any) -> None:
        """Does."""

    tool.__annotations__["x"] = annotation
    Draft202012Validator.check_schema(ToolSpec.from_function(tool).json_schema())
