"""What the contract kit measures with: a small runner, and tools that tell what reached them."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import anyio

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    AgentAdapterError,
    ApprovalDenied,
    ApprovalPending,
    GuardrailBlocked,
    ToolFailed,
    ToolTimeout,
)
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest, Grant

from ..fakes.approval import FakeApproval


def spec_for(function: Callable[..., Any], **policy: Any) -> ToolSpec:
    """The spec of `function`, in no registry that anybody else sees; a read tool by default."""
    registry = ToolRegistry()
    registry.tool(**({"effects": "read"} | policy))(function)
    return registry.get(function.__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerCall:
    """What a bridge handed to the runner."""

    spec: ToolSpec
    args: Mapping[str, Any]
    ctx: ToolContext | None
    call_id: str | None


@dataclass(slots=True)
class _HookCall:
    spec: ToolSpec
    arguments: dict[str, Any]
    ctx: ToolContext
    asked: str | None = None


class FakeRunner:
    """A runner that does the least a contract needs, and keeps what the bridge passed to it.

    It validates, calls hooks, asks, keeps the time-out and hides foreign exceptions. It takes the
    arguments of `Executor`; the store and the limits are kept and not used. A gate's approval is
    good for the next call of the same tool and call id.
    """

    def __init__(
        self,
        registry: ToolRegistry | None = None,
        *,
        approval: Any = None,
        store: Any = None,
        limits: Any = None,
        hooks: Sequence[Any] = (),
    ) -> None:
        self.registry = registry
        self.approval = approval
        self.store = store
        self.limits = limits
        self.hooks = tuple(hooks)
        self.calls: list[RunnerCall] = []
        self._issued: dict[object, _HookCall] = {}

    async def run_spec(
        self,
        spec: ToolSpec,
        args: Mapping[str, Any],
        ctx: ToolContext | None = None,
        *,
        call_id: str | None = None,
    ) -> Any:
        """The tool's value, or an error of `agent_adapter.core.errors`."""
        self.calls.append(RunnerCall(spec=spec, args=args, ctx=ctx, call_id=call_id))
        call = self._granted(spec, ctx)
        if call is None:
            call = await self._checked(spec, args, ctx, call_id)
            await self._approve(call)
        result = await _entered(call)
        return await self._after(call, result)

    async def prepare(
        self,
        spec: ToolSpec,
        args: Mapping[str, Any],
        ctx: ToolContext | None = None,
        *,
        call_id: str | None = None,
    ) -> _HookCall:
        """The call as it would run, and whether it must be asked about."""
        call = await self._checked(spec, args, ctx, call_id)
        call.asked = "the tool asks for confirmation" if await _must_ask(call) else ""
        return call

    async def issue(self, prepared: Any, port: Any, *, edits_allowed: bool = False) -> Grant:
        """A grant for a prepared call, after `port` approved it where it must be asked."""
        if not prepared.asked:
            return Grant(needed=False)
        decision = await _asked(port, prepared, edits_allowed=edits_allowed)
        if decision.arguments is not None and not edits_allowed:
            raise ApprovalDenied("the arguments were changed, which this gate cannot apply")
        _apply(prepared, decision)
        token = object()
        self._issued[token] = prepared
        return Grant(needed=True, token=token, decision=decision, forget=self._forget)

    def _forget(self, token: object) -> None:
        self._issued.pop(token, None)

    def _granted(self, spec: ToolSpec, ctx: ToolContext | None) -> _HookCall | None:
        token = None if ctx is None else ctx.approval
        call = self._issued.pop(token, None) if type(token) is object else None
        if call is None or ctx is None or call.spec is not spec or call.ctx.call_id != ctx.call_id:
            return None
        call.ctx = ctx
        return call

    async def _checked(
        self,
        spec: ToolSpec,
        args: Mapping[str, Any],
        ctx: ToolContext | None,
        call_id: str | None,
    ) -> _HookCall:
        ctx = ToolContext() if ctx is None else ctx
        ctx.call_id = call_id or ctx.call_id or f"call_fake_{len(self.calls)}"
        ctx.run_id = ctx.run_id or "run_fake"
        spec.validate(args)
        call = _HookCall(spec=spec, arguments=dict(args), ctx=ctx)
        await self._before(call)
        return call

    async def _before(self, call: _HookCall) -> None:
        for hook in self.hooks:
            changed = await _hooked(hook, "before", call)
            if changed is not None:
                call.spec.validate(changed)
                call.arguments = dict(changed)

    async def _after(self, call: _HookCall, result: Any) -> Any:
        for hook in self.hooks:
            if hasattr(hook, "after"):
                result = await _hooked(hook, "after", call, result)
        return result

    async def _approve(self, call: _HookCall) -> None:
        given = call.ctx.approval
        if isinstance(given, ApprovalDecision) and call.ctx.bound_by:
            decision = given
        elif await _must_ask(call):
            decision = await _asked(self.approval, call)
        else:
            return
        _apply(call, decision)


