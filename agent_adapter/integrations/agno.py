"""Agno 3: each tool as an `agno.tools.function.Function`; your port resolves its pauses."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    MODEL_VISIBLE_ERRORS,
    ApprovalPending,
    ToolDefinitionError,
    ToolFailed,
    ToolNotFound,
    model_visible_error,
)
from agent_adapter.core.results import plain_result
from agent_adapter.exec.defaults import runner_for
from agent_adapter.exec.gate import Gate
from agent_adapter.integrations._agno_calls import (
    CallKey,
    Held,
    TokenBook,
    as_sent,
    rewritable,
    rewritten,
)
from agent_adapter.integrations._surface import check_surface, require_port
from agent_adapter.integrations.base import IntegrationBase

if TYPE_CHECKING:
    from agno.models.response import ToolExecution
    from agno.run.agent import RunOutput
    from agno.run.requirement import RunRequirement
    from agno.run.team import TeamRunOutput
    from agno.tools.function import Function, FunctionCall

    from agent_adapter.core.ports import ApprovalPort, ToolRunner
    from agent_adapter.core.registry import ToolRegistry
    from agent_adapter.core.tool import ToolSpec
    from agent_adapter.exec.gate import Grant

__all__ = [
    "INTEGRATION",
    "AgnoIntegration",
    "agno_function",
    "agno_functions",
    "resolve_requirements",
]

# Every name of Agno that this module reads; a release without one of them is refused by name.
_READS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("agno.exceptions", ("AgentRunException", "RunCancelledException")),
    ("agno.run.requirement", ("RunRequirement.needs_confirmation", "RunRequirement.reject")),
    (
        "agno.tools.function",
        (
            "Function",
            "Function.__private_attributes__._run_context",
            "Function.model_fields.skip_entrypoint_processing",
            "Function.model_fields.requires_confirmation",
            "FunctionCall.model_fields.call_id",
        ),
    ),
)

# Agno hands its own objects to parameters of these names, whatever the model sent.
_TAKEN_ARGUMENTS = ("fc", "_agno_agent", "_agno_team", "_agno_run_context")
# Agno answers tools of these names itself, by asking its user.
_TAKEN_NAMES = ("get_user_input", "ask_user")


def agno_function(spec: ToolSpec, *, executor: ToolRunner | None = None) -> Function:
    """One Agno `Function` that runs `spec` through the executor; results are JSON text.

    Any confirm rule makes the agent pause before the call: see `resolve_requirements`. Agno's
    confirmation alone approves nothing. Agents must be run with `arun`: the function is async.

    Raises:
        ToolDefinitionError: Agno would hijack the tool's name or one of its arguments.
        MissingDependency: Agno is not installed.
        IntegrationError: Agno is outside the supported range, or lacks a name this module reads.
    """
    _check_agno()
    from agno.tools.function import Function

    schema = spec.json_schema()
    _refuse_taken(spec, schema)
    runner = runner_for(executor)
    _EXPORTED_BY[spec] = ref(runner)
    return Function(
        name=spec.name,
        description=spec.description,
        parameters=schema,
        entrypoint=_entrypoint(spec, runner),
        skip_entrypoint_processing=True,
        requires_confirmation=True if spec.confirm is not False else None,
    )


def agno_functions(registry: ToolRegistry, *, executor: ToolRunner | None = None) -> list[Function]:
    """One `agno_function` per tool of `registry` that is exported to `agno`, in its order."""
    return [agno_function(spec, executor=executor) for spec in registry.for_target("agno")]


async def resolve_requirements(
    output: RunOutput | TeamRunOutput,
    port: ApprovalPort,
    registry: ToolRegistry,
    *,
    allow_edits: bool = False,
) -> None:
    """Confirm or reject each confirmation that `output` paused on, as `port` decides.

    First every call is asked about; only when all are decided is any of them confirmed or
    rejected. A confirmed call holds a one-use token, so the executor does not ask again. Other
    kinds of requirement stay as they are, a tool that `registry` does not export to Agno is
    rejected, and so are edited arguments unless `allow_edits`. Calling it again is harmless.

    Raises:
        ApprovalPending: some calls await a decision (`ids` names them); nothing was resolved.
        TypeError: `port` is not an `ApprovalPort`.
    """
    require_port(port)
    asked: list[_Asked] = []
    try:
        pending: list[ApprovalPending] = []
        exported = {spec.name: spec for spec in registry.for_target("agno")}
        for requirement in output.requirements or ():
            if not requirement.needs_confirmation:
                continue
            try:
                asked.append(await _ask(output, requirement, port, exported, allow_edits))
            except ApprovalPending as exc:
                pending.append(exc)
        if pending:
            raise _all_of(pending)
        for answer in asked:
            answer.settle(output.tools or ())
    finally:
        for answer in asked:
            answer.release()


class AgnoIntegration(IntegrationBase):
    """Agno as a target: `get_integration("agno")`."""

    name = "agno"
    requires: tuple[str, ...] = ("agno",)
    extra: str | None = "agno"
    call_id_fields = ("call_id",)
    reexecutes = True  # a continued run executes a call again under the same ids

    def export_tool(self, spec: ToolSpec, *, executor: ToolRunner | None = None) -> Function:
        """The `agno_function` of `spec`."""
        return agno_function(spec, executor=executor)

    def bind_context(self, native: Any) -> ToolContext:
        """The ids of one `FunctionCall`: its call id, the agent's run and the session."""
        ctx = super().bind_context(native)
        run = getattr(getattr(native, "function", None), "_run_context", None)
        if run is not None:
            ctx.run_id = run.run_id
            ctx.thread_id = run.session_id
        return ctx


