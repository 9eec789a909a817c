"""Reports by users of other frameworks (cases U1 to U17), through every integration they touch."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import json
import shutil
import uuid
from collections.abc import AsyncIterator
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ag2")
pytest.importorskip("agno")
pytest.importorskip("anthropic")
pytest.importorskip("autogen_agentchat")
pytest.importorskip("fastmcp")
pytest.importorskip("google.genai")
pytest.importorskip("langchain")
pytest.importorskip("langgraph")
pytest.importorskip("mcp")
pytest.importorskip("openai")

from pydantic import BaseModel

import agent_adapter as aa
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.ledger import verify

from ._kit_support import Probe, outcome_of, ports_of, spec_for
from ._targets import TARGETS
from .kit import harness_session

pytestmark = [pytest.mark.anyio, pytest.mark.contract]

YES = aa.ApprovalDecision.approve(reviewer="cases")


@pytest.fixture(params=list(TARGETS))
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    """Each integration's harness."""
    async with harness_session(TARGETS[request.param]) as opened:
        yield opened


def _executor(**options: Any) -> aa.Executor:
    return aa.Executor(store=aa.open_store("memory://"), **options)


async def _called(harness: Any, spec: ToolSpec, args: dict[str, Any]) -> Any:
    """The value that one call of `spec` gives through the framework."""
    native = harness.export(spec, _executor())
    raw = await harness.call(native, args, call_id=f"call_cases_{uuid.uuid4().hex}")
    assert not harness.is_error(raw), raw
    return harness.value(raw)


async def _shown(harness: Any, spec: ToolSpec) -> str:
    """What the model reads of a call without arguments."""
    native = harness.export(spec, _executor())
    raw = await harness.call(native, {}, call_id=f"call_cases_{uuid.uuid4().hex}")
    assert not harness.is_error(raw), raw
    return str(harness.shown(raw))


def _schema(harness: Any, spec: ToolSpec) -> dict[str, Any]:
    schema: dict[str, Any] = harness.describe(harness.export(spec, _executor()))[2]
    return schema


async def test_u1_default_in_a_signature(harness: Any) -> None:
    """The parameter may be left out, and the tool gets its default."""

    async def greet(name: str, times: int = 2) -> str:
        """Greets."""
        return f"{name} {times}"

    spec = spec_for(greet)
    assert _schema(harness, spec)["required"] == ["name"]
    assert await _called(harness, spec, {"name": "Ann"}) == "Ann 2"
    assert await _called(harness, spec, {"name": "Ann", "times": 3}) == "Ann 3"


async def test_u2_optional_text(harness: Any) -> None:
    """`str | None` takes a text, a null, and nothing."""

    async def note(text: str | None = None) -> list[str | None]:
        """Notes."""
        return [text]

    spec = spec_for(note)
    for args, expected in ({"text": "a"}, "a"), ({"text": None}, None), ({}, None):
        assert await _called(harness, spec, args) == [expected]


async def test_u3_bare_list_and_dict(harness: Any) -> None:
    """Untyped containers have a schema that the target takes, and arrive as they were sent."""

    async def keep(items: list, table: dict) -> list[Any]:  # type: ignore[type-arg]
        """Keeps."""
        return [items, table]

    spec = spec_for(keep)
    assert _schema(harness, spec)["properties"]["items"]["type"] == "array"
    args = {"items": [1, "two", {"three": 3}], "table": {"a": [1], "b": None}}
    assert await _called(harness, spec, args) == [args["items"], args["table"]]


async def test_u4_strict_needs_closed_objects_and_every_property_required() -> None:
    """OpenAI's strict schema of nested models with defaults, and a call back through it."""
    from agent_adapter.integrations.openai import openai_tool

    async def visit(place: _Place, hours: int = 1) -> float:
        """Visits."""
        return place.height * hours

    parameters = openai_tool(spec_for(visit), strict=True)["function"]["parameters"]
    for node in (parameters, *parameters["$defs"].values()):
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])
    harness = TARGETS["openai"]()
    args = {"place": {"city": "Ulm", "height": None}, "hours": None}
    assert await _called(harness, spec_for(visit), args) == 1.5


class _Place(BaseModel):
    city: str
    height: float = 1.5


class _Trip(BaseModel):
    start: _Place
    stops: list[_Place] = []


