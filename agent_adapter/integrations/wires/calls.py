"""Calls as model providers send them, all of one response answered through the executor."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_adapter.core.answers import answer_data, answer_text, told
from agent_adapter.core.content import Content
from agent_adapter.core.context import Said, ToolContext
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is known of the calls of one response or loop.

    `run_id=None` leaves the run to what surrounds the call. With `run_is_known=False` it only tells
    the calls of one response from others: no rule is kept for it. The places of responses are those
    in `anchor` where it is set, and else in the run. `said` is what the user wrote.
    """

    run_id: str | None = None
    thread_id: str | None = None
    run_is_known: bool = True
    conversation: str | None = None
    anchor: str | None = None
    said: Said = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseIds:
    """The fields of a provider's response with its id and its time.

    Some servers draw ids so short that they repeat, so the time counts, too.
    """

    target: str
    id: str = "id"
    made: str | None = None

    def of(self, response: Any) -> Position | None:
        """The response's place; `None` where it has no id."""
        native = member(response, self.id)
        if not isinstance(native, str) or not native:
            return None
        when = None if self.made is None else member(response, self.made)
        return (native,) if when is None else (native, str(when))


class CallAnswerer:
    """Answers the calls of one conversation with the tools that `target` may use.

    `place` is what is known of their run and their response. `gate` asks a port of its own before
    the executor does.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        target: str,
        *,
        executor: ToolRunner | None = None,
        gate: Gate | None = None,
        place: Place,
        mend: Mended | None = None,
    ) -> None:
        self.registry = registry
        self.target = target
        self.runner = runner_for(executor)
        self.gate = gate
        self.place = place
        self.mend = mend

    async def answer_all(
        self, calls: Iterable[ProviderCall], *, response: Position | None
    ) -> list[Answer]:
        """An answer for each call, in order; they run in parallel, and all of them end.

        What ended before of the same `response` is taken from the ledger; where it is not known
        any more, the newest call with the same id and arguments is meant. Cancellation reaches
        every call.
        """
        waiting = [
            self._answer(call, None if response is None else (*response, index))
            for index, call in enumerate(calls)
        ]
        if len(waiting) == 1:
            return [await waiting[0]]
        return list(await asyncio.gather(*waiting))

    async def _answer(self, call: ProviderCall, position: Position | None) -> Answer:
        try:
            return Answer(call=call, value=await self._run(call, position))
        except Exception as exc:
            return Answer(call=call, error=exc)

    async def _run(self, call: ProviderCall, position: Position | None) -> Any:
        spec = self._spec(call.name)
        if not call.complete:
            return await self._refused(spec, call, position)
        args: Mapping[str, Any] = arguments_of(spec, call.arguments)
        if self.mend is not None:
            args = self.mend(spec, args)
        bind = partial(self._context, call, position)
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

    def _context(self, call: ProviderCall, position: Position | None) -> ToolContext:
        place = self.place
        ids = (call.call_id, place.run_id, place.thread_id)
        # Without a place the provider's id must do: the newest call with it is meant.
        ctx = ToolContext(*ids, bound_by=self.target, reexecutes=position is None)
        ctx.said = place.said
        run = place.run_id if place.run_is_known else None
        ctx.identity = Identity(
            run=run,
            conversation=place.thread_id or place.conversation or run,
            position=position,
            anchor=place.anchor,
        )
        return ctx

    async def _refused(self, spec: ToolSpec, call: ProviderCall, position: Position | None) -> Any:
        """Have the executor refuse a call that may be cut off, so that the ledger knows of it."""
        why = call.finish or "no finish reason"
        if not isinstance(self.runner, Executor):  # another runner might run it
            raise ToolArgsIncomplete(spec.name, why)
        ctx = self._context(call, position)
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
