"""An example of a tool's arguments fits its schema, whatever foreign schemas state."""

from __future__ import annotations

from typing import Any

import pytest

from agent_adapter.core.schema.examples import example


@pytest.mark.parametrize(
    ("part", "made"),
    [
        ({"type": "integer", "default": "none"}, 1),
        ({"type": "string", "default": None, "enum": ["a", "b"]}, "a"),
        ({"type": "integer", "default": 5.0}, 5.0),
        ({"type": "boolean", "examples": ["yes", False]}, False),
        ({"type": "array", "default": "x", "items": {"type": "string"}}, []),
    ],
)
def test_stated_value_that_does_not_fit_is_passed_over(part: dict[str, Any], made: Any) -> None:
    """Public tools state defaults of another type, and defaults that no choice allows."""
    schema = {"type": "object", "properties": {"a": part}, "required": ["a"]}
    assert example(schema) == {"a": made}


def test_default_of_the_whole_is_passed_over_where_it_is_no_object() -> None:
    """Arguments are always an object."""
    assert example({"type": "object", "default": "x", "properties": {}}) == {}
