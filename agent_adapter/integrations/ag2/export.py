"""A spec as AG2's `FunctionTool`, and what happens in one call of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from agent_adapter.core.errors import ApprovalPending
from agent_adapter.core.ports import ApprovalPort, ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.defaults import runner_for
from agent_adapter.exec.gate import Gate
from agent_adapter.integrations.ag2.calls import arguments_of, bind
from agent_adapter.integrations.ag2.gate import CallKey, Execution, gate_layer
from agent_adapter.integrations.ag2.places import enter_ask, said_on
from agent_adapter.integrations.ag2.results import failure, result_of, waiting
from agent_adapter.integrations.quarantine import OnError, exported
from agent_adapter.integrations.requirements import check_surface, require_port

if TYPE_CHECKING:
    from ag2.annotations import Context
    from ag2.events import ToolCallEvent, ToolResultEvent
    from ag2.middleware import ToolMiddleware
    from ag2.tools.types import FunctionTool


READS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "ag2.events",
        ("DataInput", "ToolCallEvent", "ToolErrorEvent", "ToolResult", "ToolResultEvent"),
    ),
    ("ag2.exceptions", ("HumanInputError",)),
    ("ag2.tools.types", ("FunctionTool.register",)),
    ("ag2.utils", ("build_model",)),
)
"""Every name of AG2 that is read here; a release without one of them is refused by name."""


@cache
def check_ag2() -> None:
    """Raises `MissingDependency` or `IntegrationError` where this AG2 cannot be used."""
    check_surface("ag2", "ag2", READS)


def ag2_tool(
    spec: ToolSpec,
    *,
    executor: ToolRunner | None = None,
    approval: ApprovalPort | None = None,
    middleware: Iterable[ToolMiddleware] = (),
    allow_edits: bool = False,
) -> FunctionTool:
    """One AG2 tool that runs `spec` through the executor.

    `middleware` is extra AG2 tool middleware, outermost first. With `approval`, a gate inside of it
    asks that port about each call whose confirm rule says yes; `allow_edits` lets the port change
    the arguments (else a decision with edits is a denial).

    Raises:
        MissingDependency: AG2 is not installed.
        IntegrationError: AG2 is outside the supported range, or lacks a name this module reads.
        TypeError: `approval` is not an `ApprovalPort`.
    """
    check_ag2()
    runner = runner_for(executor)
    tokens: dict[CallKey, Any] = {}
    layers = tuple(middleware)
    if approval is not None:
        require_port(approval)
        if spec.confirm is not False:
            layers = (*layers, gate_layer(spec, Gate(runner, approval), tokens, allow_edits))
    tool: FunctionTool = _bridge_class()(spec, _call(spec, runner, tokens), layers)
    return tool


def ag2_tools(
    registry: ToolRegistry,
    *,
    executor: ToolRunner | None = None,
    approval: ApprovalPort | None = None,
    middleware: Iterable[ToolMiddleware] = (),
    allow_edits: bool = False,
    on_error: OnError = "skip",
) -> list[FunctionTool]:
    """One `ag2_tool` per tool of `registry` that is exported to `ag2`, in its order."""
    layers = tuple(middleware)
    if approval is not None:
        require_port(approval)
        Gate(runner_for(executor), approval)  # a wrong runner is no fault of one tool's
    return exported(
        "ag2",
        registry,
        lambda spec: ag2_tool(
            spec, executor=executor, approval=approval, middleware=layers, allow_edits=allow_edits
        ),
        on_error,
    )


def _call(spec: ToolSpec, runner: ToolRunner, tokens: dict[CallKey, Any]) -> Execution:
    """The tool's own step: one call through `runner`, any error as AG2's error event.

    A closure, because AG2 deep-copies tools when an agent registers them: copies of a function
    share what it closes over, copies of an object would bring an executor of their own.
    """
    from ag2.events import ToolResultEvent
    from ag2.exceptions import HumanInputError

    run_spec = runner.run_spec
    known: tuple[Any, str] = (None, "")

    async def call(event: ToolCallEvent, context: Context) -> ToolResultEvent:
        nonlocal known
        try:
            args = arguments_of(spec, event)
            stream_id = context.stream.id
            stream = known
            if stream[0] is not stream_id:  # writing a UUID out costs more than binding does
                known = stream = (stream_id, str(stream_id))
            ctx = bind(event, stream[1])
            ctx.said = partial(said_on, context)
            if tokens:
                ctx.approval = tokens.pop((ctx.run_id or "", event.id, id(event)), None)
            value = await run_spec(spec, args, ctx, call_id=ctx.call_id)
            return ToolResultEvent(
                parent_id=event.id, name=event.name, result=result_of(value, ctx.edited)
            )
        except HumanInputError:
            raise  # AG2's channel to its human broke: AG2 ends the turn, no tool failed
        except ApprovalPending as exc:
            return waiting(event, exc)
        except Exception as exc:
            return failure(event, exc)

    return call


@cache
def _bridge_class() -> Any:
    """The `FunctionTool` whose entry method is ours, so AG2 neither coerces nor drops arguments."""
    from ag2.tools.types import FunctionTool
    from ag2.utils import build_model

    async def placeholder() -> None:
        """Stand in for the call model, which the overridden entry method never runs."""

    model = build_model(placeholder, serialize_result=False)

    class BridgeTool(FunctionTool):
        """An exported tool; its copies share the spec, the executor and the gate's tokens."""

        __slots__ = ("_call", "_source")

        def __init__(
            self, spec: ToolSpec, call: Execution, middleware: tuple[ToolMiddleware, ...]
        ) -> None:
            super().__init__(
                model,
                name=spec.name,
                description=spec.description,
                schema=spec.json_schema(),  # a copy of its own: AG2 removes `title` from it
                middleware=middleware,
            )
            self._call = call
            # AG2 grants "always" by source, so two tools of one name must not share one.
            self._source = f"agent_adapter:{spec.name}:{uuid.uuid4().hex}"

        @property
        def source(self) -> str:
            """The implementation behind this tool, shared by its copies and by no other tool."""
            return self._source

        def register(self, stack: Any, context: Context, **options: Any) -> None:
            """Listen on the stream for as long as the ask runs that `stack` belongs to."""
            enter_ask(stack, context)
            super().register(stack, context, **options)

        def run_with(self, change: Callable[[Any, Any], Any]) -> None:
            """Run what `change` makes of each call's event and context."""
            call = self._call
            self._call = lambda event, context: call(change(event, context), context)

        def __call__(self, event: ToolCallEvent, context: Context) -> Any:
            """Run one call; an awaitable result or error event."""
            return self._call(event, context)

    return BridgeTool
