"""Every reader gets one normal form, whatever draft and shape a foreign schema has."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agent_adapter.core.errors import ToolArgsInvalid, ToolDefinitionError
from agent_adapter.core.schema.meta import problem_of
from agent_adapter.core.schema.normal import MAX_DEPTH, normal
from agent_adapter.core.schema.openai_strict import openai_strict
from agent_adapter.core.schema.providers import DIALECTS
from agent_adapter.core.tool import ToolSpec

Schema = dict[str, Any]

ID: Schema = {"properties": {"id": {"type": "integer"}}, "required": ["id"]}
NAME: Schema = {"properties": {"name": {"type": "string"}}, "required": ["name"]}


def echo(**arguments: Any) -> dict[str, Any]:
    """Gives back what it got."""
    return arguments


def tool(schema: Schema) -> ToolSpec:
    """A foreign tool with `schema`."""
    return ToolSpec.from_json_schema("t", "Does.", schema, echo)


def accepts(schema: Schema, args: Schema) -> bool:
    """Whether a tool with `schema` takes `args`."""
    try:
        tool(schema).validate(args)
    except ToolArgsInvalid:
        return False
    return True


ROOTS: dict[str, Schema] = {
    "anyOf beside object": {"type": "object", "anyOf": [ID, NAME]},
    "oneOf": {"oneOf": [{"type": "object", **ID}, {"type": "object", **NAME}]},
    "oneOf of references": {
        "oneOf": [{"$ref": "#/definitions/I"}, {"$ref": "#/definitions/N"}],
        "definitions": {"I": ID, "N": NAME},
    },
    "nested union": {"anyOf": [{"anyOf": [ID]}, {"oneOf": [NAME]}]},
}


@pytest.mark.parametrize("schema", ROOTS.values(), ids=list(ROOTS))
def test_s6_root_union_shows_all_properties_and_checks_each_branch(schema: Schema) -> None:
    """A model sees `id` and `name`; neither of them is refused."""
    assert set(normal(schema)["properties"]) == {"id", "name"}
    assert accepts(schema, {"id": 1})
    assert accepts(schema, {"name": "x"})
    assert not accepts(schema, {})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/definitions/Both", "definitions": {"Both": {"allOf": [ID, NAME]}}},
        {"allOf": [ID, {"$ref": "#/$defs/N"}], "$defs": {"N": NAME}},
        {"type": ["object", "null"], "allOf": [{"allOf": [ID]}, NAME]},
    ],
    ids=["reference", "intersection", "nested"],
)
def test_s6_root_reference_and_intersection_are_written_out(schema: Schema) -> None:
    """Both properties are shown, and both are required."""
    found = normal(schema)
    assert found["properties"] == {**ID["properties"], **NAME["properties"]}
    assert set(found["required"]) == {"id", "name"}
    assert not found.keys() & {"allOf", "$ref", "$defs"}


def test_s6_branches_of_the_root_are_told_in_words() -> None:
    """Constants name a branch; what all branches require is required."""
    schema = {
        "oneOf": [
            {"properties": {"kind": {"const": kind}, kind: {}}, "required": ["kind", kind]}
            for kind in ("card", "cash")
        ]
    }
    found = normal(schema)
    assert found["required"] == ["kind"]
    assert found["properties"]["kind"] == {"enum": ["card", "cash"]}
    assert found["description"] == (
        'Give exactly one of these groups: kind="card", card; kind="cash", cash.'
    )


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (True, {}),
        (False, {"not": {}}),
        (
            {"type": ["string", "null"], "maxLength": 3, "description": "d"},
            {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}], "description": "d"},
        ),
        ({"type": ["array", "null"]}, {"anyOf": [{"type": "array"}, {"type": "null"}]}),
        ({"type": ["string"]}, {"type": "string"}),
        (
            {"type": "string", "nullable": True, "enum": ["a", None]},
            {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
        ),
        ({"type": "STRING"}, {"type": "string"}),
        (
            {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
            {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        ),
        (
            {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
            {"type": "integer", "exclusiveMinimum": 0},
        ),
        ({"allOf": [{"type": "string"}, {"minLength": 2}]}, {"type": "string", "minLength": 2}),
        ({"allOf": [{"type": "number", "minimum": 1}, {"type": "integer", "minimum": 3}]},
         {"type": "integer", "minimum": 3}),
        (
            {"allOf": [{"pattern": "a"}, {"pattern": "b"}]},
            {"pattern": "a", "allOf": [{"pattern": "b"}]},
        ),
        (
            {"type": "object", "properties": {}, "dependencies": {"a": ["b"]}},
            {"type": "object", "properties": {}, "dependentRequired": {"a": ["b"]}},
        ),
    ],
    ids=str,
)  # fmt: skip
def test_s4_s7_older_keywords_become_those_of_2020(part: Any, expected: Schema) -> None:
    """Booleans, lists of types, `nullable`, tuples, exclusive bounds, intersections."""
    assert normal({"properties": {"p": part}})["properties"]["p"] == expected


@pytest.mark.parametrize("part", [{"type": ["string", "null"]}, True], ids=str)
@pytest.mark.anyio
async def test_s4_property_of_two_types_or_of_any_works(part: Any) -> None:
    """Through the executor's plan, too."""
    from agent_adapter.exec.executor import Executor

    spec = tool({"properties": {"p": part}})
    assert await Executor().run_spec(spec, {"p": "x"}) == {"p": "x"}
    assert await Executor().run_spec(spec, {"p": None}) == {"p": None}


