"""`IntegrationBase`: ids, marks, errors and requirements."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    AgentAdapterError,
    ApprovalDenied,
    ApprovalPending,
    GuardrailBlocked,
    IntegrationError,
    MissingDependency,
    RunLimitExceeded,
    ToolArgsInvalid,
    ToolError,
    ToolNotFound,
)
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.integrations import base
from agent_adapter.integrations.base import (
    MODEL_VISIBLE_ERRORS,
    FlowCompiler,
    Integration,
    IntegrationBase,
    ToolImporter,
    ToolRunner,
    model_visible_error,
)

from ._kit_support import FakeRunner, spec_for

pytestmark = pytest.mark.anyio


@dataclass
class Native:
    """A native call with several candidates for an id."""

    id: Any = None
    request_id: Any = None


class Plain(IntegrationBase):
    """The least an integration writes."""

    name = "plain"
    call_id_fields = ("id", "request_id")

    def export_tool(self, spec: Any, *, executor: ToolRunner | None = None) -> Any:
        """A pair that tests can look into."""
        return spec.name, executor


class Raising:
    """A runner whose every call raises `error`."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def run_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Raises."""
        raise self.error


def greet() -> str:
    """Says hello."""
    return "hello"


def test_it_has_the_members_of_the_protocol() -> None:
    """A subclass with a name and `export_tool` is an `Integration`, and compiles no flows."""
    assert isinstance(Plain(), Integration)
    assert not isinstance(Plain(), FlowCompiler)
    assert not isinstance(Plain(), ToolImporter)


def test_export_tool_must_be_written() -> None:
    """A subclass without `export_tool` cannot be made; the error names the method."""

    class Unfinished(IntegrationBase):
        name = "unfinished"

    with pytest.raises(TypeError, match="export_tool"):
        Unfinished()  # type: ignore[abstract]  # that is what is tested


def test_export_tools_honours_targets() -> None:
    """`export_tools(registry)` exports what names this target, or no target."""
    registry = ToolRegistry()

    @registry.tool(targets=("plain",))
    def ours() -> str:
        """Goes here."""
        return ""

    @registry.tool(targets=("other",))
    def theirs() -> str:
        """Goes elsewhere."""
        return ""

    @registry.tool
    def everybodys() -> str:
        """Goes everywhere."""
        return ""

    runner = FakeRunner()
    exported = Plain().export_tools(registry, executor=runner)
    assert exported == [("ours", runner), ("everybodys", runner)]


@pytest.mark.parametrize(
    ("native", "call_id"),
    [
        (Native(id="call_1"), "call_1"),
        (Native(request_id="r"), "r"),
        (Native(id="", request_id="r"), "r"),
        ({"id": "call_2"}, "call_2"),
        ({"request_id": 7}, "7"),
        (Native(id=0), "0"),
    ],
)
def test_bind_context_reads_the_native_id(native: Any, call_id: str) -> None:
    """The first of `call_id_fields` that holds an id, as attribute or key, is `ctx.call_id`."""
    assert Plain().bind_context(native).call_id == call_id


@pytest.mark.parametrize("native", [Native(), {}, None, object()])
def test_bind_context_makes_an_id(native: Any) -> None:
    """A native call without an id gets a new one, never the same twice."""
    first, second = (Plain().bind_context(native).call_id for _ in range(2))
    assert first is not None and first.startswith("call_")
    assert first != second


def test_bind_context_says_who_bound_it() -> None:
    """A bound context names its integration and says whether the framework runs calls again."""

    class Again(Plain):
        reexecutes = True

    ctx = Again().bind_context(Native(id="x"))
    assert (ctx.bound_by, ctx.reexecutes) == ("plain", True)
    assert Plain().bind_context(Native(id="x")).reexecutes is False


def test_bind_approval_leaves_it_to_the_executor() -> None:
    """`bind_approval` is `None`: the executor's own port decides."""
    assert Plain().bind_approval(object()) is None  # type: ignore[arg-type]  # any port


async def test_run_bound_hands_the_call_over() -> None:
    """`_run_bound` runs the spec through the runner, with the native id in both places."""
    runner, spec = FakeRunner(), spec_for(greet)
    assert await Plain()._run_bound(Native(id="call_7"), spec, {}, runner) == "hello"
    (call,) = runner.calls
    assert call.spec is spec
    assert call.ctx is not None and call.ctx.call_id == call.call_id == "call_7"


