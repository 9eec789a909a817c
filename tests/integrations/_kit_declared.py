"""The checks that run where a harness declares them: C9 to C15."""

from __future__ import annotations

import copy
import datetime as dt
import enum
import json
import math
import threading
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from agent_adapter.core.context import ToolContext
from agent_adapter.core.results import plain_result
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest

from ..fakes.hooks import RaisingHook, RecordingHook
from ._kit_paused import check_paused
from ._kit_support import Check, Probe, RunnerFactory, expect, outcome_of, ports_of, spec_for
from ._kit_told import check_told

__all__ = ["DECLARED"]


_CANARIES = ("canary-text", "canary-cause", "canary-argument", "Traceback", 'File "')


async def check_private(harness: Any, factory: RunnerFactory) -> None:
    """C9: a foreign exception's text, traceback and arguments never reach the model."""
    fault = RuntimeError("canary-text", {"note": "canary-argument"})
    fault.__cause__ = ValueError("canary-cause")
    runs: list[tuple[str, Any, tuple[Any, ...]]] = [("tool", fault, ())]
    runs += [(stage, "fine", (RaisingHook(stage, fault),)) for stage in ("before", "after")]
    for stage, value, hooks in runs:
        native = harness.export(Probe().returning(value), factory(hooks=hooks))
        args = {"note": "canary-argument"}
        ended = await outcome_of(harness.call(native, args, call_id=f"call_contract_9{stage}"))
        if ended.raised:
            continue
        text = harness.shown(ended.raw)
        expect(harness.is_error(ended.raw), "C9", f"{stage}: not an error: {ended.raw!r}")
        leaked = [canary for canary in _CANARIES if canary in text]
        expect(not leaked, "C9", f"{stage}: the model reads {leaked} in {text}")


async def check_parallel(harness: Any, factory: RunnerFactory) -> None:
    """C10: parallel calls of one turn do not mix contexts, approvals or results."""
    turns, denied = (0, 1, 2, 3), 1
    calls = [(f"call_contract_10_{n}", {"n": n}) for n in turns]
    by_executor, gate = ports_of(harness, _denying(denied))
    asks = gate is not None
    running = [n for n in turns if not asks or n != denied]
    probe = Probe()
    wait = getattr(harness, "parallel", True)
    spec = probe.taking_turns(running, wait=wait, confirm=asks)
    native = harness.export(spec, factory(approval=by_executor))
    ended = await outcome_of(harness.call_many(native, [(i, dict(a)) for i, a in calls]))
    expect(not ended.raised, "C10", f"the turn raised {ended.raw!r}")
    expect(len(ended.raw) == len(calls), "C10", f"{len(ended.raw)} results of {len(calls)} calls")
    order = list(reversed(running)) if wait else running
    expect(probe.finished == order, "C10", f"the tools ended as {probe.finished}, not {order}")
    ids = {args["n"]: ctx.call_id for args, ctx in zip(probe.calls, probe.contexts, strict=True)}
    _check_apart(harness, calls, ended.raw, ids)
    contexts = {id(ctx) for ctx in probe.contexts}
    expect(len(contexts) == len(running), "C10", "two calls share one context")
    if gate is not None:
        asked = sorted((r.call_id, r.arguments["n"]) for r in gate.requests)
        expected = sorted((ids.get(n, f"call_contract_10_{n}"), n) for n in turns)
        native_ids = getattr(harness, "native_call_ids", True)
        same = asked == expected if native_ids else len(asked) == len(expected)
        expect(same, "C10", f"the port was asked about {asked}, not {expected}")


def _denying(turn: int) -> Callable[[ApprovalRequest], ApprovalDecision]:
    def decide(request: ApprovalRequest) -> ApprovalDecision:
        if request.arguments["n"] == turn:
            return ApprovalDecision.deny(reviewer="contract", reason="not this one")
        return ApprovalDecision.approve(reviewer="contract")

    return decide


