"""`Executor`: the public face of `exec`; everything below it works on a `Runtime`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
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
from agent_adapter.core.ports import ApprovalPort, PreparedCall
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import Grant, RunLimits
from agent_adapter.exec import large, pipeline, provenance, replay, stages, telemetry
from agent_adapter.exec.approval.grants import IssuedTokens, grant
from agent_adapter.exec.call import Call
from agent_adapter.exec.events import Events
from agent_adapter.exec.in_flight import in_flight_of
from agent_adapter.exec.keyed import name_by_key
from agent_adapter.exec.runtime import MAX_RESULT_BYTES, Runtime
from agent_adapter.exec.scope import WAITS, RunScope, current_scope, notice
from agent_adapter.exec.validate_options import checked_said, validate_options
from agent_adapter.store import ledger
from agent_adapter.store.base import Store
from agent_adapter.store.memory import MemoryStore


class Executor:
    """Runs calls: validated, guarded, approved, within limits, at most once, recorded.

    `registry` names the tools for `run` and `resume`; `run_spec` takes any tool. `approval` decides
    about calls that a person must see; without it they are denied. Without a `store` everything is
    kept in memory, and the first write logs a warning. `limits` apply to every run. `hooks` are
    objects with `before(call)` and `after(call, result)` (`agent_adapter.core.ports.Hook`).
    A result of more than `max_result_bytes` (64 MB) as it is kept is withheld;
    with `keep_large_results` it is written to a file in the folder `<file>.results` beside the
    store, for people to read: it is not handed out.
    """

    def __init__(
        self,
        registry: ToolRegistry | None = None,
        *,
        approval: ApprovalPort | None = None,
        store: Store | None = None,
        limits: RunLimits | None = None,
        hooks: Iterable[Any] = (),
        max_result_bytes: int = MAX_RESULT_BYTES,
        keep_large_results: bool = False,
    ) -> None:
        hooks = tuple(hooks)
        validate_options(registry, approval, store, limits, hooks)
        shared: Store | None = getattr(approval, "store", None)
        chosen: Store = store or shared or MemoryStore()
        if keep_large_results and large.folder(chosen) is None:
            raise TypeError(
                f"Executor: keep_large_results needs a store in a file, not {chosen.url};"
                " open one with open_store('sqlite:///state.db')"
            )
        self.registry = registry
        self.runtime = Runtime(
            store=chosen,
            in_flight=in_flight_of(chosen),
            approval=approval,
            limits=limits,
            hooks=hooks,
            events=Events(),
            store_undecided=store is None and shared is None,
            max_result_bytes=max_result_bytes,
            keeps_large_results=keep_large_results,
        )
        self.runtime.runner = self
        self.tokens = IssuedTokens()

    @property
    def store(self) -> Store:
        """The store that keeps approvals, calls and the ledger."""
        return self.runtime.store

    @property
    def approval(self) -> ApprovalPort | None:
        """The port that decides about calls that a person must see."""
        return self.runtime.approval

    @approval.setter
    def approval(self, port: ApprovalPort | None) -> None:
        self.runtime.approval = port

    async def run(
        self,
        name: str,
        args: Mapping[str, Any],
        *,
        ctx: ToolContext | None = None,
        call_id: str | None = None,
    ) -> Any:
        """Run the registry's tool of that name; see `run_spec`.

        Where `ctx` or a run scope names the run, `call_id` is an idempotency key in it: the same
        tool and arguments again, also in another process, give the recorded outcome; others raise
        `CallConflict`. Elsewhere it is a name that may repeat.
        """
        spec, ctx = self._named(name), ctx or ToolContext()
        if call_id:
            name_by_key(ctx, call_id)
        return await self.run_spec(spec, args, ctx, call_id=call_id)

    async def run_spec(
        self,
        spec: ToolSpec,
        args: Mapping[str, Any],
        ctx: ToolContext | None = None,
        *,
        call_id: str | None = None,
    ) -> Any:
        """The tool's value, or one of the errors of `agent_adapter.core.errors`.

        The value is returned when its outcome is durable. Cancellation and every other
        `BaseException` pass through, after they are recorded in the ledger.
        """
        if ctx is None:
            ctx = ToolContext()
        around = current_scope.get()
        if around is not None:
            await _name_the_caller(around)
        prepared = self.tokens.take(ctx.approval) if ctx.approval is not None else None
        if prepared is not None and ctx.call_ref is prepared:
            ctx.call_ref = None  # a gate may ask and run under one context
        call = Call(self.runtime, spec, args, ctx, call_id)
        if prepared is not None:
            call = _granted(call, prepared)
        return await self._ended(call, watched=True)

    async def prepare(
        self,
        spec: ToolSpec,
        args: Mapping[str, Any],
        ctx: ToolContext | None = None,
        *,
        call_id: str | None = None,
    ) -> Call:
        """Validate, guard and ask the confirm rule: once, for a gate that asks before it runs.

        `asked` says why a person must see the call; it is empty if no one must. Pass the call to
        `issue` next.
        """
        around = current_scope.get()
        if around is not None:
            await _name_the_caller(around)
        call = Call(self.runtime, spec, args, ctx or ToolContext(), call_id)
        await stages.prepare(call, args)
        call.asked = call.asked or ""
        return call

    async def issue(
        self, prepared: PreparedCall, port: ApprovalPort, *, edits_allowed: bool = False
    ) -> Grant:
        """Ask `port` about a prepared call if it needs approval; returns a grant to run it once.

        Raises `ApprovalDenied` (also for edits where `edits_allowed` is false) and
        `ApprovalPending`.
        """
        if not isinstance(prepared, Call) or prepared.runtime is not self.runtime:
            raise TypeError("issue needs a call that `prepare` of this same executor gave")
        return await grant(prepared, port, self.tokens, edits_allowed=edits_allowed)

    async def resume(self, record_id: str, *, tenant: str = "") -> Any:
        """Run the call of an approved record itself, exactly as it was bound, once.

        Raises `ApprovalPending`, `ApprovalDenied` or `ApprovalExpired` as the record stands. A call
        that has already run returns its recorded outcome.
        """
        from agent_adapter.exec.approval.resume import resumed

        call, found = await resumed(self.runtime, self.registry, record_id, tenant)
        if found is not None:
            return await pipeline.replayed(call, found)
        return await self._ended(call, watched=True)

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
        said: str | Sequence[str] = (),
    ) -> AsyncIterator[RunScope]:
        """Calls inside it that bring no run of their own belong to `run_id`.

        `said` is what the user said: the messages that the run answers. They are kept for the whole
        conversation, `thread_id` or else the run: `confirm="provenance"` trusts what they name.
        """
        scope = RunScope(
            run_id=run_id,
            thread_id=thread_id,
            principal=principal,
            tenant=tenant,
            limits=limits,
            attempt=attempt,
            said=checked_said(said),
        )
        if scope.said:
            await provenance.keep_said(self.store, scope)
        token = current_scope.set(scope)
        try:
            yield scope
        finally:
            current_scope.reset(token)

    def subscribe(self, watcher: Callable[[Any], None]) -> Callable[[], None]:
        """Pass every event of `agent_adapter.core.events` to `watcher`; call the result to stop."""
        return self.runtime.events.subscribe(watcher)

    async def aclose(self) -> None:
        """Return when everything recorded in the background is durable."""
        await self.store.flush()

    async def _ended(self, call: Call, *, watched: bool) -> Any:
        """Run the steps of the call; its identity is released when they have ended."""
        try:
            if watched and self.runtime.events.active():
                return await telemetry.watch(call, pipeline.run_call(call))
            if call.plan.direct and call.is_bare():
                return await pipeline.run_bare(call)
            return await pipeline.run_call(call)
        except AgentAdapterError as exc:
            self._refused(call, exc)
            raise
        finally:
            if call.call_key is not None:
                self.runtime.in_flight.leave(call.call_key)
                self.runtime.in_flight.release(call)

    def _named(self, name: str) -> ToolSpec:
        if self.registry is None:
            raise ToolNotFound(
                f"{name}: this executor has no registry; use run_spec, or give it one"
            )
        return self.registry.get(name)

    def _refused(self, call: Call, error: AgentAdapterError) -> None:
        """Set the call that the error belongs to; record a call that was refused before it ran."""
        if isinstance(error, ToolError) and error.raised_in is None:
            error.raised_in = call.spec.name
        if call.entered and error.edited is None:
            error.edited = call.ctx.edited
        notice(error)
        if call.parent is not None and isinstance(error, WAITS):
            call.parent.waits = error
        if isinstance(error, ToolInDoubt):
            ids = (call.spec.name, call.ctx.call_id, call.run_id, error.call_key)
            self.runtime.events.emit(CallInDoubt(*ids, str(error)))
        if call.entered or isinstance(error, StoreError):
            return
        facts = {"tool": call.spec.name, "call_id": call.ctx.call_id, "error": error.kind}
        facts |= call.whose()
        run_id, key = call.run_id, call.call_key
        with suppress(StoreError):  # the refusal is the error to be seen
            self.store.post(lambda tx: ledger.append(tx, run_id, "refused", key, facts))


def _granted(call: Call, prepared: Call) -> Call:
    """The prepared call of a gate's token, if the token was issued for this same call."""
    if not prepared.is_same(call):
        prepared.release()
        return call
    prepared.adopt(call.ctx)
    return prepared


async def _name_the_caller(around: Any) -> None:
    """A call made inside a tool belongs to a run that is named after the tool's own call."""
    if isinstance(around, Call) and (around.call_key is None or around.entry is None):
        await replay.enter(around)
