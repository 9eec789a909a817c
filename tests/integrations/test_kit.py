"""The contract kit: a sound adapter passes, an adapter broken in one way fails that very check."""

# ruff: noqa: D102  # what each method of a harness does is said by its protocol

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import traceback
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    ApprovalDenied,
    ApprovalPending,
    GuardrailBlocked,
    ToolArgsInvalid,
    ToolFailed,
    ToolTimeout,
)
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.integrations.base import model_visible_error

from ..fakes.approval import FakeApproval
from ..fakes.hooks import RaisingHook, RecordingHook
from . import _kit_support as support
from ._demo import demo_on_path
from ._kit_declared import DECLARED
from ._kit_support import FakeRunner, Probe, outcome_of, spec_for
from ._sound import (
    Call,
    GatedHarness,
    Native,
    SequentialHarness,
    SoundHarness,
    SoundIntegration,
    ThreadedHarness,
    call_in,
)
from .kit import CHECKS, checks_of, contract_tests, harness_session

pytestmark = pytest.mark.anyio

ALL = CHECKS | DECLARED


@pytest.fixture(scope="module", autouse=True)
def demo_installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """C8 has an entry point to find."""
    with demo_on_path(tmp_path_factory.mktemp("metadata")):
        yield


def exporting(**changes: Any) -> Any:
    """A harness whose native tools have other attributes than they ought to have."""

    class Changed(SoundHarness):
        def export(self, spec: Any, executor: Any) -> Any:
            native = super().export(spec, executor)
            for name, change in changes.items():
                setattr(native, name, change(getattr(native, name)))
            return native

    return Changed


def running(run: Any) -> Any:
    """A harness whose native tools do `run(spec, executor, call)`."""

    class Changed(SoundHarness):
        def export(self, spec: Any, executor: Any) -> Any:
            async def replaced(call: Call) -> Any:
                return await run(spec, executor, call)

            return Native(spec.name, spec.description, spec.json_schema(), replaced)

    return Changed


def answering(change: Any) -> Any:
    """A harness in which `change` is applied to every raw result."""

    class Changed(SoundHarness):
        async def call(self, native: Any, args: dict[str, Any], *, call_id: str) -> Any:
            return change(await super().call(native, args, call_id=call_id))

    return Changed


async def bound(executor: Any, spec: Any, call: Call, **fields: Any) -> Any:
    """What a sound bridge does, with `fields` set in its context."""
    ctx = ToolContext(**({"call_id": call.id, "bound_by": "demo"} | fields))
    try:
        return await executor.run_spec(spec, call.arguments, ctx, call_id=ctx.call_id)
    except (ToolFailed, ToolTimeout, ToolArgsInvalid, ApprovalDenied, GuardrailBlocked) as exc:
        return model_visible_error(exc)