async def test_u5_nested_models(harness: Any) -> None:
    """No reference dangles, and nested values arrive as models."""

    async def travel(trip: _Trip) -> list[Any]:
        """Travels."""
        return [trip.start.city, *(stop.height for stop in trip.stops)]

    spec = spec_for(travel)
    schema = _schema(harness, spec)
    for reference in _references(schema):
        assert reference.removeprefix("#/$defs/") in schema["$defs"]
    args = {"trip": {"start": {"city": "Ulm"}, "stops": [{"city": "Bonn", "height": 2.0}]}}
    assert await _called(harness, spec, args) == ["Ulm", 2.0]


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [found for item in node for found in _references(item)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
    return own + [found for item in node.values() for found in _references(item)]


async def test_u6_local_types_and_postponed_annotations(harness: Any) -> None:
    """This file's annotations are texts, and the type exists in this function alone."""

    class Local(BaseModel):
        n: int

    async def twice(local: Local) -> int:
        """Doubles."""
        return local.n * 2

    assert await _called(harness, spec_for(twice), {"local": {"n": 4}}) == 8


def test_u7_star_arguments_are_refused() -> None:
    """Before any framework sees the tool, with the reason."""

    def many(*names: str, **more: str) -> str:
        """Takes many."""
        return ""

    with pytest.raises(aa.ToolDefinitionError, match=r"'names': \*args cannot be described"):
        aa.ToolSpec.from_function(many)


async def test_u8_names_that_frameworks_swallow(harness: Any) -> None:
    """`config`, `self`, `stack` and their like are the model's; what cannot be is refused aloud."""

    async def swallow(
        agent: str, config: str, run_manager: str, stack: str, context: str, ctx_: str, input: str
    ) -> list[str]:
        """Takes what others keep."""
        return [agent, config, run_manager, stack, context, ctx_, input]

    names = ["agent", "config", "run_manager", "stack", "context", "ctx_", "input"]
    args = {name: f"the {name}" for name in names}
    assert await _called(harness, spec_for(swallow), args) == [args[name] for name in names]


async def test_u8_fc_reaches_the_tool_or_is_refused(harness: Any) -> None:
    """Only Agno takes this name for itself, and says so at export."""

    async def fetch(fc: str) -> str:
        """Fetches."""
        return fc

    spec = spec_for(fetch)
    if harness.name == "agno":
        with pytest.raises(aa.ToolDefinitionError, match="rename fc"):
            harness.export(spec, _executor())
    else:
        assert await _called(harness, spec, {"fc": "mine"}) == "mine"


class _Level(IntEnum):
    LOW = 1
    HIGH = 2


async def test_u9_integer_enum(harness: Any) -> None:
    """Numbers in an enum stay numbers, and arrive as its members."""

    async def turn(level: _Level) -> str:
        """Turns."""
        return level.name

    spec = spec_for(turn)
    assert [1, 2] in _enums(_schema(harness, spec))
    assert await _called(harness, spec, {"level": 2}) == "HIGH"


def _enums(node: Any) -> list[Any]:
    if isinstance(node, list):
        return [found for item in node for found in _enums(item)]
    if not isinstance(node, dict):
        return []
    own = [node["enum"]] if isinstance(node.get("enum"), list) else []
    return own + [found for item in node.values() for found in _enums(item)]


@pytest.mark.parametrize("name", ["x" * 65, "a b", "a.b", "größe", ""])
def test_u10_name_that_no_provider_takes_is_refused(name: str) -> None:
    """Where the tool is defined, with the rule."""

    def fine() -> str:
        """Is fine."""
        return ""

    with pytest.raises(aa.ToolDefinitionError, match="1 to 64 letters"):
        aa.ToolSpec.from_function(fine, name=name)


async def test_u10_longest_name_goes_everywhere(harness: Any) -> None:
    """What is defined can be exported."""

    async def fine() -> str:
        """Is fine."""
        return "fine"

    spec = spec_for(fine).replace(name="n" * 61 + "_-9")
    assert harness.describe(harness.export(spec, _executor()))[0] == spec.name
    assert await _called(harness, spec, {}) == "fine"


@dataclasses.dataclass
class _Point:
    x: int


_ID = uuid.UUID(int=7)
_DAY = dt.datetime(2024, 2, 29, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (_DAY, "2024-02-29T00:00:00Z"),
        (Decimal("1.50"), "1.50"),
        (_ID, str(_ID)),
        (b"\x00\xff", "AP8="),
        (_Point(3), {"x": 3}),
        (_Place(city="Ulm"), {"city": "Ulm", "height": 1.5}),
    ],
    ids=["datetime", "decimal", "uuid", "bytes", "dataclass", "model"],
)
async def test_u11_result_becomes_json(harness: Any, value: Any, expected: Any) -> None:
    """A model reads JSON, never a Python repr."""

    async def give() -> Any:
        """Gives."""
        return value

    text = await _shown(harness, spec_for(give))
    try:
        read = json.loads(text)
    except ValueError:
        read = text
    assert read == expected or read == _number(expected)


def _number(expected: Any) -> Any:
    """A bare decimal is a number to whoever reads it as JSON."""
    return float(expected) if expected == "1.50" else expected


async def test_u11_generator_becomes_a_list(harness: Any) -> None:
    """Its items are one result."""

    async def count() -> AsyncIterator[int]:
        """Counts."""
        for n in range(3):
            yield n

    assert json.loads(await _shown(harness, spec_for(count))) == [0, 1, 2]


def _deferred(harness: Any, store: Any) -> tuple[Any, Any]:
    """A port that files requests, where this harness' approvals are asked for."""
    port = aa.DeferredApproval(store)
    if harness.approval == "port":
        return port, None
    harness.approval_port().request = port.request
    return None, port


