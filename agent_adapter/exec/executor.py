"""`Executor`: the one way in which a call runs, as a plain list of steps."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    AgentAdapterError,
    StoreError,
    ToolError,
    ToolInDoubt,
    ToolNotFound,
)
from agent_adapter.core.events import CallInDoubt
from agent_adapter.core.ports import ApprovalPort
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import RunLimits
from agent_adapter.exec import cache, hooks, replay
from agent_adapter.exec.admit import admit
from agent_adapter.exec.approval import decide as approval
from agent_adapter.exec.approval.decide import Question
from agent_adapter.exec.approval.tokens import TokenBook
from agent_adapter.exec.call import Call
from agent_adapter.exec.call_attributes import call_attributes
from agent_adapter.exec.in_flight import in_flight_of
from agent_adapter.exec.pipeline import perform, replayed
from agent_adapter.exec.plan import Plan
from agent_adapter.exec.replay import Recorded
from agent_adapter.exec.scope import RunScope, current_scope, notice
from agent_adapter.exec.validate_options import validate_options
from agent_adapter.exec.watching import Watchers
from agent_adapter.store import ledger
from agent_adapter.store.base import Store
from agent_adapter.store.memory import MemoryStore

__all__ = ["Executor"]

log = logging.getLogger(__name__)

_MOST_PLANS = 10_000


class Executor:
    """Runs calls: validated, guarded, approved, within limits, at most once, recorded.

    `registry` names the tools for `run` and `resume`; `run_spec` takes any tool. `approval` decides
    about calls that a person must see; without it they are denied. Without a `store` nothing
    survives the process, and the first write warns. `limits` hold for every run. `hooks` are
    objects with `before(call)` and `after(call, result)` (`agent_adapter.core.ports.Hook`).
    """

    def __init__(
        self,
        registry: ToolRegistry | None = None,
        *,
        approval: ApprovalPort | None = None,
        store: Store | None = None,
        limits: RunLimits | None = None,
        hooks: Iterable[Any] = (),
    ) -> None:
        hooks = tuple(hooks)
        validate_options(registry, approval, store, limits, hooks)
        self.registry = registry
        self.approval = approval
        shared: Store | None = getattr(approval, "store", None)
        self._undecided_store = store is None and shared is None
        self.store: Store = store or shared or MemoryStore()
        self.limits = limits
        self.hooks = hooks
        self.in_flight = in_flight_of(self.store)
        self.tokens = TokenBook()
        self.asking: dict[str, Question] = {}
        self.flights: dict[tuple[int, str], cache.Flight] = {}
        self._plans: dict[ToolSpec, Plan] = {}
        self.watchers = Watchers()

    async def run(
        self,
        name: str,
        args: Mapping[str, Any],
        *,
        ctx: ToolContext | None = None,
        call_id: str | None = None,
    ) -> Any:
        """Run the registry's tool of that name; see `run_spec`."""
        return await self.run_spec(self._named(name), args, ctx, call_id=call_id)

    async def run_spec(
        self,
        spec: ToolSpec,
        args: Mapping[str, Any],
        ctx: ToolContext | None = None,
        *,
        call_id: str | None = None,
    ) -> Any:
        """The tool's value, or one of the errors of `agent_adapter.core.errors`.

        The value is handed out when its outcome is durable. Cancellation and every other
        `BaseException` pass through, after the ledger has been told.
        """
        if ctx is None:
            ctx = ToolContext()
        await _name_the_caller()
        call = self._granted(spec, args, ctx, call_id) or Call(self, spec, args, ctx, call_id)
        steps = self._steps(call)
        try:
            return await (self.watchers.watch(call, steps) if self.watchers.active else steps)
        except AgentAdapterError as exc:
            self._refused(call, exc)
            raise
        finally:
            if call.call_key is not None:
                self._leave(call)

    # One branch for each step that a call may skip.
    async def _steps(self, call: Call) -> Any:  # noqa: C901
        """The order is a security property: it is written down here and nowhere configured."""
        plan = self.plan(call.spec)
        ctx = call.ctx
        if call.limits is not None:
            await admit(call)
        if call.values is None:
            call.values = call.spec.validate(call.given)
            if plan.before:
                await hooks.before(call, plan.before)
        if call.spec.cost is not None or call.spec.once_key is not None:
            call_attributes(call)
        if call.asked is None and call.spec.confirm is not False and call.decision is None:
            call.asked = await approval.confirm_reason(call)
        if call.asked or plan.looks_up or ctx.attempt > 1 or ctx.reexecutes:
            found = await replay.find(call)
            if found is not None:
                return replayed(call, found)
        if call.asked:
            await approval.approve(call, call.asked)
        elif ctx.approval is not None and call.decision is None:
            await approval.apply_decision(call)
        if call.spec.cache is not None:
            return await cache.shared(call, call.spec.cache, lambda: perform(call, plan))
        return await perform(call, plan)

    async def prepare(
        self,
        spec: ToolSpec,
        args: Mapping[str, Any],
        ctx: ToolContext | None = None,
        *,
        call_id: str | None = None,
    ) -> Call:
        """Validate, guard and ask the confirm rule: once, for a gate that asks before it runs.

        `asked` says why a person must see the call, or is `None`. The gate releases the call, or
        hands it on by a token of `tokens`.
        """
        await _name_the_caller()
        call = Call(self, spec, args, ctx or ToolContext(), call_id)
        if call.limits is not None:
            await admit(call)
        call.values = spec.validate(args)
        await hooks.before(call, self.plan(spec).before)
        call.asked = await approval.confirm_reason(call) or ""
        return call

    async def resume(self, record_id: str, *, tenant: str = "") -> Any:
        """Run the call of an approved record itself, exactly as it was bound; once.

        Raises `ApprovalPending`, `ApprovalDenied` or `ApprovalExpired` as the record stands. A call
        that ran already gives its recorded outcome.
        """
        from agent_adapter.exec.approval.resume import resumed

        call = await resumed(self, record_id, tenant)
        if isinstance(call, Recorded):
            return call.value
        try:
            return await self._steps(call)
        except AgentAdapterError as exc:
            self._refused(call, exc)
            raise
        finally:
            self._leave(call)

    @asynccontextmanager
    async def run_scope(
        self,
        run_id: str,
        principal: str | None = None,
        limits: RunLimits | None = None,
        *,
        thread_id: str | None = None,
        tenant: str = "",
        attempt: int = 1,
    ) -> AsyncIterator[RunScope]:
        """Calls inside it that bring no run of their own belong to `run_id`."""
        scope = RunScope(
            run_id=run_id,
            thread_id=thread_id,
            principal=principal,
            tenant=tenant,
            limits=limits,
            attempt=attempt,
        )
        token = current_scope.set(scope)
        try:
            yield scope
        finally:
            current_scope.reset(token)

    def subscribe(self, watcher: Callable[[Any], None]) -> Callable[[], None]:
        """Hand every event of `agent_adapter.core.events` to `watcher`; call the result to stop."""
        return self.watchers.subscribe(watcher)

    def warn_of_memory(self) -> None:
        """Say once that nobody chose a store, and what that means for writes."""
        if self._undecided_store:
            self._undecided_store = False
            log.warning(
                "this Executor keeps its ledger in memory: a crash forgets which writes ran; "
                "give it store=open_store()"
            )

    def plan(self, spec: ToolSpec) -> Plan:
        """The steps that `spec` needs here."""
        plan = self._plans.get(spec)
        if plan is None:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            plan = self._plans[spec] = Plan(spec, self.hooks, self.limits)
        return plan

    async def aclose(self) -> None:
        """Return when everything recorded in the background is durable."""
        await self.store.flush()

    def _granted(
        self, spec: ToolSpec, args: Mapping[str, Any], ctx: ToolContext, call_id: str | None
    ) -> Call | None:
        """The prepared call behind a gate's token, if this is the very call it was given for."""
        if ctx.approval is None:
            return None
        prepared = self.tokens.take(ctx.approval)
        if prepared is None:
            return None
        if ctx.call_ref is prepared:
            ctx.call_ref = None
        call = Call(self, spec, args, ctx, call_id)
        if not prepared.is_same(call):
            self.in_flight.release(prepared)
            return call
        prepared.ctx = ctx
        ctx.call_ref = prepared
        return prepared

    def _named(self, name: str) -> ToolSpec:
        if self.registry is None:
            raise ToolNotFound(
                f"{name}: this executor has no registry; use run_spec, or give it one"
            )
        return self.registry.get(name)

    def _refused(self, call: Call, error: AgentAdapterError) -> None:
        """Mark the error as this call's; one stopped before its function leaves a trace."""
        if isinstance(error, ToolError) and error.raised_in is None:
            error.raised_in = call.spec.name
        notice(error)
        if isinstance(error, ToolInDoubt):
            ids = (call.spec.name, call.ctx.call_id, call.run_id, error.call_key)
            self.watchers.emit(CallInDoubt(*ids, str(error)))
        if call.entered or isinstance(error, StoreError):
            return
        facts = {"tool": call.spec.name, "call_id": call.ctx.call_id, "error": error.kind}
        facts |= call.whose()
        run_id, key = call.run_id, call.call_key
        with suppress(StoreError):  # the refusal is the error to be seen
            self.store.post(lambda tx: ledger.append(tx, run_id, "refused", key, facts))

    def _leave(self, call: Call) -> None:
        self.in_flight.leave(call.call_key)
        self.in_flight.release(call)


async def _name_the_caller() -> None:
    """A call made inside a tool belongs to a run that is named after the tool's own call."""
    around = current_scope.get()
    if isinstance(around, Call) and around.call_key is None:
        await replay.name(around)