def _check_apart(
    harness: Any,
    calls: Sequence[tuple[str, dict[str, Any]]],
    raws: Sequence[Any],
    ids: dict[int, str | None],
) -> None:
    for (call_id, args), raw in zip(calls, raws, strict=True):
        n = args["n"]
        if n not in ids:
            expect(harness.is_error(raw), "C10", f"the denied call {n} gave {raw!r}")
            continue
        if getattr(harness, "native_call_ids", True):
            expect(ids[n] == call_id, "C10", f"call {n} ran under the id {ids[n]!r}")
        got = harness.value(raw)
        expect(got == f"turn {n} of {ids[n]}", "C10", f"call {n} got the result {got!r}")


class _Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class _Place(BaseModel):
    city: str
    height: float | None = None


_SENT: dict[str, Any] = {
    "text": "none",
    "count": 7,
    "ratio": 0.5,
    "flag": False,
    "when": "2024-02-29T12:30:00Z",
    "amount": "12.30",
    "colour": "blue",
    "mode": "slow",
    "place": {"city": "Köln", "height": 37.0},
    "places": [{"city": "Bonn"}, {"city": "true", "height": None}],
    "table": {"x": 1, "y z": 2},
    "either": "12",
    "schema": "public",
    "self_id": "null",
}


async def check_everything(harness: Any, factory: RunnerFactory) -> None:
    """C12: a schema with every feature arrives as the target's dialect says, arguments typed."""
    ran: list[dict[str, Any]] = []

    async def contract_everything(
        text: str,
        count: int,
        ratio: float,
        flag: bool,
        when: dt.datetime,
        amount: Decimal,
        colour: _Colour,
        mode: Literal["fast", "slow"],
        place: _Place,
        places: list[_Place],
        table: dict[str, int],
        either: int | str,
        schema: str,
        self_id: str,
        ctx: ToolContext,
        few: Annotated[int, Field(ge=0, le=9)] = 5,
        maybe: str | None = None,
    ) -> str:
        """Takes everything a schema can say."""
        names = [*_SENT, "few", "maybe"]
        given = locals()
        ran.append({name: given[name] for name in names})
        return "taken"

    spec = spec_for(contract_everything)
    native = harness.export(spec, factory())
    shown, expected = harness.describe(native)[2], harness.expected_schema(spec)
    expect(shown == expected, "C12", f"the schema is {shown!r}, not {expected!r}")
    call = harness.call(native, copy.deepcopy(_SENT), call_id="call_contract_12")
    ended = await outcome_of(call)
    expect(len(ran) == 1, "C12", f"the tool ran {len(ran)} times: {ended.raw!r}")
    typed = _SENT | {
        "when": _WHEN,
        "amount": Decimal("12.30"),
        "colour": _Colour.BLUE,
        "place": _Place(city="Köln", height=37.0),
        "places": [_Place(city="Bonn"), _Place(city="true")],
        "few": 5,
        "maybe": None,
    }
    for name, value in typed.items():
        got = ran[0][name]
        same = got == value and type(got) is type(value)
        expect(same, "C12", f"{name} came as {got!r}, not {value!r}")


class _Inner(BaseModel):
    when: dt.datetime
    label: str | None = None


class _Outer(BaseModel):
    inner: _Inner
    many: list[_Inner]


_WHEN = dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)

_TRAPS: tuple[tuple[str, Any], ...] = (
    ("list-of-strings", ["a", "b"]),
    ("empty-list", []),
    ("none", None),
    ("false", False),
    ("zero", 0),
    ("empty-text", ""),
    ("nested-models", _Outer(inner=_Inner(when=_WHEN), many=[_Inner(when=_WHEN, label="x")])),
    ("datetime", _WHEN),
    ("bytes", b"\x00\xff"),
    ("large-text", "0123456789abcdef" * 65536),
    ("unicode", "naïve \u200b \u202e 日本語 \U0001f600"),
    ("nan", math.nan),
    ("nan-inside", {"ratio": math.nan, "most": math.inf}),
)


