"""S12: foreign patterns and keywords are checked in bounded time."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agent_adapter.core.errors import ToolArgsInvalid, ToolDefinitionError
from agent_adapter.core.schema.bounded import checker
from agent_adapter.core.schema.patterns import compiled
from agent_adapter.core.tool import ToolSpec

DECIMAL = r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"
"""Pydantic's own pattern of decimals, in the schema of every server that uses it."""


def tool(part: Any, **more: Any) -> ToolSpec:
    """A foreign tool with one parameter."""
    return ToolSpec.from_json_schema("t", "Does.", {"properties": {"p": part}, **more}, print)


def refusal(spec: ToolSpec, value: Any) -> tuple[str, float]:
    """Why `value` is refused, and the seconds of this thread that it took."""
    began = time.thread_time()
    with pytest.raises(ToolArgsInvalid) as caught:
        spec.validate({"p": value})
    return str(caught.value), time.thread_time() - began


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|a)*$b", r"^(\w+\s?)*$"])
def test_s12_pattern_that_backtracks_is_refused_at_once(pattern: str) -> None:
    """40 letters took an hour, 100,000 take milliseconds."""
    text, seconds = refusal(tool({"type": "string", "pattern": pattern}), "a" * 100_000 + "!")
    assert "does not match" in text
    assert seconds < 0.5


def test_s12_many_unique_items_are_compared_once_each() -> None:
    """6,000 objects were 18 million comparisons."""
    spec = tool({"type": "array", "uniqueItems": True})
    items = [{"id": number, "tags": [str(number)]} for number in range(6_000)]
    taken = []
    for _ in range(3):
        began = time.thread_time()
        spec.validate({"p": items})
        taken.append(time.thread_time() - began)
    assert min(taken) < 1
    assert "the same item twice" in refusal(spec, [*items, items[-1]])[0]
    spec.validate({"p": [1, True, "1", [1], {"a": 1}]})
    assert "the same item twice" in refusal(spec, [1, 1.0])[0]


def test_s12_union_that_doubles_at_each_level_is_bounded() -> None:
    """A recursive union can ask for 2 to the depth checks."""
    node = {"type": "object", "properties": {"k": {"$ref": "#/$defs/N"}}, "required": ["x"]}
    spec = tool({"$ref": "#/$defs/N"}, **{"$defs": {"N": {"anyOf": [node, dict(node, title="b")]}}})
    value: Any = {}
    for _ in range(60):
        value = {"k": value, "x": 1}
    text, _ = refusal(spec, value)
    assert "takes too long" in text


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        (r"\p{L}+", "é", "1"),
        (DECIMAL, "-1.50", "."),
        (r"^(?=.*[A-Z])(?=.*\d).{4,}$", "aB1c", "abcd"),
        (r"^(?!.*\.\.)[a-z./]+$", "a/b", "a/../b"),
        (r"^\/[^[]+$", "/x", "/["),
        (r"^a{b}$", "a{b}", "ab"),
        (r"^[^]$", "x", ""),
        (r"^https?:\/\/", "http://x", "ftp://x"),
    ],
)
def test_ecma_patterns_mean_what_they_say(pattern: str, fits: str, does_not: str) -> None:
    """Leading look-aheads, Unicode classes, needless escapes."""
    assert compiled(pattern).matches(fits)
    assert not compiled(pattern).matches(does_not)


@pytest.mark.parametrize("pattern", [r"(a)\1", "x(?=y)", "(?<=a)b", "(", "(?=a)?b", "[z-a]"])
@pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
def test_s8_pattern_without_a_bound_is_refused_at_definition(pattern: str, keyword: str) -> None:
    """The tool is not made, so that it costs no other tool anything."""
    value = pattern if keyword == "pattern" else {pattern: {}}
    with pytest.raises(ToolDefinitionError, match="cannot be checked in bounded time"):
        tool({keyword: value})


@pytest.mark.anyio
async def test_s12_large_arguments_are_checked_off_the_event_loop() -> None:
    """The loop's own thread spends next to nothing on them."""
    spec = tool({"type": "array", "items": {"type": "object", "required": ["id"]}})
    items = [{"id": number} for number in range(20_000)]
    size = spec.arguments.is_large({"p": items[:10]}), spec.arguments.is_large({"p": items})
    assert size == (False, True)
    began = time.thread_time()
    assert await spec.validated({"p": items}) == {"p": items}
    assert time.thread_time() - began < 0.1


@pytest.mark.parametrize(
    ("pattern", "fitting", "unfitting"),
    [
        (r"^\w{1,255}$", ["a", "é" * 255], ["", "a" * 256, "a b"]),
        (r"^[A-Za-z][\w-]{0,127}$", ["a", "a-1", "a" * 128], ["", "1", "a" * 129]),
        (r"^\p{L}{3}$", ["abc"], ["ab", "abcd", "ab1"]),
        (r"^v\d{2,}\.x$", ["v12.x", "v12345.x"], ["v1.x", "v12x"]),
        (r"^(?!x)[a-z]{2,3}$", ["ab", "abc"], ["xa", "a", "abcd"]),
        ("^a{0}$", [""], ["a"]),
    ],
)
def test_s12_counted_characters_are_counted_by_the_length(
    pattern: str, fitting: list[str], unfitting: list[str]
) -> None:
    """S12: the engine would write a class of thousands of ranges out once for each repetition."""
    found = compiled(pattern)
    assert [text for text in fitting if not found.matches(text)] == []
    assert [text for text in unfitting if found.matches(text)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        r"\w{1000}{1000}", r"(\p{L}|\d){1,300}", r"\W" * 1000, "(a{1,900}){1,900}", ".{20000}",
        r"(?i)[\p{L}\p{N}]{500}x", r"([\w.]{1,99}@){9}", "((((x{99}){99}){99}){99}){99}",
        r"(?:\P{Lu}|[^a]{9}){999}", "(?i)[a-z]{60000}", r"\S{1,9999}\s",
    ],
)  # fmt: skip
def test_s12_pattern_that_takes_long_to_compile_is_refused_before(pattern: str) -> None:
    """S12: the engine itself gives up after more than 100 ms."""
    began = time.thread_time()
    with pytest.raises(ValueError, match="takes too long to compile"):
        compiled(pattern)
    assert time.thread_time() - began < 0.02


@pytest.mark.parametrize("part", [r"\w{129}", r"\W{129}", r"\P{L}{119}", r"\D{499}", ".{6400}"])
def test_s12_largest_patterns_compile_in_time(part: str) -> None:
    """S12: an import stands in the event loop meanwhile."""
    began = time.thread_time()
    compiled(f"(?:{part}q)?")
    assert time.thread_time() - began < 0.1


def test_s12_patterns_of_one_schema_are_bounded_together() -> None:
    """S12: many patterns take as long as one that is large."""
    parts = {f"p{n}": {"type": "string", "pattern": rf"x{n}\w{{60}}y"} for n in range(3)}
    with pytest.raises(ValueError, match="patterns take too long to compile"):
        checker({"type": "object", "properties": parts})