def test_s7_recursion_through_names_that_look_like_keywords() -> None:
    """A property may be called `default`, `examples`, `definitions` or `$ref`."""
    names = ("default", "examples", "definitions", "$ref", "enum")
    schema = {"properties": {name: {"$ref": "#/definitions/Node"} for name in names}}
    schema["definitions"] = {"Node": copy.deepcopy(schema)}  # type: ignore[dict-item]  # a schema
    schema["definitions"]["Node"]["type"] = "object"  # type: ignore[assignment]  # a schema
    found = normal(schema)
    assert set(found["properties"]) == set(names)
    assert all(part == {"$ref": "#/$defs/Node"} for part in found["properties"].values())
    assert accepts(schema, {"default": {"enum": {"$ref": {}}}})
    assert not accepts(schema, {"default": {"enum": 3}})


def test_s7_required_names_are_known_properties() -> None:
    """A closed object cannot have the others, an open one shows them."""
    closed = {"properties": {"a": {}}, "required": ["a", "b"], "additionalProperties": False}
    assert normal(closed)["required"] == ["a"]
    opened = normal({"properties": {"a": {}}, "required": ["a", "b"]})
    assert set(opened["properties"]) == {"a", "b"}
    assert normal({"properties": {"a": {"required": True}}})["required"] == ["a"]


@pytest.mark.parametrize(
    "reference",
    ["#/definitions/x", "#/properties/a", "#named", "http://example.com/s.json#/definitions/x",
     "s.json#named", "inner.json", "#/components/schemas/x"],
)  # fmt: skip
def test_one_resolver_finds_every_local_reference(reference: str) -> None:
    """Pointers to any place, anchors and embedded resources end as `#/$defs/…`."""
    schema = {
        "$id": "http://example.com/s.json",
        "properties": {"a": {"type": "string"}, "b": {"$ref": reference}},
        "definitions": {
            "x": {"type": "string"},
            "y": {"$anchor": "named", "type": "string"},
            "z": {"$id": "inner.json", "type": "string"},
        },
        "components": {"schemas": {"x": {"type": "string"}}},
    }
    found = normal(schema)
    (name,) = found["$defs"]
    assert found["properties"]["b"] == {"$ref": f"#/$defs/{name}"}
    assert found["$defs"][name] == {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"properties": {"x": {"$ref": "#/$defs/Gone"}}}, "refers to '#/$defs/Gone', which is not"),
        ({"properties": {"x": {"$ref": "http://e.com/x"}}}, "refers to 'http://e.com/x', which"),
        ({"properties": []}, "is invalid at its root.properties: it is an object, not list"),
        ({"properties": {"x": 3}}, "is invalid at properties.x: 3 is no schema"),
        ({"anyOf": [{"type": "string"}]}, "no branch of its root is an object"),
        (False, "is an object, not bool"),
        (
            {"properties": {"x": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"anyOf": [
                {"$ref": "#/$defs/A"}, {}]}}},
            "#/$defs/A refers to itself without end",
        ),
        ({"properties": {"x": {"default": float("nan")}}}, "NaN or infinity"),
        ({"description": "x" * 1_000_001}, "1,000,000 are the most"),
        ({"properties": {str(n): {} for n in range(2_501)}}, "more than 2,500 schemas"),
    ],
    ids=range(10),
)  # fmt: skip
def test_what_has_no_normal_form_is_refused(schema: Any, text: str) -> None:
    """By name, when the tool is defined."""
    with pytest.raises(ToolDefinitionError) as caught:
        tool(schema)
    assert text in str(caught.value)
    assert str(caught.value).startswith("tool 't': its JSON Schema ")


def test_depth_is_bounded() -> None:
    """A schema nests no deeper than a check can follow."""
    schema: Schema = {"type": "string"}
    for _ in range(MAX_DEPTH):
        schema = {"type": "object", "properties": {"a": schema}}
    assert normal(schema)
    with pytest.raises(ValueError, match=r"nests more than 64 schemas"):
        normal({"properties": {"a": schema}})


def test_references_that_double_with_each_step_do_not_explode() -> None:
    """2 to the 40th schemas would come out; the merge remembers what it has seen."""
    definitions: Schema = {f"A{n}": {"allOf": [{"$ref": f"#/$defs/A{n + 1}"}] * 2}
                           for n in range(40)}  # fmt: skip
    definitions["A40"] = ID
    assert normal({"$ref": "#/$defs/A0", "$defs": definitions})["properties"] == ID["properties"]


