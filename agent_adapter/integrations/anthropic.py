"""Anthropic: tools for the Messages API and its beta tool runner, and the answers to its calls."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from agent_adapter.core.answers import answer_text, told
from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    ApprovalPending,
    IntegrationError,
)
from agent_adapter.core.extras import check_installed
from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.result_parts import parts_of
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.defaults import runner_for
from agent_adapter.integrations.base import IntegrationBase
from agent_adapter.integrations.imports import imported
from agent_adapter.integrations.quarantine import OnError, exported
from agent_adapter.integrations.wires.anthropic import IDS, blocks_of, calls_of, result_of, tool_of
from agent_adapter.integrations.wires.calls import (
    CallAnswerer,
    arguments_of,
    settled,
)
from agent_adapter.integrations.wires.runs import place_in

if TYPE_CHECKING:
    from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool


def anthropic_tool(spec: ToolSpec) -> dict[str, Any]:
    """One tool as the Messages API takes it: a dictionary for `tools=[…]`.

    Raises:
        ToolDefinitionError: a parameter has a name that the API refuses.
        MissingDependency: the SDK is not installed.
        IntegrationError: the SDK is outside the supported range.
    """
    _check_anthropic()
    return tool_of(spec)


def anthropic_tools(
    registry: ToolRegistry,
    *,
    on_error: OnError = "skip",
) -> list[dict[str, Any]]:
    """One `anthropic_tool` per tool of `registry` that is exported to `anthropic`, in order."""
    return exported("anthropic", registry, anthropic_tool, on_error)


async def run_tool_calls(
    message: Any,
    registry: ToolRegistry,
    *,
    executor: ToolRunner | None = None,
    run_id: str | None = None,
    thread_id: str | None = None,
    messages: Any = None,
) -> list[dict[str, Any]]:
    """The messages that answer the calls of `message`: one of the user, or none without calls.

    The calls run in parallel. Append the assistant's own message first, then these. The run is
    `run_id`, or what a run scope around says, or is found in `messages`: those that were sent,
    whose newest one of the user began it. Else it is unknown: rules kept per run ask or refuse.
    Giving the same message again answers what ended from the ledger and runs only the rest; a call
    in another message is a new call.

    Raises:
        ApprovalPending: calls wait for a person (`ids`); the others have ended. Give the same
            message again when they are decided.
    """
    calls = calls_of(message)
    place, answered = place_in(
        IDS,
        message,
        calls,
        executor=executor,
        run_id=run_id,
        thread_id=thread_id,
        messages=messages,
    )
    answerer = CallAnswerer(
        registry,
        "anthropic",
        executor=executor,
        place=place,
    )
    answers = settled(await answerer.answer_all(calls, response=answered))
    if not answers:
        return []
    return [{"role": "user", "content": [result_of(answer) for answer in answers]}]


def anthropic_runnable(
    spec: ToolSpec,
    *,
    executor: ToolRunner | None = None,
    run_id: str | None = None,
    thread_id: str | None = None,
) -> BetaAsyncBuiltinFunctionTool:
    """One tool for `client.beta.messages.tool_runner(tools=[…])`, whose calls run by themselves.

    The SDK does not tell a tool the id of its call, so each call gets one of its own. `run_id` is
    the run of every call; without one, what surrounds a call decides, or the run is unknown.
    """
    _check_anthropic()
    runner = runner_for(executor)
    tool: BetaAsyncBuiltinFunctionTool = _runnable_class()(spec, runner, run_id, thread_id)
    return tool


def anthropic_runnables(
    registry: ToolRegistry,
    *,
    executor: ToolRunner | None = None,
    run_id: str | None = None,
    thread_id: str | None = None,
    on_error: OnError = "skip",
) -> list[BetaAsyncBuiltinFunctionTool]:
    """One `anthropic_runnable` per tool of `registry` that is exported to `anthropic`, in order."""
    return exported(
        "anthropic",
        registry,
        lambda spec: anthropic_runnable(
            spec, executor=executor, run_id=run_id, thread_id=thread_id
        ),
        on_error,
    )


class AnthropicIntegration(IntegrationBase):
    """Anthropic as a target: `get_integration("anthropic")`."""

    name = "anthropic"
    requires: tuple[str, ...] = ("anthropic",)
    extra: str | None = "anthropic"
    call_id_fields = ("id",)
    reexecutes = True  # the same message may be answered again

    def export_tool(self, spec: ToolSpec, *, executor: ToolRunner | None = None) -> dict[str, Any]:
        """The `anthropic_tool` of `spec`; its calls go where `run_tool_calls` sends them."""
        return anthropic_tool(spec)

    def import_tool(self, native: Any, *, name: str | None = None, **policy: Any) -> ToolSpec:
        """A tool of the SDK's runner (`beta_tool`, `beta_async_tool`) as a spec.

        Untrusted and egress unless `policy` says otherwise. Raises `IntegrationError` for what is
        no such tool, and for one that runs at the provider.
        """
        _check_anthropic()
        from anthropic.lib import tools as kinds

        runnable = (
            kinds.BetaAsyncBuiltinFunctionTool,
            kinds.BetaBuiltinFunctionTool,
            kinds.BetaAsyncFunctionTool,
            kinds.BetaFunctionTool,
        )
        if not isinstance(native, runnable):
            raise IntegrationError(
                f"anthropic imports the tools of its tool runner (beta_tool, beta_async_tool), "
                f"not {type(native).__name__}"
            )
        shown: Any = native.to_dict()
        if "input_schema" not in shown:
            raise IntegrationError(
                f"{native.name} has no schema of its own: the provider defines it, so it cannot "
                "run anywhere else"
            )
        schema = shown["input_schema"]
        text = shown.get("description")
        errors = (kinds.ToolError,)
        return imported(native.name, text, schema, native.call, shown=errors, name=name, **policy)


INTEGRATION = AnthropicIntegration()


@cache
def _check_anthropic() -> None:
    check_installed("anthropic", ("anthropic",))


@cache
def _runnable_class() -> Any:
    """The runner's tool whose `call` is ours, so that arguments are checked once, by us."""
    from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, ToolError

    class Runnable(BetaAsyncBuiltinFunctionTool):
        """An exported tool of the beta tool runner."""

        def __init__(
            self, spec: ToolSpec, runner: ToolRunner, run_id: str | None, thread_id: str | None
        ) -> None:
            self._spec = spec
            self._runner = runner
            self._ids = (run_id, thread_id)

        def to_dict(self) -> Any:
            """The tool as the API takes it."""
            return tool_of(self._spec)

        async def call(self, input: object) -> Any:
            """One call's result as JSON text or blocks; a failure is the runner's `ToolError`."""
            spec = self._spec
            ctx = ToolContext(None, *self._ids, bound_by="anthropic")
            try:
                value = await self._runner.run_spec(spec, arguments_of(spec, input), ctx)
                value = told(value, ctx.edited)
                parts = parts_of(value)
                return blocks_of(parts) if parts else answer_text(value)
            except ApprovalPending as exc:
                raise ToolError(str(exc)) from exc
            except Exception as exc:
                # The runner shows a model `repr(exc)` of anything but its own error.
                raise ToolError(answer_text(error=exc)) from exc

    return Runnable