def with_title(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema to which a bridge added something."""
    return schema | {"title": "contract"}


class IgnoresTargets(SoundHarness):
    """Exports tools of other targets."""

    def export_all(self, registry: Any, executor: Any) -> list[Any]:
        return [self.export(spec, executor) for spec in registry]


async def validates_itself(spec: Any, executor: Any, call: Call) -> Any:
    """Lets a raw ValidationError out."""
    return TypeAdapter(int).validate_python(call.arguments.get("a"))


async def shows_pydantic(spec: Any, executor: Any, call: Call) -> Any:
    """Shows pydantic's own text."""
    try:
        return await validates_itself(spec, executor, call)
    except ValidationError as exc:
        return {"error": {"kind": "tool-args-invalid", "message": str(exc)}}


async def drops_invalid(spec: Any, executor: Any, call: Call) -> Any:
    """Repairs invalid arguments instead of refusing them."""
    call.arguments = {"a": 0, "b": 0}
    return await bound(executor, spec, call)


async def invokes(spec: Any, executor: Any, call: Call) -> Any:
    """Goes around the runner."""
    return await spec.invoke(call.arguments, ToolContext(call_id=call.id))


async def renames_kinds(spec: Any, executor: Any, call: Call) -> Any:
    """Gives every error the same kind."""
    raw = await bound(executor, spec, call)
    return {"error": {"kind": "error", "message": "failed"}} if isinstance(raw, dict) else raw


async def forgets_the_id(spec: Any, executor: Any, call: Call) -> Any:
    """Makes an id of its own."""
    return await bound(executor, spec, call, call_id="call_same")


async def approves_itself(spec: Any, executor: Any, call: Call) -> Any:
    """Puts a decision of its own in the context."""
    return await bound(executor, spec, call, approval=ApprovalDecision.approve())


async def asks_twice(spec: Any, executor: Any, call: Call) -> Any:
    """Asks the port, and lets the executor ask it again."""
    if spec.confirm:
        ctx = ToolContext(call_id=call.id)
        await executor.approval.request(support.request_for(spec, call.arguments, ctx))
    return await bound(executor, spec, call)


async def drops_edits(spec: Any, executor: Any, call: Call) -> Any:
    """Takes the decision and leaves the edits."""
    if not spec.confirm:
        return await bound(executor, spec, call)
    ctx = ToolContext(call_id=call.id)
    decision = await executor.approval.request(support.request_for(spec, call.arguments, ctx))
    plain = ApprovalDecision(verdict=decision.verdict)
    return await bound(executor, spec, call, approval=plain)


class DeniesSoftly(SoundHarness):
    """Makes a denial look like a result."""

    async def approve_flow(self, native: Any, args: Any, decision: Any) -> Any:
        raw = await super().approve_flow(native, args, decision)
        return "denied" if self.is_error(raw) else raw


class AppliesUnsupportedEdits(SoundHarness):
    """Says that edits do not apply, and applies them."""

    edits_supported = False


class AsksTheExecutorToo(GatedHarness):
    """A native gate whose decision never reaches the executor."""

    def export(self, spec: Any, executor: Any) -> Any:
        gated = self.integration.export_tool(spec, executor=executor)
        sound = SoundIntegration().export_tool(spec, executor=executor)

        async def run(call: Call) -> Any:
            raw = await gated.run(call)
            return await sound.run(call) if spec.confirm else raw

        return Native(spec.name, spec.description, spec.json_schema(), run)


async def swallows_cancellation(spec: Any, executor: Any, call: Call) -> Any:
    """Makes a result of a cancellation."""
    try:
        return await bound(executor, spec, call)
    except BaseException as exc:
        return model_visible_error(exc)


async def shields_the_tool(spec: Any, executor: Any, call: Call) -> Any:
    """Is cancelled and leaves the tool running."""
    return await asyncio.shield(asyncio.ensure_future(bound(executor, spec, call)))


class NotRegistered(SoundHarness):
    """Has no entry point."""

    name = "not-registered"


async def shows_the_traceback(spec: Any, executor: Any, call: Call) -> Any:
    """Shows what a framework shows when the exception is handed to it."""
    ctx = ToolContext(call_id=call.id)
    try:
        return await executor.run_spec(spec, call.arguments, ctx, call_id=call.id)
    except ToolFailed:
        return {"error": {"kind": "tool-failed", "message": traceback.format_exc()}}
    except GuardrailBlocked as exc:
        return model_visible_error(exc)


async def shows_the_hook(spec: Any, executor: Any, call: Call) -> Any:
    """Hides a tool's exception, and shows a hook's."""
    ctx = ToolContext(call_id=call.id)
    try:
        return await executor.run_spec(spec, call.arguments, ctx, call_id=call.id)
    except GuardrailBlocked as exc:
        return {"error": {"kind": exc.kind, "message": str(exc.__cause__)}}
    except ToolFailed as exc:
        return model_visible_error(exc)


async def hides_failures(spec: Any, executor: Any, call: Call) -> Any:
    """Makes a plain result of a failure."""
    raw = await bound(executor, spec, call)
    return "something went wrong" if isinstance(raw, dict) else raw


def shared_context() -> Any:
    """A harness whose calls share one context."""
    ctx = ToolContext(bound_by="demo")

    async def run(spec: Any, executor: Any, call: Call) -> Any:
        try:
            return await executor.run_spec(spec, call.arguments, ctx, call_id=call.id)
        except ApprovalDenied as exc:
            return model_visible_error(exc)

    return running(run)


class AnswersInFinishingOrder(SoundHarness):
    """Gives the results of one turn in the order in which they came."""

    async def call_many(self, native: Any, calls: Any) -> list[Any]:
        turn = [asyncio.ensure_future(self.call(native, a, call_id=i)) for i, a in calls]
        return [await done for done in asyncio.as_completed(turn)]


class ClaimsToBeParallel(SequentialHarness):
    """Runs one call after the other and says nothing of it."""

    parallel = True


def one_approval_for_all() -> Any:
    """A harness that takes the first decision of a turn for every call."""
    decisions: list[Any] = []

    async def run(spec: Any, executor: Any, call: Call) -> Any:
        if not decisions:
            ctx = ToolContext(call_id=call.id)
            request = support.request_for(spec, call.arguments, ctx)
            decisions.append(await executor.approval.request(request))
        return await bound(executor, spec, call, approval=decisions[0])

    return running(run)


class KeepsItsCalls(SoundHarness):
    """Base of those that hold back what a pause was about."""

    def export(self, spec: Any, executor: Any) -> Any:
        self.spec, self.executor = spec, executor
        return super().export(spec, executor)

    async def decided(self, call: Call) -> Any:
        """What the port says about a call."""
        ctx = ToolContext(call_id=call.id, run_id=call.run)
        request = support.request_for(self.spec, call.arguments, ctx)
        return await self.executor.approval.request(request)

    async def run(self, call: Call, decision: Any) -> Any:
        """Runs a call with a decision."""
        return await bound(self.executor, self.spec, call, run_id=call.run, approval=decision)


class RunsAtThePause(KeepsItsCalls):
    """Runs the tool and then says that it waits."""

    async def paused(self, native: Any, args: Any, *, call_id: str) -> str:
        state = await super().paused(native, args, call_id=call_id)
        await self.run(call_in(state), ApprovalDecision.approve())
        return state


class NeverGoesOn(SoundHarness):
    """Forgets a call that was approved."""

    async def resumed(self, native: Any, state: str) -> Any:
        return None


class TrustsTheState(KeepsItsCalls):
    """Takes the word of a serialised state for an approval."""

    async def resumed(self, native: Any, state: str) -> Any:
        if not json.loads(state)["approved"]:
            return await super().resumed(native, state)
        return await self.run(call_in(state), ApprovalDecision.approve())


class AsksAboutTheOld(KeepsItsCalls):
    """Asks about the call that paused, and runs the one that came back, changed in one field."""

    field = ""

    async def paused(self, native: Any, args: Any, *, call_id: str) -> str:
        self.state = await super().paused(native, args, call_id=call_id)
        return self.state

    async def resumed(self, native: Any, state: str) -> Any:
        asked, runs = call_in(self.state), call_in(self.state)
        setattr(runs, self.field, getattr(call_in(state), self.field))
        return await self.run(runs, await self.decided(asked))


def binding_all_but(name: str) -> Any:
    """A harness whose approvals are bound to everything but one field of the call."""
    return type(f"Unbound{name}", (AsksAboutTheOld,), {"field": name})


class KeepsTheDecision(KeepsItsCalls):
    """Takes one decision for every resumption of a state."""

    def __init__(self) -> None:
        self.decisions: dict[str, Any] = {}

    async def resumed(self, native: Any, state: str) -> Any:
        if state not in self.decisions:
            self.decisions[state] = await self.decided(call_in(state))
        return await self.run(call_in(state), self.decisions[state])


async def makes_strings(spec: Any, executor: Any, call: Call) -> Any:
    """Makes a text of every number."""
    call.arguments = {k: str(v) if type(v) is int else v for k, v in call.arguments.items()}
    return await bound(executor, spec, call)


async def rewrites_strings(spec: Any, executor: Any, call: Call) -> Any:
    """Makes what it likes of the texts "none" and "null", as Agno does."""
    args = {k: "" if v in ("none", "null") else v for k, v in call.arguments.items()}
    return await bound(executor, spec, Call(call.id, args))


def without_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose references lead nowhere."""
    return {name: value for name, value in schema.items() if name != "$defs"}


class ShowsPython(SoundHarness):
    """Shows the `str` of a result."""

    def shown(self, raw: Any) -> str:
        return str(raw)


class ShowsNothingForNone(SoundHarness):
    """Shows an empty text where the tool gave nothing."""

    def shown(self, raw: Any) -> str:
        return "" if raw is None else super().shown(raw)


class CutsText(SoundHarness):
    """Cuts a long text."""

    def shown(self, raw: Any) -> str:
        return super().shown(raw)[:100_000]


class LeavesOutTheAdvice(SoundHarness):
    """Shows a model the first part of a message only."""

    def shown(self, raw: Any) -> str:
        return super().shown(raw).split(";")[0]


class DeclaresNoReason(SoundHarness):
    """Leaves an ending out without saying why."""

    cannot_tell = MappingProxyType({"expired": ""})


class CopiesTheRunner(SoundHarness):
    """Copies what it is given, deeply, as AG2 does at registration."""

    def export(self, spec: Any, executor: Any) -> Any:
        return super().export(spec, copy.deepcopy(executor))


class CopiesTheRunnerFlat(SoundHarness):
    """Copies the runner without its parts."""

    def export(self, spec: Any, executor: Any) -> Any:
        return super().export(spec, copy.copy(executor))


class CopiesTheSpec(SoundHarness):
    """Runs a copy of the spec."""

    def export(self, spec: Any, executor: Any) -> Any:
        return super().export(spec.replace(description=spec.description), executor)


class SharesTheSchema(SoundHarness):
    """Hands out one schema for every export of a tool."""

    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}

    def export(self, spec: Any, executor: Any) -> Any:
        native = super().export(spec, executor)
        native.schema = self.schemas.setdefault(spec.name, native.schema)
        return native


BROKEN: list[tuple[str, Any, str]] = [
    ("C1", exporting(name=str.upper), "exported as"),
    ("C1", exporting(description=lambda text: text[:5]), "described as"),
    ("C1", exporting(schema=with_title), "the schema is"),
    ("C1", IgnoresTargets, "targets are not honoured"),
    ("C2", answering(str), "is not 5"),
    ("C2", answering(float), "is not 5"),
    ("C2", answering(lambda raw: {"error": raw}), "is an error"),
    ("C3", running(validates_itself), "raw ValidationError"),
    ("C3", running(shows_pydantic), "pydantic's own text"),
    ("C3", running(drops_invalid), "ran on invalid arguments"),
    ("C3", answering(str), "not the framework's error"),
    ("C4", running(invokes), "the hooks saw"),
    ("C4", running(renames_kinds), "not `tool-timeout`"),
    ("C4", answering(lambda raw: raw if isinstance(raw, int) else "late"), "not an error"),
    ("C5", running(forgets_the_id), "saw the call ids"),
    ("C6", running(invokes), "a denied tool ran"),
    ("C6", running(approves_itself), "a denied tool ran"),
    ("C6", running(asks_twice), "asked 2 times"),
    ("C6", running(drops_edits), "an edited call ran as"),
    ("C6", DeniesSoftly, "a denial is not an error"),
    ("C6", AppliesUnsupportedEdits, "an edit that cannot apply"),
    ("C6", AsksTheExecutorToo, "the executor asked again"),
    ("C7", running(swallows_cancellation), "turned into a result"),
    ("C7", running(shields_the_tool), "did not see the cancellation"),
    ("C8", NotRegistered, "no entry point 'not-registered'"),
    ("C9", running(shows_the_traceback), "the model reads"),
    ("C9", running(shows_the_hook), "the model reads"),
    ("C9", running(hides_failures), "not an error"),
    ("C10", shared_context(), "C10"),
    ("C10", AnswersInFinishingOrder, "C10"),
    ("C10", ClaimsToBeParallel, "did not end within"),
    ("C10", one_approval_for_all(), "C10"),
    ("C11", RunsAtThePause, "ran before it was approved"),
    ("C11", NeverGoesOn, r"an approved pause ran as \[\]"),
    ("C11", TrustsTheState, "approved: ran without the port"),
    ("C11", KeepsTheDecision, "replayed: ran without the port"),
    ("C11", binding_all_but("arguments"), "arguments: ran without the port"),
    ("C11", binding_all_but("id"), "call-id: ran without the port"),
    ("C11", binding_all_but("run"), "run: ran without the port"),
    ("C12", exporting(schema=without_definitions), "the schema is"),
    ("C12", running(makes_strings), "the tool ran 0 times"),
    ("C12", running(rewrites_strings), "text came as ''"),
    ("C13", ShowsPython, "the model reads"),
    ("C13", ShowsNothingForNone, "none: the model reads"),
    ("C13", CutsText, "large-text: the model reads"),
    ("C14", CopiesTheRunner, "cannot pickle"),
    ("C14", CopiesTheRunnerFlat, "the executor that was given ran 0 calls"),
    ("C14", CopiesTheSpec, "the spec was copied"),
    ("C14", SharesTheSchema, "a second export shows"),
    ("C15", LeavesOutTheAdvice, "denied: the model reads"),
    ("C15", DeclaresNoReason, "expired: no reason"),
]


@pytest.mark.parametrize(("number", "harness_class", "message"), BROKEN)
async def test_a_broken_adapter_fails_its_check(
    number: str, harness_class: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each check fails on an adapter that is broken in just its way, and says how."""
    monkeypatch.setattr(support, "PATIENCE", 0.3)
    with pytest.raises((AssertionError, TypeError), match=message):
        await ALL[number](harness_class(), FakeRunner)


def test_every_check_has_a_broken_adapter() -> None:
    """No check of the kit is without an adapter that fails it."""
    assert {number for number, _, _ in BROKEN} == set(ALL)


SOUND = [SoundHarness, GatedHarness, ThreadedHarness, SequentialHarness]


@pytest.mark.parametrize("harness_class", SOUND)
@pytest.mark.parametrize("number", [number for number in ALL if number != "C8"])
async def test_a_sound_adapter_passes(number: str, harness_class: Any) -> None:
    """Sound adapters of every kind pass: a port, a native gate, threads without ids, one by one."""
    if number == "C10" and harness_class is ThreadedHarness:
        harness_class = type("OneByOne", (ThreadedHarness, SequentialHarness), {})
    await ALL[number](harness_class(), FakeRunner)


async def test_c8_wants_the_object_of_the_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """C8 fails where the name leads to another object than the entry point names."""
    monkeypatch.setattr("tests.integrations.kit.get_integration", lambda name: SoundIntegration())
    with pytest.raises(AssertionError, match="not what the entry point names"):
        await ALL["C8"](SoundHarness(), FakeRunner)


async def test_native_call_ids_false_wants_distinct_ids() -> None:
    """`native_call_ids = False`: any id will do, but each call has its own."""
    harness = running(forgets_the_id)()
    harness.native_call_ids = False
    with pytest.raises(AssertionError, match="an id of its own"):
        await ALL["C5"](harness, FakeRunner)


async def test_cancels_tool_false_asks_for_the_awaiter_only() -> None:
    """`cancels_tool = False`: C7 passes where only the awaiter is cancelled."""
    harness = running(shields_the_tool)()
    harness.cancels_tool = False
    await ALL["C7"](harness, FakeRunner)


async def test_port_asks_pins_the_number_of_asks() -> None:
    """`port_asks`: a gate that asks once fails where two asks are declared."""
    harness = GatedHarness()
    harness.port_asks = 2
    with pytest.raises(AssertionError, match="asked 1 times, not 2"):
        await ALL["C6"](harness, FakeRunner)


async def test_export_all_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    """`export_all`: without it C1 checks one tool only."""
    monkeypatch.delattr(SoundHarness, "export_all")
    await ALL["C1"](SoundHarness(), FakeRunner)


async def test_a_session_enters_and_leaves_the_harness() -> None:
    """`__aenter__`/`__aexit__`: `harness_session` holds one session open."""
    steps: list[str] = []

    class Session(SoundHarness):
        async def __aenter__(self) -> Any:
            steps.append("enter")
            return self

        async def __aexit__(self, *exc: object) -> None:
            steps.append("leave")

    async with harness_session(Session) as harness:
        assert isinstance(harness, Session)
        assert steps == ["enter"]
    assert steps == ["enter", "leave"]


def test_contract_tests_gives_the_fixture_first() -> None:
    """`(fixture, *tests)`: marks go on the tests, each of which has its check's sentence."""
    fixture, *tests = contract_tests(SoundHarness)
    assert fixture.__name__ == "contract_harness"
    assert len(tests) == len(ALL)
    assert [test.__doc__ for test in tests] == [check.__doc__ for check in ALL.values()]
    assert all(inspect.iscoroutinefunction(pytest.mark.slow(test)) for test in tests)


def test_two_sets_have_names_of_their_own() -> None:
    """A set with another runner, or a label, can stand beside the first in one module."""

    class Other(FakeRunner):
        pass

    names = [
        {item.__name__ for item in contract_tests(SoundHarness, runner, label=label)}
        for runner, label in ((FakeRunner, None), (Other, None), (FakeRunner, "x"))
    ]
    assert len(set.union(*names)) == sum(map(len, names))


def test_only_declared_checks_are_added() -> None:
    """A harness without `checks` gets C1 to C8; an unknown number is an error that lists them."""

    class Bare(SoundHarness):
        checks = frozenset()

    class Wrong(SoundHarness):
        checks = frozenset({"C99"})

    assert list(checks_of(Bare)) == ["C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8"]
    with pytest.raises(ValueError, match=r"C99.*C15"):
        checks_of(Wrong)


def greet(name: str) -> str:
    """Says hello."""
    if name == "nobody":
        raise LookupError("secret text")
    return f"hello {name}"


async def test_the_fake_runner_keeps_what_it_was_handed() -> None:
    """`FakeRunner.calls` has spec, arguments, context and id of each call."""
    runner, spec, ctx, args = FakeRunner(), spec_for(greet), ToolContext(), {"name": "x"}
    assert await runner.run_spec(spec, args, ctx, call_id="call_1") == "hello x"
    (call,) = runner.calls
    assert (call.spec, call.args, call.ctx, call.call_id) == (spec, args, ctx, "call_1")


async def test_the_fake_runner_hides_foreign_exceptions() -> None:
    """A tool's exception becomes `ToolFailed`, which names only its class."""
    with pytest.raises(ToolFailed) as caught:
        await FakeRunner().run_spec(spec_for(greet), {"name": "nobody"})
    assert "LookupError" in str(caught.value) and "secret" not in str(caught.value)
    assert isinstance(caught.value.__cause__, LookupError)


async def test_the_fake_runner_runs_hooks_on_copies() -> None:
    """Hooks may change arguments and results; one that raises blocks the call."""

    class Shouting(RecordingHook):
        def before(self, call: Any) -> Any:
            return {"name": call.arguments["name"].upper()}

        async def after(self, call: Any, result: Any) -> Any:
            return result + "!"

    runner = FakeRunner(hooks=(Shouting(),))
    assert await runner.run_spec(spec_for(greet), {"name": "x"}) == "hello X!"
    runner = FakeRunner(hooks=(RaisingHook("before", ValueError("secret")),))
    with pytest.raises(GuardrailBlocked, match=r"a hook failed: ValueError$"):
        await runner.run_spec(spec_for(greet), {"name": "x"})


@pytest.mark.parametrize(
    ("approval", "error"),
    [
        (None, ApprovalDenied),
        (FakeApproval(), ApprovalDenied),
        (FakeApproval(ApprovalDecision.deny()), ApprovalDenied),
        (FakeApproval(ApprovalDecision.pending("apr_1")), ApprovalPending),
    ],
)
async def test_the_fake_runner_asks(approval: Any, error: type[Exception]) -> None:
    """No port, a port that fails and a denial are `ApprovalDenied`; an open answer is pending."""
    with pytest.raises(error):
        await FakeRunner(approval=approval).run_spec(spec_for(greet, confirm=True), {"name": "x"})


async def test_the_fake_runner_takes_a_bound_decision_only() -> None:
    """A decision in the context counts where an integration bound it, and nowhere else."""
    spec, args = spec_for(greet, confirm=True), {"name": "x"}
    approved = ApprovalDecision.approve(arguments={"name": "edited"})
    ctx = ToolContext(approval=approved, bound_by="demo")
    assert await FakeRunner().run_spec(spec, args, ctx) == "hello edited"
    with pytest.raises(ApprovalDenied):
        await FakeRunner().run_spec(spec, args, ToolContext(approval=approved))


async def test_the_fake_runner_evaluates_a_confirm_rule() -> None:
    """A callable rule decides by the arguments whether anybody is asked."""
    spec = spec_for(greet, confirm=lambda args, ctx: args["name"] == "boss")
    assert await FakeRunner().run_spec(spec, {"name": "x"}) == "hello x"
    with pytest.raises(ApprovalDenied):
        await FakeRunner().run_spec(spec, {"name": "boss"})


async def test_an_outcome_is_a_result_or_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    """`outcome_of` keeps what a call raised, and does not wait for ever."""
    monkeypatch.setattr(support, "PATIENCE", 0.01)
    assert (await outcome_of(asyncio.sleep(0, "x"))).raw == "x"
    ended = await outcome_of(validates_itself(None, None, Call("", {"a": "x"})))
    assert ended.raised and isinstance(ended.raw, ValidationError)
    with pytest.raises(AssertionError, match=r"did not end within 0\.01 s"):
        await outcome_of(asyncio.Event().wait())


async def test_a_probe_is_released_from_any_loop() -> None:
    """`Probe.release` ends a tool that hangs in the loop of another thread."""
    probe = Probe()
    spec = probe.hanging()
    thread = asyncio.ensure_future(asyncio.to_thread(asyncio.run, spec.invoke({}, ToolContext())))
    await probe.started()
    probe.release()
    assert await thread == "released"
