"""Agno's pauses: each confirmation is asked about, and only then is any of them settled."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from agent_adapter.core.answers import answer_text
from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    MODEL_VISIBLE_ERRORS,
    ApprovalPending,
    ToolNotFound,
)
from agent_adapter.core.identity import Identity
from agent_adapter.core.ports import ApprovalPort, ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.defaults import runner_for
from agent_adapter.exec.gate import Gate, Grant
from agent_adapter.integrations.agno.calls import as_sent, rewritten, said_to
from agent_adapter.integrations.agno.places import ATTEMPTS, Places, identity, root_of
from agent_adapter.integrations.agno.tokens import CallKey, HeldApproval, HeldApprovals
from agent_adapter.integrations.base import all_pending
from agent_adapter.integrations.requirements import require_port

if TYPE_CHECKING:
    from agno.models.response import ToolExecution
    from agno.run.agent import RunOutput
    from agno.run.requirement import RunRequirement
    from agno.run.team import TeamRunOutput


# The runner that last exported a tool: a pause does not say whose it is. Weak on both sides,
# because a runner keeps its registry and thereby the tool.
EXPORTED_BY: WeakKeyDictionary[ToolSpec, ref[ToolRunner]] = WeakKeyDictionary()

PASSED = HeldApprovals()
"""The approvals of confirmed calls that Agno has not run yet."""


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
        for requirement, known in _identified(output):
            if not requirement.needs_confirmation:
                continue
            try:
                asked.append(await _ask(output, requirement, known, port, exported, allow_edits))
            except ApprovalPending as exc:
                pending.append(exc)
        if pending:
            raise all_pending(pending)
        for answer in asked:
            answer.settle(output.tools or ())
    finally:
        for answer in asked:
            answer.release()


@dataclass(slots=True, kw_only=True)
class _Asked:
    """What the port said about one requirement, until it is settled or released."""

    requirement: RunRequirement
    note: str | None = None
    key: CallKey = (None, None)
    held: HeldApproval | None = None
    edited: dict[str, Any] | None = None

    def settle(self, tools: Iterable[ToolExecution]) -> None:
        """Confirm or reject, unless somebody else has meanwhile."""
        requirement = self.requirement
        if not requirement.needs_confirmation:
            return
        twins = _twins(requirement.tool_execution, tools)
        if self.held is None:
            requirement.reject(self.note)
        else:
            if self.held.grant.token is not None:
                PASSED.put(self.key, self.held)
                self.held = None
            requirement.confirm()  # type: ignore[no-untyped-call]  # Agno leaves it untyped
        self._record(twins)

    def release(self) -> None:
        """Drop an approval that was not handed on."""
        if self.held is not None:
            self.held.grant.drop()
            self.held = None

    def _record(self, twins: Iterable[ToolExecution]) -> None:
        execution = self.requirement.tool_execution
        if execution is None:
            return
        if self.edited is not None:
            execution.tool_args = self.edited
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


def _identified(
    output: RunOutput | TeamRunOutput,
) -> Iterator[tuple[RunRequirement, Identity]]:
    """Each requirement with the identity of its call; settled ones keep their places, too."""
    places = Places()
    for requirement in output.requirements or ():
        # In a team the tool runs under its member's run.
        run_id = requirement.member_run_id or output.run_id
        paused = requirement._member_run_response or output
        messages = getattr(paused, "messages", None) or ()
        place = None
        if (execution := requirement.tool_execution) is not None:
            args = execution.tool_args or {}
            place = places.find(messages, execution.tool_call_id, execution.tool_name or "", args)
        attempt = ATTEMPTS.of(run_id, root_of(messages)) if run_id and messages else 1
        yield requirement, identity(run_id, output.session_id, place, attempt)


async def _ask(
    output: RunOutput | TeamRunOutput,
    requirement: RunRequirement,
    known: Identity,
    port: ApprovalPort,
    exported: Mapping[str, ToolSpec],
    allow_edits: bool,
) -> _Asked:
    execution = requirement.tool_execution
    name = (execution.tool_name if execution else None) or ""
    spec = exported.get(name)
    if execution is None or spec is None:
        unknown = ToolNotFound(f"no tool {name!r} is exported to agno")
        return _Asked(requirement=requirement, note=answer_text(error=unknown))
    native = execution.tool_args or {}
    call_id = execution.tool_call_id
    paused = requirement._member_run_response or output
    ctx = ToolContext(call_id, known.run, known.conversation, bound_by="agno")
    ctx.identity = known
    if requirement._member_run_response is None:
        ctx.said = partial(said_to, None, getattr(output, "messages", None))
    gate = Gate(_runner_of(spec), port)
    try:
        args = as_sent(native, call_id, name, getattr(paused, "messages", None))
        grant = await gate.ask(spec, copy.deepcopy(args), ctx, edits_allowed=allow_edits)
    except MODEL_VISIBLE_ERRORS as exc:
        return _Asked(requirement=requirement, note=answer_text(error=exc))
    edited = _edited(grant)
    shown = native if edited is None else rewritten(edited)
    held = HeldApproval(spec, shown, args, grant, known)
    return _Asked(requirement=requirement, key=(known.run, call_id), held=held, edited=edited)


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
    reference = EXPORTED_BY.get(spec)
    return runner_for(reference() if reference else None)
