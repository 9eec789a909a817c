"""`Executor`: the one way in which a call runs, as a plain list of steps."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    AgentAdapterError,
    GuardrailBlocked,
    StoreError,
    ToolDefinitionError,
    ToolError,
    ToolNotFound,
)
from agent_adapter.core.events import CallFinished, CallReplayed, CallStarted, ToolEmitted
from agent_adapter.core.injecting import injected_values
from agent_adapter.core.ports import ApprovalPort
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision, RunLimits, checked_cost
from agent_adapter.exec import cache, hooks, record, replay, run, taint, telemetry
from agent_adapter.exec.admit import admit
from agent_adapter.exec.approval import step as approval
from agent_adapter.exec.approval.tokens import TokenBook
from agent_adapter.exec.around import AROUND, RunScope
from agent_adapter.exec.book import book_of
from agent_adapter.exec.call import Call
from agent_adapter.exec.plan import Plan
from agent_adapter.exec.replay import Recorded
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
        self.registry = registry
        self.approval = approval
        shared: Store | None = getattr(approval, "store", None)
        self._undecided_store = store is None and shared is None
        self.store: Store = store or shared or MemoryStore()
        self.limits = limits
        self.hooks = tuple(hooks)
        self.book = book_of(self.store)
        self.tokens = TokenBook()
        self.asking: dict[str, asyncio.Task[ApprovalDecision]] = {}
        self.flights: dict[str, asyncio.Task[tuple[str, bytes]]] = {}
        self._plans: dict[ToolSpec, Plan] = {}
        self._watchers: tuple[Callable[[Any], None], ...] = ()

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
        call = self._granted(spec, args, ctx, call_id) or Call(self, spec, args, ctx, call_id)
        if self._watchers or telemetry.active():
            return await self._watched(call)
        try:
            return await self._steps(call)
        except AgentAdapterError as exc:
            self._refused(call, exc)
            raise
        finally:
            if call.call_key is not None:
                self._leave(call)

    async def _steps(self, call: Call) -> Any:
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
            _price(call)
        if call.asked is None and call.spec.confirm is not False and call.decision is None:
            call.asked = await approval.why(call)
        if call.asked or plan.looks_up or ctx.attempt > 1 or ctx.reexecutes:
            found = await replay.find(call)
            if found is not None:
                return self._replayed(call, found)
        if call.asked:
            await approval.approve(call, call.asked)
        if call.spec.cache is not None:
            return await cache.shared(call, call.spec.cache, lambda: self._execute(call, plan))
        return await self._execute(call, plan)

    async def _execute(self, call: Call, plan: Plan) -> Any:
        """Inject, begin, run, guard and record."""
        if not call.spec.injected:
            return await self._begin_and_run(call, plan)
        if plan.contexts is not None:
            call.injected = dict.fromkeys(plan.contexts, call.ctx)
            return await self._begin_and_run(call, plan)
        provided = injected_values(call.spec.injected, call.ctx)
        call.injected = await self._provide(call, provided)
        try:
            return await self._begin_and_run(call, plan)
        finally:
            await _torn_down(provided)

    async def _begin_and_run(self, call: Call, plan: Plan) -> Any:
        if plan.begins or call.take is not None or call.limits is not None:
            found = await self._begin(call)
            if found is not None:
                return self._replayed(call, found)
            return await self._run_begun(call, plan)
        return await self._run_unbegun(call, plan)

    async def _begin(self, call: Call) -> Recorded | None:
        """The intent is durable, or the recorded end of an earlier begin is here, or it raises."""
        if call.spec.effects == "write":
            await self.book.settle_lost()
            self._warn_once()
        begun = await record.begin(call)
        while begun.state in _WHY_AGAIN:
            call.earlier = (begun.row,) if begun.row is not None else begun.rows
            await replay.renew(call)
            await approval.agree_to_repeat(call, _WHY_AGAIN[begun.state])
            begun = await record.begin(call)
        if begun.state == "started":
            call.call_key, call.n = begun.call_key, begun.n
            call.ctx.idempotency_key = begun.call_key
            self.book.enter(begun.call_key)
            return None
        if begun.row is not None:
            return await replay.settle(call, begun)
        raise replay.refused(call, begun)

    async def _run_begun(self, call: Call, plan: Plan) -> Any:
        """A call whose intent is durable: whatever happens, its outcome is told."""
        value: Any = None
        error: BaseException | None = None
        try:
            value = await run.function(call, record.late(call))
            value = await self._released(call, plan, value)
        except Exception as exc:
            error = exc
        except BaseException as exc:
            record.post_end(call, record.outcome_of(call, error=exc))
            raise
        await record.end(call, record.outcome_of(call, value, error), value)
        if error is not None:
            raise error
        return value

    async def _run_unbegun(self, call: Call, plan: Plan) -> Any:
        """A read or idempotent call: recorded in the background, once it has ended."""
        if call.call_key is not None:
            call.ctx.idempotency_key = call.call_key
            self.book.enter(call.call_key)
        # Scalars cannot be changed by the tool, so their record is built when it is written.
        intent = None if plan.flat else call.intent()
        try:
            value = await run.function(call)
            if plan.after or plan.marks:
                value = await self._released(call, plan, value)
        except BaseException as exc:
            record.post_read(call, intent, record.outcome_of(call, error=exc))
            raise
        record.post_read(call, intent, record.outcome_of(call, value))
        return value

    async def _released(self, call: Call, plan: Plan, value: Any) -> Any:
        """The value as it may be handed out; from here on the call is done."""
        call.done = True
        if plan.marks:
            await taint.mark(call)
        if not plan.after:
            return value
        try:
            return await hooks.after(call, plan.after, value)
        except GuardrailBlocked as exc:
            raise record.withheld(exc) from exc

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
        call = Call(self, spec, args, ctx or ToolContext(), call_id)
        if call.limits is not None:
            await admit(call)
        call.values = spec.validate(args)
        await hooks.before(call, self.plan(spec).before)
        call.asked = await approval.why(call) or ""
        return call

    async def resume(self, record_id: str, *, tenant: str = "") -> Any:
        """Run the call of an approved record itself, exactly as it was bound; once.

        Raises `ApprovalPending`, `ApprovalDenied` or `ApprovalExpired` as the record stands. A call
        that ran already gives its recorded outcome.
        """
        from agent_adapter.exec.approval.resuming import resumed

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
        token = AROUND.set(scope)
        try:
            yield scope
        finally:
            AROUND.reset(token)

    def subscribe(self, watcher: Callable[[Any], None]) -> Callable[[], None]:
        """Hand every event of `agent_adapter.core.events` to `watcher`; call the result to stop."""
        self._watchers += (watcher,)

        def stop() -> None:
            self._watchers = tuple(known for known in self._watchers if known is not watcher)

        return stop

    def emit(self, event: Any) -> None:
        """Tell the watchers; one that raises is logged."""
        for watcher in self._watchers:
            try:
                watcher(event)
            except Exception:
                log.exception("a watcher failed on %r", event)

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
            self.book.release(prepared)
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

    async def _provide(self, call: Call, provided: Any) -> dict[str, Any]:
        try:
            found: dict[str, Any] = await provided.__aenter__()
        except AgentAdapterError:
            raise
        except Exception as exc:
            raise ToolError(
                f"{call.spec.name}: a dependency failed ({type(exc).__name__})"
            ) from exc
        return found

    async def _watched(self, call: Call) -> Any:
        span = telemetry.start(call) if telemetry.active() else None
        ctx, name = call.ctx, call.spec.name
        ctx._sink = lambda event, by: self.emit(
            ToolEmitted(name, by.call_id, by.run_id, call.call_key, event=event)
        )
        self.emit(CallStarted(name, ctx.call_id, ctx.run_id, call.call_key))
        begun = time.perf_counter()
        error: BaseException | None = None
        try:
            return await self._steps(call)
        except BaseException as exc:
            error = exc
            if isinstance(exc, AgentAdapterError):
                self._refused(call, exc)
            raise
        finally:
            seconds = time.perf_counter() - begun
            ending = record.ending_of(call, error)
            kind = None if error is None else getattr(error, "kind", type(error).__name__)
            self.emit(
                CallFinished(
                    name,
                    ctx.call_id,
                    ctx.run_id,
                    call.call_key,
                    ending=ending,
                    seconds=seconds,
                    error_kind=kind,
                )
            )
            if span is not None:
                telemetry.finish(span, error)
            self._leave(call)

    def _replayed(self, call: Call, found: Recorded) -> Any:
        ctx = call.ctx
        self.emit(CallReplayed(call.spec.name, ctx.call_id, ctx.run_id, found.row["call_key"]))
        return found.value

    def _refused(self, call: Call, error: AgentAdapterError) -> None:
        """Mark the error as this call's; one stopped before its function leaves a trace."""
        _mark(error, call)
        if call.entered or isinstance(error, StoreError):
            return
        facts = {"tool": call.spec.name, "call_id": call.ctx.call_id, "error": error.kind}
        run_id, key = call.run_id, call.call_key
        self.store.post(lambda tx: ledger.append(tx, run_id, "refused", key, facts))

    def _leave(self, call: Call) -> None:
        self.book.leave(call.call_key)
        self.book.release(call)

    def _warn_once(self) -> None:
        if self._undecided_store:
            self._undecided_store = False
            log.warning(
                "this Executor keeps its ledger in memory: a crash forgets which writes ran; "
                "give it store=open_store()"
            )


