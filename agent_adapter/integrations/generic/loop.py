"""A loop over a provider's own client: ask the model, run its calls, ask again."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from agent_adapter.core.errors import ApprovalPending
from agent_adapter.core.identity import Position
from agent_adapter.core.ports import ScopingRunner
from agent_adapter.exec.defaults import runner_for
from agent_adapter.exec.gate import Gate
from agent_adapter.exec.ids import new_id
from agent_adapter.exec.scope import current_scope
from agent_adapter.integrations.generic.clients import wire_for
from agent_adapter.integrations.quarantine import OnError
from agent_adapter.integrations.requirements import require_port
from agent_adapter.integrations.wires.calls import (
    Answer,
    CallAnswerer,
    Place,
    ProviderCall,
    settled,
)
from agent_adapter.integrations.wires.finish import FinishReason
from agent_adapter.integrations.wires.history import user_texts
from agent_adapter.integrations.wires.protocol import Turn, Wire

if TYPE_CHECKING:
    from agent_adapter.core.ports import ApprovalPort, ToolRunner
    from agent_adapter.core.registry import ToolRegistry
    from agent_adapter.core.types import RunLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece:
    """A piece of the model's text, in a streaming loop."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMade:
    """The model asks for a call; `arguments` are as it sent them."""

    call_id: str
    tool: str
    arguments: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """A call was answered; `text` is what the model reads."""

    call_id: str
    tool: str
    text: str
    is_error: bool


LoopEvent = TextPiece | CallMade | CallEnded
"""What a loop reports while it goes on."""


