"""Schemas that used to be lost on the way, through every target, by the framework's own path."""

from __future__ import annotations

import enum
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import pytest

import agent_adapter as aa
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.executor import Executor

from ._targets import TARGETS
from .kit import harness_session

pytestmark = [pytest.mark.anyio, pytest.mark.contract]


class Kind(enum.Enum):
    """How somebody pays."""

    CASH = "cash"
    CARD = "card"


def notify(to: Iterable[str]) -> list[list[str]]:
    """Send, twice."""
    return [list(to), list(to)]


def pay(kind: Literal[Kind.CASH], lang: str = "en") -> str:
    """Pay."""
    return f"{kind.name} {lang}"


def foreign(schema: dict[str, Any]) -> ToolSpec:
    """A tool of a foreign schema that gives back what it got."""

    async def given(**arguments: Any) -> dict[str, Any]:
        return arguments

    return ToolSpec.from_json_schema("foreign", "A text.", schema, given)


EITHER = {
    "type": "object",
    "anyOf": [
        {"properties": {"id": {"type": "integer"}}, "required": ["id"]},
        {"properties": {"name": {"type": "string"}}, "required": ["name"]},
    ],
}
ODD = {
    "type": "object",
    "properties": {"a": {"type": ["string", "null"]}, "b": True},
    "required": ["a", "b"],
}

ROWS: dict[str, tuple[ToolSpec, dict[str, Any], Any]] = {
    "S3": (ToolSpec.from_function(notify), {"to": ["ann", "bob"]}, [["ann", "bob"]] * 2),
    "S4": (foreign(ODD), {"a": "x", "b": "y"}, {"a": "x", "b": "y"}),
    "S5": (ToolSpec.from_function(pay), {"kind": "cash"}, "CASH en"),
    "S6": (foreign(EITHER), {"name": "ann"}, {"name": "ann"}),
    "S13": (ToolSpec.from_function(pay), {"kind": "cash", "lang": None}, "CASH en"),
}


async def called(target: str, spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[Any, bool]:
    """The value of one call through the target, or the text of its error and `True`."""
    executor = Executor(store=aa.open_store("memory://"))
    async with harness_session(TARGETS[target]) as harness:
        raw = await harness.call(harness.export(spec, executor), dict(arguments), call_id="c_1")
        refused = harness.is_error(raw)
        found = raw if refused else harness.value(raw)
    await executor.aclose()
    return found, refused


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("target", TARGETS)
async def test_a_row_holds_through_each_target(target: str, row: str) -> None:
    """S3, S4, S5, S6, S13: the function gets what the schema shows."""
    spec, arguments, wanted = ROWS[row]
    found, refused = await called(target, spec, arguments)
    assert not refused, found
    shown = (wanted, str(wanted), as_json(wanted))
    assert found in shown


@pytest.mark.parametrize("target", TARGETS)
async def test_a_hostile_text_is_refused_in_bounded_time(target: str) -> None:
    """S12: a pattern that backtracks holds no target's event loop."""
    schema = {
        "type": "object",
        "properties": {"p": {"type": "string", "pattern": "^(a+)+$"}},
        "required": ["p"],
    }
    spec = foreign(schema)
    taken = []
    for _ in range(3):
        began = time.thread_time()
        _, refused = await called(target, spec, {"p": "a" * 40 + "!"})
        taken.append(time.thread_time() - began)
        assert refused
    assert min(taken) < 1  # exponential matching of 40 letters would take hours


def as_json(value: Any) -> str:
    """The text of a JSON value, as targets that give texts write it."""
    return json.dumps(value, separators=(",", ":"))