_WHY_AGAIN = {
    "unknown": "the same call ended before and nobody knows whether it happened",
    "repeats": "an earlier call with the same arguments may have happened",
    "diverges": "this attempt goes another way than the one before, whose writes stand",
}


def _price(call: Call) -> None:
    """The call's cost and its once-key, from copies of its arguments."""
    spec = call.spec
    if spec.cost is not None:
        value = _worked_out(call, "cost", spec.cost) if callable(spec.cost) else spec.cost
        call.cost = checked_cost(value, f"tool {spec.name!r}")
    if spec.once_key is not None:
        key = _worked_out(call, "once_key", spec.once_key)
        if type(key) is not str or key == "":
            raise ToolDefinitionError(f"tool {spec.name!r}: once_key gave {key!r}, not a text")
        call.once_key = key


def _worked_out(call: Call, field: str, rule: Callable[[Any], Any]) -> Any:
    try:
        return rule(call.arguments)
    except Exception as exc:
        name = type(exc).__name__
        raise ToolDefinitionError(
            f"tool {call.spec.name!r}: {field} raised {name} for these arguments"
        ) from exc


def _mark(error: BaseException, call: Call) -> None:
    """Remember which call raised a `ToolError`: outside it, it promises nothing."""
    if isinstance(error, ToolError) and getattr(error, "raised_in", None) is None:
        error.raised_in = call.spec.name


async def _torn_down(provided: Any) -> None:
    """Leave the providers; the call has ended, so a failure is only logged."""
    try:
        await provided.__aexit__(None, None, None)
    except Exception:
        log.exception("a dependency failed while it was torn down")
