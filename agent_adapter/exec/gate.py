"""`Gate`: a framework's own approval hook, asking our port about the call that will run."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import ApprovalDenied, ApprovalPending
from agent_adapter.core.ports import ApprovalPort, ToolRunner
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest
from agent_adapter.exec import replay
from agent_adapter.exec.approval import decide
from agent_adapter.exec.approval.tokens import TokenBook
from agent_adapter.exec.call import Call
from agent_adapter.exec.executor import Executor
from agent_adapter.exec.ids import new_id

__all__ = ["Gate", "Grant"]


class Grant:
    """The gate's yes: `token` goes into `ctx.approval` of the very call that was asked about.

    `needed` is whether anybody had to be asked. `decision` is what they said.
    """

    __slots__ = ("_book", "decision", "needed", "record_id", "token")

    def __init__(
        self,
        *,
        needed: bool,
        token: object | None = None,
        decision: ApprovalDecision | None = None,
        book: TokenBook | None = None,
    ) -> None:
        self.needed = needed
        self.token = token
        self.decision = decision
        self.record_id = decision.record_id if decision is not None else None
        self._book = book

    def drop(self) -> None:
        """Forget a token that the call did not take; harmless otherwise."""
        if self._book is not None:
            self._book.drop(self.token)


class Gate:
    """Asks `port` about calls that `runner` will run."""

    def __init__(self, runner: ToolRunner, port: ApprovalPort) -> None:
        self.runner = runner
        self.port = port

    async def ask(
        self,
        spec: ToolSpec,
        args: Mapping[str, Any],
        ctx: ToolContext,
        *,
        edits_allowed: bool = False,
    ) -> Grant:
        """A grant for this one call; the arguments are validated and guarded here, once.

        Raises `ToolArgsInvalid`, `GuardrailBlocked`, `ApprovalDenied` (also for edits where
        `edits_allowed` is false) and `ApprovalPending`.
        """
        if isinstance(self.runner, Executor):
            return await self._prepared(self.runner, spec, args, ctx, edits_allowed)
        return await self._asked(spec, args, ctx, edits_allowed)

    async def _prepared(
        self,
        executor: Executor,
        spec: ToolSpec,
        args: Mapping[str, Any],
        ctx: ToolContext,
        edits_allowed: bool,
    ) -> Grant:
        call = await executor.prepare(spec, args, ctx)
        try:
            decision = None
            if call.asked:
                if await _recorded(call):
                    executor.in_flight.release(call)
                    return Grant(needed=False)
                decision = await decide.ask(
                    call, self.port, call.asked, edits_allowed=edits_allowed
                )
                await decide.accept(call, decision, edits_allowed=edits_allowed)
        except BaseException:
            executor.in_flight.release(call)
            raise
        token = executor.tokens.issue(call)
        return Grant(needed=bool(call.asked), token=token, decision=decision, book=executor.tokens)

    async def _asked(
        self, spec: ToolSpec, args: Mapping[str, Any], ctx: ToolContext, edits_allowed: bool
    ) -> Grant:
        """For a runner that prepares nothing: its token is the decision itself."""
        values = spec.validate(args)
        if not await _confirms(spec, values, ctx):
            return Grant(needed=False)
        request = _plain_request(spec, values, ctx, edits_allowed)
        decision = await decide.answer_of(self.port, request)
        if decision.is_pending:
            raise ApprovalPending(decision.record_id or "", decision.expires_at)
        if not decision.approved:
            raise ApprovalDenied(f"{spec.name} was denied: {decision.reason or 'no reason given'}")
        if decision.arguments is not None and not edits_allowed:
            raise ApprovalDenied(f"{spec.name}: the reviewer's edits cannot be applied here")
        return Grant(needed=True, token=decision, decision=decision)


async def _recorded(call: Call) -> bool:
    """Whether the call has ended before, well or not: then it is handed out and nobody is asked."""
    try:
        return await replay.find(call) is not None
    except Exception:
        return True


async def _confirms(spec: ToolSpec, values: dict[str, Any], ctx: ToolContext) -> bool:
    if not callable(spec.confirm):
        return spec.confirm is not False
    try:
        answer = spec.confirm(dict(values), ctx)
        answer = await answer if inspect.isawaitable(answer) else answer
    except Exception:
        return True
    return answer is not False


def _plain_request(
    spec: ToolSpec, values: dict[str, Any], ctx: ToolContext, edits_allowed: bool
) -> ApprovalRequest:
    arguments = spec.masked(values, b"")
    call_id = ctx.call_id or new_id("call")
    return ApprovalRequest(
        tool=spec.name,
        description=spec.description,
        arguments=arguments,
        shown=str(arguments),
        call_id=call_id,
        run_id=ctx.run_id or "",
        thread_id=ctx.thread_id,
        call_key=call_id,
        binding="",
        fingerprint=spec.fingerprint,
        digest="",
        reason="this tool asks",
        effects=spec.effects,
        principal=ctx.principal,
        edits_allowed=edits_allowed,
    )
