"""Dialects are pure: what they are given stays as it was."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from agent_adapter.core.schema.dialects import inlined, neutral

SCHEMA: dict[str, Any] = {
    "title": "tool",
    "type": "object",
    "properties": {
        "a": {"$ref": "#/$defs/A", "description": "mine"},
        "all": {"type": "array", "items": {"$ref": "#/$defs/A"}},
    },
    "$defs": {
        "A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}, "description": "its"},
        "B": {"type": "integer"},
    },
}


def test_neutral_keeps_references_and_drops_the_title() -> None:
    """Only the top-level title goes, and the copy shares nothing."""
    before = copy.deepcopy(SCHEMA)
    plain = neutral(SCHEMA)
    plain["$defs"]["B"]["type"] = "string"
    assert "title" not in plain
    assert before == SCHEMA


def test_inlined_has_no_references() -> None:
    """Every reference is replaced, and what stood beside it wins."""
    before = copy.deepcopy(SCHEMA)
    part = {"type": "object", "properties": {"b": {"type": "integer"}}, "description": "its"}
    assert inlined(SCHEMA) == {
        "type": "object",
        "properties": {
            "a": {**part, "description": "mine"},
            "all": {"type": "array", "items": part},
        },
    }
    assert before == SCHEMA


def test_recursive_schema_cannot_be_inlined() -> None:
    """A type that contains itself is refused with the reference and the fix."""
    recursive = {
        "type": "object",
        "properties": {"t": {"$ref": "#/$defs/T"}},
        "$defs": {"T": {"properties": {"child": {"$ref": "#/$defs/T"}}}},
    }
    with pytest.raises(ValueError, match=r"#/\$defs/T refers to itself.*not recursive"):
        inlined(recursive)


def test_dangling_reference_is_named() -> None:
    """A reference that leads nowhere is an error."""
    with pytest.raises(ValueError, match=r"#/\$defs/X leads nowhere"):
        inlined({"properties": {"x": {"$ref": "#/$defs/X"}}})


def test_property_called_ref_is_no_reference() -> None:
    """A parameter may have any name."""
    schema = {"properties": {"$ref": {"type": "string"}, "title": {"type": "string"}}}
    assert inlined(schema) == schema