INTEGRATION = AgnoIntegration()

# The runner that last exported a tool: a pause does not say whose it is. Weak on both sides,
# because a runner keeps its registry and thereby the tool.
_EXPORTED_BY: WeakKeyDictionary[ToolSpec, ref[ToolRunner]] = WeakKeyDictionary()


@cache
def _check_agno() -> None:
    check_surface("agno", "agno", _READS)


def _refuse_taken(spec: ToolSpec, schema: Mapping[str, Any]) -> None:
    if spec.name in _TAKEN_NAMES:
        raise ToolDefinitionError(
            f"{spec.name}: Agno answers tools of this name itself, by asking its user; "
            "rename the tool or leave agno out of its targets"
        )
    for name in _TAKEN_ARGUMENTS:
        if name in schema.get("properties", {}):
            raise ToolDefinitionError(
                f"{spec.name}: Agno puts an object of its own into a parameter named {name}, so "
                f"the model's value would be lost; rename {name} or leave agno out of the targets"
            )


def _entrypoint(spec: ToolSpec, runner: ToolRunner) -> Callable[..., Awaitable[str]]:
    """The function Agno calls: `entrypoint(fc, **arguments)`."""
    from agno.exceptions import AgentRunException, RunCancelledException

    bind = INTEGRATION.bind_context
    run_spec = runner.run_spec
    passing = (AgentRunException, RunCancelledException, ApprovalPending)

    async def entrypoint(fc: FunctionCall, **native: Any) -> str:
        ctx = bind(fc)
        args: Mapping[str, Any] = native
        held = _PASSED.take(ctx, spec, native) if _PASSED.held else None
        if held is not None:
            args, ctx.approval = held.args, held.grant.token
        elif rewritable(native):
            run = fc.function._run_context
            args = as_sent(native, ctx.call_id, spec.name, run.messages if run else None)
        try:
            return plain_result(await run_spec(spec, args, ctx, call_id=ctx.call_id))
        except MODEL_VISIBLE_ERRORS as exc:
            return json.dumps(model_visible_error(exc), ensure_ascii=False)
        except passing:
            raise  # Agno reports a failed call; a pending approval is no success
        except Exception as exc:
            # Agno shows the model `str(exc)`: only the class may be in it.
            raise ToolFailed(type(exc).__name__) from exc
        finally:
            if held is not None:
                held.grant.drop()

    # Agno inspects the signature at each call; these two make that cheap.
    signature = inspect.signature(entrypoint)
    entrypoint.__annotations__ = {}
    entrypoint.__signature__ = signature.replace(  # type: ignore[attr-defined]  # read by inspect
        parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()],
        return_annotation=signature.empty,
    )
    return entrypoint


_PASSED = TokenBook()


