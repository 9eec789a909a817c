"""Calls as model providers send them, all of one response answered through the executor."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_adapter.core.answers import answer_data, answer_text, told
from agent_adapter.core.content import Content
from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    MODEL_VISIBLE_ERRORS,
    ApprovalPending,
    ToolArgsIncomplete,
    ToolArgsInvalid,
    ToolDefinitionError,
    ToolNotFound,
)
from agent_adapter.core.identity import Identity, Position
from agent_adapter.core.result_parts import parts_of
from agent_adapter.exec.defaults import runner_for
from agent_adapter.exec.executor import Executor
from agent_adapter.exec.gate import Gate
from agent_adapter.exec.scope import current_scope
from agent_adapter.integrations.base import all_pending, json_kind

if TYPE_CHECKING:
    from agent_adapter.core.ports import ToolRunner
    from agent_adapter.core.registry import ToolRegistry
    from agent_adapter.core.tool import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCall:
    """One call of a response; `arguments` is JSON text or already an object.

    `native_id` is the provider's id, `None` where it gave none; `call_id` is always there.
    `complete` is false where the provider stopped before the call was known to be whole; `finish`
    is then its word for why.
    """

    call_id: str
    native_id: str | None
    name: str
    arguments: Any
    complete: bool = True
    finish: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How one call ended: its value, or the error that the model reads."""

    call: ProviderCall
    value: Any = None
    error: Exception | None = None

    @property
    def is_error(self) -> bool:
        """Whether the model reads an error."""
        return self.error is not None

    @property
    def data(self) -> Any:
        """The value as JSON values, or `{"kind", "message"}` of the error."""
        data = answer_data(self.value, self.error)
        return data if self.error is None else data["error"]

    @property
    def parts(self) -> tuple[Content, ...]:
        """The parts of a value that holds more than JSON; none otherwise, and none of an error."""
        return parts_of(self.value) if self.error is None else ()

    @property
    def text(self) -> str:
        """The value as JSON text, or the error as the JSON object `{"error": …}`."""
        return answer_text(self.value, self.error)


Mended = Callable[["ToolSpec", Mapping[str, Any]], Mapping[str, Any]]
"""The arguments that a provider's dialect stands for."""