def _read(text: str, label: str) -> Any:
    """What a model that reads JSON makes of `text`; a text that is no JSON is itself."""

    def refused(name: str) -> Any:
        raise AssertionError(f"C13: {label}: the model reads {name}, which is not JSON")

    try:
        return json.loads(text, parse_constant=refused)
    except json.JSONDecodeError:
        return text


async def check_results(harness: Any, factory: RunnerFactory) -> None:
    """C13: results that trap frameworks reach the model as JSON text, a text as itself."""
    for label, value in _TRAPS:
        native = harness.export(Probe().returning(value), factory())
        ended = await outcome_of(harness.call(native, {}, call_id=f"call_contract_13_{label}"))
        expect(not ended.raised, "C13", f"{label}: the call raised {ended.raw!r}")
        shown = harness.shown(ended.raw)
        expect(isinstance(shown, str), "C13", f"{label}: `shown` gave {type(shown).__name__}")
        read, expected = _read(shown, label), _read(plain_result(value), label)
        same = read == expected and type(read) is type(expected)
        expect(
            same, "C13", f"{label}: the model reads {shown[:200]!r}, not {str(expected)[:200]!r}"
        )


async def check_untouched(harness: Any, factory: RunnerFactory) -> None:
    """C14: the caller's schema, spec and executor are neither mutated nor copied."""
    schema = copy.deepcopy(_FOREIGN_SCHEMA)
    ran: list[Any] = []

    async def foreign(**arguments: Any) -> str:
        ran.append(arguments)
        return "ran"

    spec = ToolSpec.from_json_schema(
        "contract_foreign", "Takes a schema.", schema, foreign, effects="read"
    )
    before = spec.json_schema()
    hook = RecordingHook()
    runner = _locked(factory, hooks=(hook,))
    native = harness.export(spec, runner)
    await outcome_of(harness.call(native, {"a": {"b": 1}}, call_id="call_contract_14"))
    expect(schema == _FOREIGN_SCHEMA, "C14", f"the caller's schema was changed to {schema!r}")
    expect(ran == [{"a": {"b": 1}}], "C14", f"the tool ran as {ran!r}")
    expect(runner.seen == 1, "C14", f"the executor that was given ran {runner.seen} calls")
    expect([item is spec for item in hook.specs] == [True], "C14", "the spec was copied")
    _wreck(harness.describe(native)[2])
    expect(spec.json_schema() == before, "C14", "the native tool shares its schema with the spec")
    again = harness.describe(harness.export(spec, runner))[2]
    expect(again == harness.expected_schema(spec), "C14", f"a second export shows {again!r}")


_FOREIGN_SCHEMA: dict[str, Any] = {
    "title": "Foreign",
    "type": "object",
    "properties": {
        "a": {
            "title": "A",
            "type": "object",
            "properties": {"b": {"title": "B", "type": "integer"}},
            "required": ["b"],
        }
    },
    "required": ["a"],
}


def _locked(factory: RunnerFactory, **options: Any) -> Any:
    """A runner that holds a lock, which cannot be copied, and counts its own calls."""
    base: Any = factory if isinstance(factory, type) else type(factory())

    class Locked(base):  # type: ignore[misc]  # the base is the factory's own class
        seen = 0
        lock: Any = None

        async def run_spec(self, *args: Any, **kwargs: Any) -> Any:
            self.seen += 1
            return await super().run_spec(*args, **kwargs)

    runner = Locked(**options)
    runner.lock = threading.Lock()
    return runner


def _wreck(schema: Any) -> None:
    if isinstance(schema, dict):
        for item in schema.values():
            _wreck(item)
        schema.clear()


DECLARED: dict[str, Check] = {
    "C9": check_private,
    "C10": check_parallel,
    "C11": check_paused,
    "C12": check_everything,
    "C13": check_results,
    "C14": check_untouched,
    "C15": check_told,
}
"""Checks by number; a harness names those that it can be driven for in `checks`."""