class _Asked:
    """What the port said about one requirement, until it is settled or released."""

    __slots__ = ("_edited", "_held", "_key", "_note", "_requirement")

    def __init__(
        self,
        requirement: RunRequirement,
        *,
        note: str | None = None,
        key: CallKey = (None, None),
        held: Held | None = None,
        edited: dict[str, Any] | None = None,
    ) -> None:
        self._requirement = requirement
        self._note = note
        self._key = key
        self._held = held
        self._edited = edited

    def settle(self, tools: Iterable[ToolExecution]) -> None:
        """Confirm or reject, unless somebody else has meanwhile."""
        requirement = self._requirement
        if not requirement.needs_confirmation:
            return
        twins = _twins(requirement.tool_execution, tools)
        if self._held is None:
            requirement.reject(self._note)
        else:
            if self._held.grant.token is not None:
                _PASSED.put(self._key, self._held)
                self._held = None
            requirement.confirm()  # type: ignore[no-untyped-call]  # Agno leaves it untyped
        self._record(twins)

    def release(self) -> None:
        """Drop an approval that was not handed on."""
        if self._held is not None:
            self._held.grant.drop()
            self._held = None

    def _record(self, twins: Iterable[ToolExecution]) -> None:
        execution = self._requirement.tool_execution
        if execution is None:
            return
        if self._edited is not None:
            execution.tool_args = self._edited
        for twin in twins:
            twin.tool_args = execution.tool_args
            twin.confirmed = execution.confirmed
            twin.confirmation_note = execution.confirmation_note


def _twins(execution: ToolExecution | None, tools: Iterable[ToolExecution]) -> list[ToolExecution]:
    """The run's own records of the call: a serialised pause holds them apart from it."""
    if execution is None:
        return []
    return [
        tool
        for tool in tools
        if tool is not execution
        and tool.confirmed is None
        and (tool.tool_call_id, tool.tool_name) == (execution.tool_call_id, execution.tool_name)
        and tool.tool_args == execution.tool_args
    ]


async def _ask(
    output: RunOutput | TeamRunOutput,
    requirement: RunRequirement,
    port: ApprovalPort,
    exported: Mapping[str, ToolSpec],
    allow_edits: bool,
) -> _Asked:
    execution = requirement.tool_execution
    name = (execution.tool_name if execution else None) or ""
    spec = exported.get(name)
    if execution is None or spec is None:
        unknown = ToolNotFound(f"no tool {name!r} is exported to agno")
        return _Asked(requirement, note=_shown(unknown))
    native = execution.tool_args or {}
    # In a team the tool runs under its member's run.
    run_id = requirement.member_run_id or output.run_id
    call_id = execution.tool_call_id
    paused = requirement._member_run_response or output
    ctx = ToolContext(call_id, run_id, output.session_id, bound_by="agno", reexecutes=True)
    gate = Gate(_runner_of(spec), port)
    try:
        args = as_sent(native, call_id, name, getattr(paused, "messages", None))
        grant = await gate.ask(spec, copy.deepcopy(args), ctx, edits_allowed=allow_edits)
    except MODEL_VISIBLE_ERRORS as exc:
        return _Asked(requirement, note=_shown(exc))
    edited = _edited(grant)
    held = Held(spec, native if edited is None else rewritten(edited), args, grant)
    return _Asked(requirement, key=(run_id, call_id), held=held, edited=edited)


def _edited(grant: Grant) -> dict[str, Any] | None:
    """A reviewer's edits as Agno's record can show them; they run as bound, shown or not."""
    if grant.decision is None or grant.decision.arguments is None:
        return None
    try:
        edited: dict[str, Any] = json.loads(json.dumps(dict(grant.decision.arguments)))
    except (TypeError, ValueError):
        return None
    return edited


def _runner_of(spec: ToolSpec) -> ToolRunner:
    reference = _EXPORTED_BY.get(spec)
    return runner_for(reference() if reference else None)


def _all_of(pending: list[ApprovalPending]) -> ApprovalPending:
    ids = list(dict.fromkeys(record for exc in pending for record in exc.ids))
    times = [exc.expires_at for exc in pending if exc.expires_at is not None]
    return ApprovalPending(ids[0], min(times, default=None), ids=ids)


def _shown(error: Exception) -> str:
    return json.dumps(model_visible_error(error), ensure_ascii=False)
