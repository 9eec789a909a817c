"""The contract every integration passes: checks that go through the framework's own call path.

Write a `Harness`, then install what `contract_tests` returns:

    globals().update((item.__name__, item) for item in contract_tests(MyHarness))

Item 0 is the fixture that holds the harness open for the module; the others are tests. A package
of its own copies this file, `_kit_support.py` and `fakes/{hooks,approval}.py` into its `tests`
package, and `_kit_declared.py`, `_kit_paused.py` and `_kit_told.py` too where its harness declares
`checks`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from typing import Any, Protocol

import anyio
import pytest
from pydantic import ValidationError

from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.integrations.base import Integration
from agent_adapter.integrations.discovery import GROUP, get_integration

from ..fakes.hooks import RecordingHook
from . import _kit_support as support
from ._kit_support import (
    Check,
    FakeRunner,
    Outcome,
    Probe,
    RunnerFactory,
    expect,
    outcome_of,
    ports_of,
)

__all__ = [
    "CHECKS",
    "FakeRunner",
    "Harness",
    "Probe",
    "checks_of",
    "contract_tests",
    "harness_session",
]


class Harness(Protocol):
    """Drives one framework for the kit.

    `name` is the entry point. `edits_supported`: edited arguments are applied, not refused.
    `approval` is `"port"` where the executor's port decides, `"native"` where the framework's own
    gate does; then the kit's executor has a port that must not be asked.

    Optional members, read with `getattr`:
        native_call_ids = False: the framework has no call id.
        cancels_tool = False: a sync-only bridge; only the awaiter is cancelled, not the tool.
        native_uses_port = True, approval_port(): the native gate asks the `FakeApproval` which
            `approval_port()` gives; the kit sets its `answer` and counts its `requests`.
        port_asks = n: how often the deciding port is asked for one call; 1 when left out.
        export_all(registry, executor): the module's `*_tools(registry)`.
        __aenter__, __aexit__: one session (server, client) per test module.
        checks = {"C9", "C10", "C11", "C12", "C13", "C14", "C15"}: those of the further checks that
            the framework can be driven for.
        shown(raw) -> str: what the model reads of a result; needed by C9, C13 and C15.
        cannot_tell = {ending: reason}: endings of C15 that the framework cannot reach.
        call_many(native, calls) -> list: runs `calls`, a list of `(call_id, arguments)`, in one
            turn, gets their approvals answered, and gives raw results in that order; for C10.
        paused(native, args, call_id=) -> state: one call of a tool that asks, up to the framework's
            pause; its state as the framework stores or sends it; for C11.
        tampered(native, state, kind) -> state: a changed copy; `kind` is `"arguments"` (other
            ones), `"call-id"` (another), `"approved"` (as whatever the framework takes for an
            approval) or `"run"` (moved to another run); for C11.
        resumed(native, state): the run goes on from a copy of `state`, the port being asked where
            the wiring asks it; for C11.
        parallel = False: the framework runs the calls of one turn one after the other.
    """

    name: str
    edits_supported: bool
    approval: str

    def export(self, spec: ToolSpec, executor: ToolRunner) -> Any:
        """The native tool for `spec`, run by `executor`."""

    async def call(self, native: Any, args: dict[str, Any], *, call_id: str) -> Any:
        """One call through the framework; its result, or the exception it raises."""

    def value(self, raw: Any) -> Any:
        """The tool's value in a native result."""

    def is_error(self, raw: Any) -> bool:
        """Whether `raw`, a result or an exception that `call` raised, is the framework's error."""

    async def approve_flow(
        self, native: Any, args: dict[str, Any], decision: ApprovalDecision
    ) -> Any:
        """One call of a tool that asks, with `decision` for an answer; its raw result."""

    def describe(self, native: Any) -> tuple[str, str, dict[str, Any]]:
        """Name, description and schema as the framework will show them to a model."""

    def expected_schema(self, spec: ToolSpec) -> dict[str, Any]:
        """The schema that the framework ought to show for `spec`."""