LoopStatus = Literal["done", "paused", "max-turns", "cut-off", "refused"]
"""How a loop can end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopResult:
    """How a loop ended.

    `status` is `"done"`, `"paused"` (calls wait for the decisions in `pending`), `"max-turns"`,
    `"cut-off"` (the provider ended the last answer before its end: `text` is not whole) or
    `"refused"` (the model declined; `text` is what it said). `finish` is why the last answer ended,
    `None` where the model was not asked.
    `messages` is the whole conversation in the provider's form, as JSON: with it and the same
    `run_id` the loop goes on where it stopped. `response` is the provider's last one, `None` after
    a streamed chat completion.
    """

    status: LoopStatus
    text: str
    messages: list[Any]
    turns: int
    run_id: str | None
    pending: tuple[str, ...] = ()
    response: Any = None
    finish: FinishReason | None = None


async def run_tool_loop(
    client: Any,
    registry: ToolRegistry,
    *,
    model: str,
    messages: str | Sequence[Any],
    executor: ToolRunner | None = None,
    approval: ApprovalPort | None = None,
    limits: RunLimits | None = None,
    api: Literal["chat", "responses"] | None = None,
    max_turns: int = 20,
    stream: bool = False,
    on_event: Callable[[LoopEvent], Awaitable[None] | None] | None = None,
    run_id: str | None = None,
    thread_id: str | None = None,
    on_error: OnError = "skip",
    **options: Any,
) -> LoopResult:
    """Ask the model, run the calls it makes, and ask again, until it makes none.

    `client` is an `AsyncOpenAI`, an `AsyncAnthropic` or a `google.genai.Client`; `messages` a
    prompt, or a conversation in the provider's form, which is not changed. The calls of one turn
    run in parallel. With `approval` that port is asked about confirm tools, else the executor's.
    `limits` hold for this run. `options` go into each request (for Gemini: into its config).

    Conversations that end in calls without answers are gone on with: these calls run first, each
    once, whatever ended before. Without `run_id` the loop is a run of its own. A tool that the
    provider cannot take is left out with a warning; `on_error="raise"` raises its error instead.

    Raises:
        IntegrationError: the client is none of these; the message says which to give.
        TypeError: `limits` with a runner without `run_scope`, or `approval` that is no port.
    """
    wire = wire_for(client, api)
    if max_turns < 1:
        raise ValueError(f"max_turns is 1 or more, not {max_turns!r}")
    runner = runner_for(executor)
    if approval is not None:
        require_port(approval)
    if run_id is None and current_scope.get() is None:
        run_id = new_id("run")
    answerer = CallAnswerer(
        registry,
        "generic",
        executor=runner,
        gate=Gate(runner, approval) if approval is not None else None,
        place=Place(run_id=run_id, thread_id=thread_id, said=user_texts(messages)),
        mend=wire.mend,
    )
    tools = wire.tools(registry.for_target("generic"), on_error)
    request = {"model": model, **options, **({"tools": tools} if tools else {})}
    past = wire.opening(messages) if isinstance(messages, str) else list(messages)
    loop = _Loop(
        wire=wire, answerer=answerer, request=request, messages=past, tell=partial(_tell, on_event)
    )
    async with AsyncExitStack() as scope:
        if limits is not None:
            await _limit(scope, runner, limits, run_id, thread_id)
        return await loop.run(max_turns, stream)


async def _limit(
    scope: AsyncExitStack,
    runner: ToolRunner,
    limits: RunLimits,
    run_id: str | None,
    thread_id: str | None,
) -> None:
    if not isinstance(runner, ScopingRunner):
        raise TypeError(
            f"limits need a runner with run_scope, such as an Executor, and "
            f"{type(runner).__name__} has none"
        )
    named = run_id or new_id("run")
    await scope.enter_async_context(runner.run_scope(named, limits=limits, thread_id=thread_id))


@dataclass(slots=True, kw_only=True)
class _Loop:
    """One run of the loop."""

    wire: Wire
    answerer: CallAnswerer
    request: Mapping[str, Any]
    messages: list[Any]
    tell: Callable[[LoopEvent], Awaitable[None]]
    turns: int = 0
    places: Counter[Position] = field(default_factory=Counter)
    last: Turn = field(default_factory=lambda: Turn(said=[], calls=[], text="", response=None))

    async def run(self, max_turns: int, stream: bool) -> LoopResult:
        """Go on until the model makes no call, a person is awaited, or the turns are used up."""
        calls = self.wire.open_calls(self.messages)
        response = None  # messages do not say which response brought these calls
        while True:
            if calls:
                try:
                    await self._answer(calls, response)
                except ApprovalPending as exc:
                    return self._ended("paused", exc.ids)
            elif self.turns and self.last.stopped.reason != "pause":
                return self._ended(self.last.stopped.status)
            if self.turns == max_turns:
                return self._ended("max-turns")
            calls = await self._ask(stream)
            response = self._place()

    async def _ask(self, stream: bool) -> list[ProviderCall]:
        async def piece(text: str) -> None:
            await self.tell(TextPiece(text=text))

        request = {**self.request, "messages": self.messages}
        self.last = await self.wire.ask(request, piece=piece if stream else None)
        self.turns += 1
        self.messages += self.last.said
        return self.last.calls

    def _place(self) -> Position:
        """Where the last response stands in the run; each is a new one, whatever id it repeats."""
        place = self.last.place or (new_id("response"),)
        self.places[place] += 1
        return place if self.places[place] == 1 else (*place, f"{self.places[place]}")

    async def _answer(self, calls: Sequence[ProviderCall], response: Position | None) -> None:
        for call in calls:
            made = CallMade(call_id=call.call_id, tool=call.name, arguments=call.arguments)
            await self.tell(made)
        answers = settled(await self.answerer.answer_all(calls, response=response))
        for answer in answers:
            await self.tell(_call_ended(answer))
        self.messages += self.wire.answers(answers)

    def _ended(self, status: LoopStatus, pending: tuple[str, ...] = ()) -> LoopResult:
        return LoopResult(
            status=status,
            text=self.last.text,
            messages=self.messages,
            turns=self.turns,
            run_id=self.answerer.place.run_id,
            pending=pending,
            response=self.last.response,
            finish=self.last.stopped.reason if self.turns else None,
        )


async def _tell(
    on_event: Callable[[LoopEvent], Awaitable[None] | None] | None, event: LoopEvent
) -> None:
    if on_event is not None:
        told = on_event(event)
        if inspect.isawaitable(told):
            await told


def _call_ended(answer: Answer) -> CallEnded:
    return CallEnded(
        call_id=answer.call.call_id,
        tool=answer.call.name,
        text=answer.text,
        is_error=answer.is_error,
    )