async def _asked(port: Any, call: _HookCall, *, edits_allowed: bool = True) -> ApprovalDecision:
    if port is None:
        return ApprovalDecision.deny(reason="nobody can be asked")
    request = request_for(call.spec, call.arguments, call.ctx)
    try:
        decision: ApprovalDecision = await port.request(
            dataclasses.replace(request, edits_allowed=edits_allowed)
        )
    except Exception:
        return ApprovalDecision.deny(reason="the port failed")
    return decision


def _apply(call: _HookCall, decision: ApprovalDecision) -> None:
    if decision.is_pending:
        raise ApprovalPending(decision.record_id or "apr_unknown", decision.expires_at)
    if not decision.approved:
        raise ApprovalDenied(decision.reason or "denied")
    if decision.arguments is not None:
        call.spec.validate(decision.arguments)
        call.arguments = dict(decision.arguments)


async def _must_ask(call: _HookCall) -> bool:
    rule: Any = call.spec.confirm
    if callable(rule):
        answer = rule(dict(call.arguments), call.ctx)
        rule = await answer if inspect.isawaitable(answer) else answer
    return rule is not False and rule != "tainted"


async def _hooked(hook: Any, stage: str, call: _HookCall, *rest: Any) -> Any:
    method = getattr(hook, stage, None)
    if method is None:
        return None
    try:
        answer = method(call, *rest)
        return await answer if inspect.isawaitable(answer) else answer
    except AgentAdapterError:
        raise
    except Exception as exc:
        raise GuardrailBlocked(f"a hook failed: {type(exc).__name__}") from exc


async def _entered(call: _HookCall) -> Any:
    try:
        async with asyncio.timeout(call.spec.timeout) as limit:
            return await call.spec.invoke(call.arguments, call.ctx)
    except AgentAdapterError:
        raise
    except Exception as exc:
        if isinstance(exc, TimeoutError) and limit.expired():
            raise ToolTimeout(f"{call.spec.name} did not end in {call.spec.timeout} s") from exc
        raise ToolFailed(f"{call.spec.name} failed: {type(exc).__name__}") from exc