async def check_exported(harness: Any, factory: RunnerFactory) -> None:
    """C1: name, description and the target's schema are exported; `targets` are honoured."""
    spec = Probe().adding()
    name, description, schema = harness.describe(harness.export(spec, factory()))
    expect(name == spec.name, "C1", f"exported as {name!r}, not {spec.name!r}")
    expect(description == spec.description, "C1", f"described as {description!r}")
    expected = harness.expected_schema(spec)
    expect(schema == expected, "C1", f"the schema is {schema!r}, not {expected!r}")
    if hasattr(harness, "export_all"):
        _check_targets(harness, factory)


def _check_targets(harness: Any, factory: RunnerFactory) -> None:
    registry = ToolRegistry()

    @registry.tool(targets=(harness.name,))
    def contract_ours() -> str:
        """Goes to this target."""
        return "ours"

    @registry.tool(targets=("contract-other",))
    def contract_other() -> str:
        """Goes to another target."""
        return "other"

    exported = list(harness.export_all(registry, factory()))
    names = [harness.describe(native)[0] for native in exported]
    expect(names == ["contract_ours"], "C1", f"targets are not honoured: exported {names}")


async def check_value(harness: Any, factory: RunnerFactory) -> None:
    """C2: the happy path returns what `spec.invoke` returns."""
    args = {"a": 2, "b": 3}
    expected = await Probe().adding().invoke(args)
    probe = Probe()
    native = harness.export(probe.adding(), factory())
    ended = await outcome_of(harness.call(native, args, call_id="call_contract_2"))
    expect(not ended.raised, "C2", f"the call raised {ended.raw!r}")
    expect(not harness.is_error(ended.raw), "C2", f"the call is an error: {ended.raw!r}")
    got = harness.value(ended.raw)
    expect(got == expected and type(got) is type(expected), "C2", f"{got!r} is not {expected!r}")
    expect(probe.calls == [args], "C2", f"the tool ran as {probe.calls!r}")


async def check_invalid(harness: Any, factory: RunnerFactory) -> None:
    """C3: invalid args give the framework's error, never a raw `pydantic.ValidationError`."""
    probe = Probe()
    native = harness.export(probe.adding(), factory())
    ended = await outcome_of(harness.call(native, {"a": "two"}, call_id="call_contract_3"))
    expect(not probe.calls, "C3", "the tool ran on invalid arguments")
    raw = any(isinstance(item, ValidationError) for item in _sides(ended.raw))
    text = _visible(harness, ended)
    expect(not raw, "C3", f"a raw ValidationError came out: {ended.raw!r}")
    expect("validation error for" not in text, "C3", f"pydantic's own text is shown: {text}")
    expect(harness.is_error(ended.raw), "C3", f"not the framework's error: {ended.raw!r}")


async def check_policy(harness: Any, factory: RunnerFactory) -> None:
    """C4: executor policy applies: hooks see before/after; a timeout is `tool-timeout`."""
    hook = RecordingHook()
    native = harness.export(Probe().adding(), factory(hooks=(hook,)))
    await outcome_of(harness.call(native, {"a": 2, "b": 3}, call_id="call_contract_4"))
    expected = [("before", "contract_add", {"a": 2, "b": 3}), ("after", "contract_add", 5)]
    expect(hook.seen == expected, "C4", f"the hooks saw {hook.seen!r}")
    native = harness.export(Probe().hanging(timeout=0.02), factory())
    ended = await outcome_of(harness.call(native, {}, call_id="call_contract_4t"))
    expect(harness.is_error(ended.raw), "C4", f"a timeout is not an error: {ended.raw!r}")
    kinds = {getattr(item, "kind", None) for item in _sides(ended.raw)}
    shown = "tool-timeout" in kinds or "tool-timeout" in _visible(harness, ended)
    expect(shown, "C4", f"a timeout is not `tool-timeout`: {ended.raw!r}")