def keywords() -> st.SearchStrategy[Any]:
    """Schemas out of every keyword, in shapes that nobody should write."""
    leaf = st.one_of(
        st.booleans(),
        st.none(),
        st.integers(-2, 3),
        st.sampled_from(["string", "object", "array", "#", "#/$defs/a", "^a+$", ""]),
    )
    names = st.sampled_from(
        ["type", "properties", "items", "$ref", "$defs", "definitions", "anyOf", "oneOf", "allOf",
         "not", "required", "enum", "const", "default", "nullable", "additionalProperties", "a",
         "pattern", "if", "then", "dependencies", "minimum", "exclusiveMinimum", "prefixItems",
         "discriminator", "$id", "$anchor", "patternProperties", "$schema", "maxLength"]
    )  # fmt: skip
    return st.recursive(
        leaf,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
        max_leaves=25,
    )


@given(st.dictionaries(st.sampled_from(["type", "properties", "anyOf", "allOf", "$ref", "$defs",
       "items", "required", "definitions"]), keywords(), max_size=5))  # fmt: skip
def test_any_json_is_normalised_or_refused(schema: Schema) -> None:
    """Never another exception; the normal form is a fixed point, and nothing given is changed."""
    before = json.dumps(schema)
    try:
        found = tool(schema).json_schema()
    except ToolDefinitionError:
        return
    finally:
        assert json.dumps(schema) == before
    assert normal(found) == found


def test_schemas_of_functions_are_normal_already() -> None:
    """So fingerprints of tools, which approvals bind, stay as they were."""
    from tests.core.schema.test_from_function import Options, Point, Tree
    from tests.core.schema.test_openai_strict import SPEC, everything

    def more(point: Point, tree: Tree, options: Options, any_: Any, pair: tuple[int, str]) -> None:
        """Does."""

    for fn in (everything, more):
        spec = ToolSpec.from_function(fn)
        assert spec.parameters is not None
        schema = spec.json_schema()
        assert normal(schema) == schema
    assert SPEC.json_schema() == ToolSpec.from_function(everything).json_schema()


@pytest.mark.parametrize(
    "node",
    [
        {"type": "integr"},
        {"type": []},
        {"type": ["string", "string"]},
        {"minimum": "1"},
        {"minLength": -1},
        {"minLength": 1.5},
        {"minLength": 1.0},
        {"multipleOf": 0},
        {"required": ["a", "a"]},
        {"required": [1]},
        {"enum": {}},
        {"pattern": 1},
        {"uniqueItems": 1},
        {"anyOf": []},
        {"anyOf": {}},
        {"allOf": [1]},
        {"properties": []},
        {"properties": {"a": 1}},
        {"properties": {"a": True}},
        {"items": "x"},
        {"dependentRequired": {"a": "b"}},
        {"dependentSchemas": {"a": {"not": {"type": "x"}}}},
        {"const": 1, "default": [1]},
        {"x-own": 1, "title": "t"},
    ],
)
def test_a_schema_is_valid_exactly_if_the_meta_schema_says_so(node: Any) -> None:
    """The quick check of a schema agrees with the slow one."""
    slow = not list(Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(node))
    assert (problem_of(node) is None) is slow


def doubling(part: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Definitions of which each has the next one twice."""
    places = range(30)
    definitions = {
        f"d{n}": {"properties": {"a": part(f"#/$defs/d{n + 1}"), "b": part(f"#/$defs/d{n + 1}")}}
        for n in places
    }
    return {
        "type": "object",
        "properties": {"x": part("#/$defs/d0")},
        "$defs": {**definitions, "d30": {"type": "string"}},
    }


def test_intersections_that_double_are_refused() -> None:
    """Merged, they would be written out two to the thirtieth times."""
    with pytest.raises(ValueError, match="more than 2,500 schemas"):
        normal(doubling(lambda name: {"allOf": [{"$ref": name}, {"not": {"type": "null"}}]}))


def test_references_that_double_stay_references() -> None:
    """No dialect writes them out."""
    schema = normal(doubling(lambda name: {"$ref": name, "description": "A text."}))
    for dialect in DIALECTS.values():
        assert len(json.dumps(dialect(schema))) < 50_000
    with pytest.raises(ValueError, match="strict would need more than 10,000 schemas"):
        openai_strict(schema)


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"required": ["a"]}, {"a": {}}),
        (
            {"required": ["a"], "additionalProperties": {"type": "integer"}},
            {"a": {"type": "integer"}},
        ),
        ({"required": ["a"], "allOf": [{"type": "object"}, {"not": {"type": "null"}}]}, {"a": {}}),
    ],
)
def test_required_name_without_a_property_is_shown(
    schema: dict[str, Any], shown: dict[str, Any]
) -> None:
    """S7: a model that does not see it cannot send it; the rule for other names applies to it."""
    assert normal(schema)["properties"] == shown