async def test_u12_approval_given_later_is_not_ignored(harness: Any) -> None:
    """The filed call runs exactly as it was asked about, by its record."""
    store = aa.open_store("memory://")
    probe = Probe()
    spec = probe.adding(confirm=True)
    registry = aa.ToolRegistry()
    registry.add(spec)
    port, _ = _deferred(harness, store)
    executor = aa.Executor(registry, store=store, approval=port)
    native = harness.export(spec, executor)
    await outcome_of(harness.call(native, {"a": 2, "b": 3}, call_id="call_cases_12"))
    (record,) = await aa.Inbox(store).list()
    assert probe.calls == []
    await aa.Inbox(store).approve(record.id, reviewer="ann")
    assert await executor.resume(record.id) == 5
    assert await executor.resume(record.id) == 5
    assert probe.calls == [{"a": 2, "b": 3}]


async def test_u13_confirmed_tool_runs(harness: Any) -> None:
    """A yes is followed by the tool and by its result."""
    probe = Probe()
    by_executor, _ = ports_of(harness, YES)
    native = harness.export(probe.adding(confirm=True), _executor(approval=by_executor))
    raw = await harness.approve_flow(native, {"a": 2, "b": 3}, YES)
    assert probe.calls == [{"a": 2, "b": 3}]
    assert harness.value(raw) == 5


async def test_u14_results_around_a_confirmation(harness: Any) -> None:
    """Of three parallel calls one is asked about; all three are answered."""
    probe = Probe()
    by_executor, gate = ports_of(harness, YES)
    spec = probe.adding(confirm=lambda args, ctx: args["a"] == 1)
    native = harness.export(spec, _executor(approval=by_executor))
    calls = [(f"call_cases_14_{n}", {"a": n, "b": 10}) for n in range(3)]
    raws = await harness.call_many(native, calls)
    assert [harness.value(raw) for raw in raws] == [10, 11, 12]
    assert gate is not None
    assert [request.arguments["a"] for request in gate.requests] == [1]
    assert len(probe.calls) == 3


async def test_u15_tool_ends_with_its_run(harness: Any) -> None:
    """A cancelled run cancels its tool, where the framework can."""
    probe = Probe()
    native = harness.export(probe.hanging(), _executor())
    run = asyncio.ensure_future(harness.call(native, {}, call_id="call_cases_15"))
    await probe.started()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert probe.cancelled == getattr(harness, "cancels_tool", True)
    probe.release()


async def test_u16_several_writers_and_a_reader(harness: Any, tmp_path: Path) -> None:
    """Three executors write to one file from one framework while somebody lists it."""
    stores = [aa.open_store(f"sqlite:///{tmp_path / 'shared.db'}") for _ in range(3)]
    probe = Probe()
    spec = probe.adding(effects="write")
    natives = [harness.export(spec, aa.Executor(store=store)) for store in stores]
    calls = [
        harness.call(native, {"a": n, "b": turn}, call_id=f"call_cases_16_{n}_{turn}")
        for n, native in enumerate(natives)
        for turn in range(3)
    ]
    *raws, _ = await asyncio.gather(*calls, _list_often(stores[0]))
    assert [harness.value(raw) for raw in raws] == [n + t for n in range(3) for t in range(3)]
    report = await verify(stores[0])
    assert (report.ok, report.calls) == (True, 9)
    for store in stores:
        await store.aclose()


async def _list_often(store: Any) -> None:
    for _ in range(20):
        await aa.Inbox(store).list()
        await asyncio.sleep(0)


async def _after_power_cut(tmp_path: Path, lost: int) -> Any:
    """A copy of a store that was being written, whose log lacks its last `lost` bytes."""
    path = tmp_path / "live.db"
    store = aa.open_store(f"sqlite:///{path}")
    executor = aa.Executor(store=store)
    spec = Probe().adding(effects="write")
    for n in range(3):
        await executor.run_spec(spec, {"a": n, "b": 0})
    await store.flush()
    torn = tmp_path / "torn"
    shutil.copytree(tmp_path, torn, ignore=shutil.ignore_patterns("torn"))
    log = torn / "live.db-wal"
    log.write_bytes(log.read_bytes()[: log.stat().st_size - lost])
    await store.aclose()
    return aa.open_store(f"sqlite:///{torn / 'live.db'}")


@pytest.mark.parametrize("lost", [0, 1, 100, 5000])
async def test_u17_torn_last_record_is_forgiven(tmp_path: Path, lost: int) -> None:
    """What was not written whole is not there; all before it is, and the ledger verifies."""
    store = await _after_power_cut(tmp_path, lost)
    report = await verify(store)
    assert report.ok, report.problems
    assert report.calls >= (3 if lost == 0 else 1)
    await store.aclose()


@pytest.mark.alters_store
async def test_u17_anything_else_is_an_error(tmp_path: Path) -> None:
    """A ledger row that was changed in the middle is found."""
    store = await _after_power_cut(tmp_path, 0)
    (row, *_) = await store.read(lambda tx: tx.select("ledger"))
    keys = {"run_id": row["run_id"], "seq": row["seq"]}
    await store.write(lambda tx: tx.update("ledger", keys, {"body": b"{}"}))
    assert not (await verify(store)).ok
    await store.aclose()