async def check_call_id(harness: Any, factory: RunnerFactory) -> None:
    """C5: the native call id reaches `ctx.call_id`."""
    probe = Probe()
    native = harness.export(probe.adding(), factory())
    for call_id in ("call_contract_5a", "call_contract_5b"):
        await outcome_of(harness.call(native, {"a": 1, "b": 1}, call_id=call_id))
    ids = [ctx.call_id for ctx in probe.contexts]
    if getattr(harness, "native_call_ids", True):
        expected = ["call_contract_5a", "call_contract_5b"]
        expect(ids == expected, "C5", f"the tool saw the call ids {ids!r}, not {expected!r}")
    else:
        distinct = len(ids) == 2 and all(ids) and len(set(ids)) == 2
        expect(distinct, "C5", f"each call needs an id of its own, not {ids!r}")


async def check_approval(harness: Any, factory: RunnerFactory) -> None:
    """C6: `confirm=True`: deny skips the tool, approve runs it, edits apply when supported."""
    args, edited = {"a": 2, "b": 3}, {"a": 20, "b": 30}
    deny = ApprovalDecision.deny(reviewer="contract", reason="no")
    ended, _ = await _decided(harness, factory, args, deny)
    expect(harness.is_error(ended.raw), "C6", f"a denial is not an error: {ended.raw!r}")
    approve = ApprovalDecision.approve(reviewer="contract")
    ended, probe = await _decided(harness, factory, args, approve)
    expect(probe.calls == [args], "C6", f"an approved tool ran as {probe.calls!r}")
    got = harness.value(ended.raw)
    expect(got == 5, "C6", f"an approved tool gave {got!r}, not 5")
    edit = ApprovalDecision.approve(reviewer="contract", arguments=edited)
    ended, probe = await _decided(harness, factory, args, edit)
    if harness.edits_supported:
        expect(probe.calls == [edited], "C6", f"an edited call ran as {probe.calls!r}")
        expect(_result(harness.value(ended.raw)) == 50, "C6", f"an edited call gave {ended.raw!r}")
    else:
        expect(not probe.calls, "C6", f"an edit that cannot apply ran as {probe.calls!r}")
        expect(harness.is_error(ended.raw), "C6", f"a refused edit is no error: {ended.raw!r}")


def _result(value: Any) -> Any:
    """The tool's own value in what a model reads of a call whose arguments a person changed."""
    noted = isinstance(value, dict) and set(value) == {"note", "arguments", "result"}
    return value["result"] if noted else value


async def _decided(
    harness: Any, factory: RunnerFactory, args: dict[str, Any], decision: ApprovalDecision
) -> tuple[Outcome, Probe]:
    probe = Probe()
    by_executor, by_gate = ports_of(harness, decision)
    native = harness.export(probe.adding(confirm=True), factory(approval=by_executor))
    ended = await outcome_of(harness.approve_flow(native, dict(args), decision))
    expect(decision.approved or not probe.calls, "C6", "a denied tool ran")
    if by_executor is not by_gate:
        expect(not by_executor.requests, "C6", "the executor asked again after the native gate")
    if by_gate is not None:
        asked, expected = len(by_gate.requests), getattr(harness, "port_asks", 1)
        expect(asked == expected, "C6", f"the port was asked {asked} times, not {expected}")
    return ended, probe


async def check_cancelled(harness: Any, factory: RunnerFactory) -> None:
    """C7: `asyncio.CancelledError` propagates."""
    probe = Probe()
    native = harness.export(probe.hanging(), factory())
    task = asyncio.ensure_future(harness.call(native, {}, call_id="call_contract_7"))
    try:
        with anyio.move_on_after(support.PATIENCE):
            await probe.started()
        expect(bool(probe.calls), "C7", "the tool was never entered")
        task.cancel()
        await asyncio.wait({task}, timeout=support.PATIENCE)
        expect(task.done(), "C7", "the cancelled call goes on")
        expect(task.cancelled(), "C7", "the cancellation was turned into a result or an error")
        if getattr(harness, "cancels_tool", True):
            expect(probe.cancelled, "C7", "the tool did not see the cancellation")
    finally:
        probe.release()
        task.cancel()
        await asyncio.wait({task}, timeout=support.PATIENCE)