class CallAnswerer:
    """Answers the calls of one conversation with the tools that `target` may use.

    `run_id=None` leaves the run to what surrounds the call. With `run_is_known=False` it only tells
    the calls of one response from others: no rule is kept for it. `response` names the response
    whose calls are answered. `gate` asks a port of its own before the executor does.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        target: str,
        *,
        executor: ToolRunner | None = None,
        gate: Gate | None = None,
        run_id: str | None = None,
        thread_id: str | None = None,
        mend: Mended | None = None,
        run_is_known: bool = True,
        response: Position | None = None,
    ) -> None:
        self.registry = registry
        self.target = target
        self.runner = runner_for(executor)
        self.gate = gate
        self.run_id = run_id
        self.thread_id = thread_id
        self.mend = mend
        self.run_is_known = run_is_known
        self.response = response

    async def answer_all(self, calls: Iterable[ProviderCall], *, again: bool) -> list[Answer]:
        """An answer for each call, in order; they run in parallel, and all of them end.

        `again` says that these calls may have been answered before: what ended is then taken from
        the ledger. Cancellation reaches every call.
        """
        waiting = [self._answer(call, index, again) for index, call in enumerate(calls)]
        if len(waiting) == 1:
            return [await waiting[0]]
        return list(await asyncio.gather(*waiting))

    async def _answer(self, call: ProviderCall, index: int, again: bool) -> Answer:
        try:
            return Answer(call=call, value=await self._run(call, index, again))
        except Exception as exc:
            return Answer(call=call, error=exc)

    async def _run(self, call: ProviderCall, index: int, again: bool) -> Any:
        spec = self._spec(call.name)
        if not call.complete:
            return await self._refused(spec, call, index)
        args: Mapping[str, Any] = arguments_of(spec, call.arguments)
        if self.mend is not None:
            args = self.mend(spec, args)
        bind = partial(self._context, call, index, again)
        ctx = bind()
        if self.gate is None or spec.confirm is False:
            value = await self.runner.run_spec(spec, args, ctx, call_id=call.call_id)
            return told(value, ctx.edited)
        asked = copy.deepcopy(args)  # the port and what runs after it get their own copy each
        grant = await self.gate.ask(spec, asked, bind(), edits_allowed=True)
        try:
            ctx.approval = grant.token
            value = await self.runner.run_spec(spec, args, ctx, call_id=call.call_id)
            return told(value, ctx.edited)
        finally:
            grant.drop()

    def _context(self, call: ProviderCall, index: int, again: bool = False) -> ToolContext:
        ids = (call.call_id, self.run_id, self.thread_id)
        # Without a place the provider's id must do: it may come again in the next response.
        ctx = ToolContext(*ids, bound_by=self.target, reexecutes=again and self.response is None)
        run = self.run_id if self.run_is_known else None
        ctx.identity = Identity(
            run=run,
            conversation=run if self.thread_id is None else self.thread_id,
            position=None if self.response is None else (*self.response, index),
        )
        return ctx

    async def _refused(self, spec: ToolSpec, call: ProviderCall, index: int) -> Any:
        """Have the executor refuse a call that may be cut off, so that the ledger knows of it."""
        why = call.finish or "no finish reason"
        if not isinstance(self.runner, Executor):  # another runner might run it
            raise ToolArgsIncomplete(spec.name, why)
        ctx = self._context(call, index)
        ctx.incomplete = why
        return await self.runner.run_spec(spec, {}, ctx, call_id=call.call_id)

    def _spec(self, name: str) -> ToolSpec:
        if name in self.registry:
            spec = self.registry.get(name)
            if spec.targets is None or self.target in spec.targets:
                return spec
        names = [spec.name for spec in self.registry.for_target(self.target)]
        raise ToolNotFound(f"there is no tool {name[:80]!r}; there are: {', '.join(names)}")


def settled(answers: Sequence[Answer]) -> list[Answer]:
    """The answers, when a model may read all of them.

    Raises the first error that is for the program, and otherwise one `ApprovalPending` with the ids
    of every call that waits for a person.
    """
    pending: list[ApprovalPending] = []
    for answer in answers:
        error = answer.error
        if isinstance(error, ApprovalPending):
            pending.append(error)
        elif error is not None and not isinstance(error, (*MODEL_VISIBLE_ERRORS, ToolNotFound)):
            raise error
    if pending:
        raise all_pending(pending)
    return list(answers)


def place_in(
    run_id: str | None, target: str, response: Any, *, id: str = "id", made: str | None = None
) -> dict[str, Any]:
    """Run and place of a response's calls, as options of a `CallAnswerer`.

    The run is the one that is named or that surrounds the call. Else it is unknown, and the
    response only tells its calls from those of others. `id` and `made` are the response's fields
    with its id and its time: some servers draw ids so short that they repeat.
    """
    native = member(response, id)
    if not isinstance(native, str) or not native:
        return {"run_id": run_id, "run_is_known": run_id is not None}
    when = member(response, made) if made is not None else None
    place = (native,) if when is None else (native, str(when))
    if run_id is not None or current_scope.get() is not None:
        return {"run_id": run_id, "response": place}
    return {"run_id": f"{target}:{native}", "run_is_known": False, "response": place}


def arguments_of(spec: ToolSpec, sent: Any) -> dict[str, Any]:
    """What a provider sent as the JSON object it must be, else `ToolArgsInvalid`."""
    if isinstance(sent, (str, bytes)):
        try:
            sent = json.loads(sent) if sent.strip() else {}
        except (ValueError, RecursionError):
            problem = "(arguments): not valid JSON (expected a JSON object)"
            raise ToolArgsInvalid(spec.name, [problem]) from None
    if sent is None:
        return {}
    if not isinstance(sent, Mapping):
        problem = f"(arguments): a JSON {json_kind(sent)} (expected a JSON object)"
        raise ToolArgsInvalid(spec.name, [problem])
    return dict(sent)


def adapted(
    spec: ToolSpec, dialect: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """The spec's schema in a provider's dialect, or `ToolDefinitionError` where it has none."""
    try:
        return dialect(spec.json_schema())
    except ValueError as exc:
        raise ToolDefinitionError(f"tool {spec.name!r}: {exc}") from None


def member(native: Any, name: str) -> Any:
    """The attribute or key `name` of an SDK's object or of its JSON form; `None` without it."""
    if isinstance(native, Mapping):
        return native.get(name)
    return getattr(native, name, None)