def request_for(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> ApprovalRequest:
    """What a port is asked about one call."""
    call_id = ctx.call_id or ""
    return ApprovalRequest(
        tool=spec.name,
        description=spec.description,
        arguments=dict(arguments),
        shown=repr(dict(arguments)),
        call_id=call_id,
        run_id=ctx.identity.run or ctx.run_id or "run_fake",
        thread_id=ctx.thread_id,
        call_key=call_id,
        binding=call_id,
        fingerprint=spec.name,
        digest=repr(dict(arguments)),
        reason="the tool asks for confirmation",
    )


class Probe:
    """Tools that keep what reached them.

    `calls` are the arguments of each run, `contexts` the contexts, `cancelled` whether a hanging
    run saw its cancellation. A probe belongs to the event loop it was made in; its tools may run in
    another.
    """

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.contexts: list[ToolContext] = []
        self.cancelled = False
        self.finished: list[int] = []
        self._home = asyncio.get_running_loop()
        self._started = asyncio.Event()
        self._hanging: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._turns: dict[int, asyncio.Event] = {}

    def adding(self, **policy: Any) -> ToolSpec:
        """`contract_add(a, b)`: their sum."""

        async def contract_add(a: int, b: int, ctx: ToolContext) -> int:
            """Adds two whole numbers."""
            self._saw(ctx, a=a, b=b)
            return a + b

        return spec_for(contract_add, **policy)

    def hanging(self, **policy: Any) -> ToolSpec:
        """`contract_hang()`: runs until it is cancelled or `release` is called."""

        async def contract_hang(ctx: ToolContext) -> str:
            """Waits for somebody to end the wait."""
            self._saw(ctx)
            gate = asyncio.Event()
            self._hanging.append((asyncio.get_running_loop(), gate))
            self._home.call_soon_threadsafe(self._started.set)
            try:
                await gate.wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
            return "released"

        return spec_for(contract_hang, **policy)

    def returning(self, value: Any, **policy: Any) -> ToolSpec:
        """`contract_value()`: `value`, or what happens when that is an exception to raise."""

        async def contract_value(note: str = "") -> Any:
            """Gives one value."""
            self.calls.append({"note": note})
            if isinstance(value, Exception):
                raise value
            return value

        return spec_for(contract_value, **policy)

    def taking_turns(self, order: Sequence[int], *, wait: bool, **policy: Any) -> ToolSpec:
        """`contract_turn(n)`: ends only after every later number of `order` has ended."""
        self._turns = {n: asyncio.Event() for n in order}
        following = dict(pairwise(order))

        async def contract_turn(n: int, ctx: ToolContext) -> str:
            """Ends after the turns that were asked for later."""
            self._saw(ctx, n=n)
            if wait and n in following:
                await self._turns[following[n]].wait()
            self.finished.append(n)
            self._turns[n].set()
            return f"turn {n} of {ctx.call_id}"

        return spec_for(contract_turn, **policy)

    async def started(self) -> None:
        """Returns when a hanging run has begun."""
        await self._started.wait()

    def release(self) -> None:
        """Ends every hanging run, in whatever loop it is."""
        for loop, gate in self._hanging:
            if not loop.is_closed():
                loop.call_soon_threadsafe(gate.set)

    def _saw(self, ctx: ToolContext, **arguments: Any) -> None:
        self.calls.append(arguments)
        self.contexts.append(ctx)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one native call ended: `raw` is its result, or the exception where it `raised`."""

    raw: Any
    raised: bool = False


PATIENCE = 60.0
"""Seconds after which a call that ought to have ended counts as hanging."""


async def outcome_of(call: Awaitable[Any]) -> Outcome:
    """What `call` gives or raises; it must end within `PATIENCE` seconds."""
    patience = PATIENCE
    with anyio.move_on_after(patience) as scope:
        try:
            return Outcome(raw=await call)
        except Exception as exc:
            return Outcome(raw=exc, raised=True)
    if scope.cancelled_caught:
        raise AssertionError(f"the call did not end within {patience:g} s")
    raise AssertionError("the call ended without a result")


def expect(claim: bool, check: str, message: str) -> None:
    """Fails the check with `message` unless `claim` holds."""
    if not claim:
        raise AssertionError(f"{check}: {message}")


RunnerFactory = Callable[..., Any]
"""Makes a runner from the keyword arguments of `Executor`."""

Check = Callable[[Any, RunnerFactory], Awaitable[None]]
"""One clause of the contract: a harness and a factory; it fails by `AssertionError`."""


def ports_of(harness: Any, answer: Any) -> tuple[FakeApproval, FakeApproval | None]:
    """The executor's port, and the port whose requests count: the gate's, the same, or none."""
    if harness.approval == "port":
        port = FakeApproval(answer)
        return port, port
    gate: FakeApproval | None = None
    if getattr(harness, "native_uses_port", False):
        gate = harness.approval_port()
        gate.answer = answer
        gate.requests.clear()
    return FakeApproval(), gate