async def check_discovered(harness: Any, factory: RunnerFactory) -> None:
    """C8: `get_integration(name)` finds the integration through its entry point."""
    entries = [entry for entry in entry_points(group=GROUP) if entry.name == harness.name]
    expect(bool(entries), "C8", f"no entry point {harness.name!r} in the group {GROUP!r}")
    found = get_integration(harness.name)
    expect(isinstance(found, Integration), "C8", f"{found!r} is not an Integration")
    expect(found.name == harness.name, "C8", f"it is named {found.name!r}")
    targets = [entry.load() for entry in entries]
    ours = any(found is item or type(found) is item for item in targets)
    expect(ours, "C8", f"{found!r} is not what the entry point names")


def _sides(raw: Any) -> list[Any]:
    """A result and the exceptions it may carry."""
    names = ("error", "exception", "__cause__")
    return [raw, *(getattr(raw, name, None) for name in names)]


def _visible(harness: Any, ended: Outcome) -> str:
    if ended.raised:
        return repr(ended.raw)
    shown = getattr(harness, "shown", None)
    if shown is not None:
        return str(shown(ended.raw))
    return json.dumps(ended.raw, default=repr)


CHECKS: dict[str, Check] = {
    "C1": check_exported,
    "C2": check_value,
    "C3": check_invalid,
    "C4": check_policy,
    "C5": check_call_id,
    "C6": check_approval,
    "C7": check_cancelled,
    "C8": check_discovered,
}
"""The checks that every harness runs, by number."""


def checks_of(harness_class: Any) -> dict[str, Check]:
    """The checks for one harness: C1 to C8, and those that it declares in `checks`."""
    declared = set(getattr(harness_class, "checks", ())) - set(CHECKS)
    if not declared:
        return CHECKS
    # Not imported above: a package that copied only the files of C1 to C8 lacks this one.
    from ._kit_declared import DECLARED

    unknown = sorted(declared - set(DECLARED))
    if unknown:
        known = ", ".join([*CHECKS, *DECLARED])
        raise ValueError(f"{harness_class.__name__}.checks names {unknown}; there are {known}")
    return CHECKS | {number: DECLARED[number] for number in DECLARED if number in declared}


@asynccontextmanager
async def harness_session(harness_class: Callable[[], Any]) -> AsyncIterator[Any]:
    """One harness, entered and left where it is an async context manager."""
    harness = harness_class()
    if not hasattr(harness, "__aenter__"):
        yield harness
        return
    async with harness:
        yield harness


def contract_tests(
    harness_class: Callable[[], Any],
    runner_factory: RunnerFactory = FakeRunner,
    *,
    label: str | None = None,
) -> tuple[Any, ...]:
    """`(fixture, *tests)` for one harness, run by what `runner_factory` makes.

    Names end in `label`, by default the factory's name for any but `FakeRunner`, so that one module
    can hold several sets.
    """
    if label is None:
        label = "" if runner_factory is FakeRunner else runner_factory.__name__.lower()
    suffix = f"_{label}" if label else ""
    fixture = f"contract_harness{suffix}"
    checks = checks_of(harness_class)
    tests = (_test(number, checks[number], fixture, suffix, runner_factory) for number in checks)
    return (_fixture(fixture, harness_class), *tests)


def _fixture(name: str, harness_class: Callable[[], Any]) -> Any:
    async def opened(anyio_backend: Any) -> AsyncIterator[Any]:
        async with harness_session(harness_class) as harness:
            yield harness

    opened.__name__ = name
    opened.__doc__ = "The harness under test, held open for the module."
    return pytest.fixture(scope="module", name=name)(opened)


def _test(number: str, check: Check, fixture: str, suffix: str, factory: RunnerFactory) -> Any:
    async def test(**fixtures: Any) -> None:
        await check(fixtures[fixture], factory)

    # pytest reads the arguments from the signature; the fixture's name is known only here.
    parameter = inspect.Parameter(fixture, inspect.Parameter.KEYWORD_ONLY)
    test.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]  # see above
    subject = check.__name__.removeprefix("check_")
    test.__name__ = f"test_{number.lower()}_{subject}{suffix}"
    test.__doc__ = check.__doc__
    only_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"], scope="module")
    return only_asyncio(pytest.mark.anyio(test))