async def test_run_bound_marks_any_context() -> None:
    """A subclass that makes its own context still gets it marked, and an id where it has none."""

    class Own(Plain):
        def bind_context(self, native: Any) -> ToolContext:
            return ToolContext(approval=ApprovalDecision.deny(reason="gate"))

    runner = FakeRunner()
    raw = await Own()._run_bound(None, spec_for(greet), {}, runner)
    assert raw == model_visible_error(ApprovalDenied("gate"))
    ctx = runner.calls[0].ctx
    assert ctx is not None and ctx.bound_by == "plain" and ctx.call_id


VISIBLE = [
    ToolArgsInvalid("greet", ["a: missing"]),
    ToolError("no such order"),
    ApprovalDenied("no"),
    GuardrailBlocked("no"),
    RunLimitExceeded("no more calls"),
]


@pytest.mark.parametrize("error", VISIBLE, ids=lambda error: error.kind)
async def test_model_visible_errors_come_back(error: AgentAdapterError) -> None:
    """Each of the five classes a model may read comes back as `{"error": {kind, message}}`."""
    raw = await Plain()._run_bound(Native(), spec_for(greet), {}, Raising(error))
    assert raw["error"]["kind"] == error.kind and raw["error"].keys() == {"kind", "message"}
    assert raw["error"]["message"].startswith(str(error))


def test_model_visible_errors_are_five() -> None:
    """`MODEL_VISIBLE_ERRORS` lists exactly the five classes."""
    assert {type(error) for error in VISIBLE} == set(MODEL_VISIBLE_ERRORS)


@pytest.mark.parametrize(
    "error",
    [
        ApprovalPending("apr_1"),
        ToolNotFound("no tool"),
        IntegrationError("bad"),
        RuntimeError("foreign"),
        asyncio.CancelledError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_every_other_exception_propagates(error: BaseException) -> None:
    """What is not for the model leaves `_run_bound` as it is, cancellation too."""
    with pytest.raises(type(error)) as caught:
        await Plain()._run_bound(Native(), spec_for(greet), {}, Raising(error))
    assert caught.value is error


def test_a_foreign_exception_shows_its_class_only() -> None:
    """`model_visible_error` never shows the text of an exception that is not ours."""
    shown = model_visible_error(ValueError("secret"))
    assert shown == {"error": {"kind": "tool-failed", "message": "ValueError"}}


class Needy(Plain):
    """Needs modules that a test may take away."""

    name = "needy"
    requires = ("json", "needy_root.part")
    extra = "needy"


def test_require_passes_when_everything_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """`require` says nothing where all of `requires` can be imported."""
    for name in ("needy_root", "needy_root.part"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    Needy().require()


def test_require_names_the_package_and_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing framework is `MissingDependency` with the plug-in's own pip command."""
    monkeypatch.setattr(base, "_distribution_of", lambda root: "needy-plugin")
    with pytest.raises(MissingDependency) as caught:
        Needy().require()
    text = str(caught.value)
    assert "needy needs needy_root.part" in text
    assert 'pip install "needy-plugin[needy]"' in text


def test_require_without_a_known_distribution() -> None:
    """A plug-in that is not installed as a distribution still names the extra and the package."""
    with pytest.raises(MissingDependency, match="extra 'needy' of the package that provides tests"):
        Needy().require()


def test_require_without_an_extra() -> None:
    """Without an extra the message says what cannot be imported."""

    class Bare(Plain):
        requires = ("no_such_module",)

    with pytest.raises(MissingDependency, match="plain needs no_such_module"):
        Bare().require()


def test_require_of_a_built_in_uses_our_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """A built-in integration's missing framework names the extra of this distribution."""
    built_in = type("BuiltIn", (Plain,), {"__module__": "agent_adapter.integrations.none"})
    monkeypatch.setattr(built_in, "requires", ("no_such_module",))
    monkeypatch.setattr(built_in, "extra", "ag2")
    with pytest.raises(MissingDependency, match=r'pip install "agent-adapter\[ag2\]"'):
        built_in().require()


def test_the_base_gives_everything_an_integration_imports() -> None:
    """One module has the protocol, the base, the runner's contract and the error helpers."""
    assert {
        "MODEL_VISIBLE_ERRORS",
        "FlowCompiler",
        "Integration",
        "IntegrationBase",
        "ToolImporter",
        "ToolRunner",
        "model_visible_error",
    } <= set(dir(base))


def test_the_distribution_of_a_module_is_found() -> None:
    """The pip command names the distribution that owns the integration's module."""
    assert base._distribution_of("pytest") == "pytest"
    assert base._distribution_of("no_such_module") is None
