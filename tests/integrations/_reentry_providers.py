"""Drivers of the re-entry matrix for programs with a loop of their own, and for the executor."""

from __future__ import annotations

import itertools
import json
from typing import Any

import agent_adapter as aa
from agent_adapter.core.answers import answer_text
from agent_adapter.integrations import anthropic, google_genai, openai
from agent_adapter.network.turns.turn import Turn as ChannelTurn

from ..network._turns import FakePort, turn_of_ann
from ._reentry import Driver, Turn, World, declare
from .test_provider_calls import Provider

_NUMBERS = itertools.count(5000)


class ProviderDriver(Driver):
    """A loop over a provider's responses, answered by the helper with `messages=`."""

    provider = ""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.form = Provider(self.provider)
        self.messages: list[Any] = []
        self.response: Any = None
        self.turn: Turn = []

    def _user(self, text: str) -> Any:
        if self.provider == "contents":
            return {"role": "user", "parts": [{"text": text}]}
        return {"role": "user", "content": text}

    def _response(self, turn: Turn) -> Any:
        return self.form.response(*turn, number=next(_NUMBERS))

    async def ask(self, *turns: Turn) -> None:
        """A message of the user, and the loop until it waits."""
        self.messages.append(self._user("go"))
        self.script = list(turns)
        self.response = None
        await self._loop()

    async def go_on(self) -> None:
        """The same response, which the program kept, is answered again."""
        await self._loop()

    async def _loop(self) -> None:
        self.waiting = False
        while self.script or self.response is not None:
            if self.response is None:
                self.turn = self.script.pop(0)
                self.response = self._response(self.turn)
            try:
                answers = await self._answer(self.response, self.messages)
            except aa.ApprovalPending:
                self.waiting = True
                return
            texts = self._texts(answers)
            self.note(*((call[1], text) for call, text in zip(self.turn, texts, strict=True)))
            self.messages += [*self._said(self.response), *self._appended(answers)]
            self.response = None

    async def _answer(self, response: Any, messages: list[Any]) -> list[Any]:
        run: Any = {
            "messages": anthropic.run_tool_calls,
            "contents": google_genai.function_responses,
        }.get(self.provider, openai.run_tool_calls)
        found: list[Any] = await run(
            response,
            self.world.registry,
            executor=self.world.executor,
            messages=messages,
            **self.options,
        )
        return found

    options: dict[str, Any] = {}  # noqa: RUF012  # replaced in `again`, never changed

    async def again(self, *turns: Turn) -> None:
        """The program names the run and counts its attempts."""
        for attempt in (1, 2):
            self.options = {}
            async with self.world.executor.run_scope("r1", thread_id="t1", attempt=attempt):
                first = turns[:1] if attempt == 1 else turns
                await self.ask(*first)
                while self.waiting or await self.world.inbox.list():
                    await self.world.approve_all()
                    await self.go_on()

    async def sub(self, turn: Turn) -> str:
        """The helper inside a tool."""
        answers = await self._answer(self._response(turn), [self._user("go")])
        return self._texts(answers)[0]

    def _texts(self, answers: list[Any]) -> list[str]:
        if self.provider == "chat":
            return [answer["content"] for answer in answers if answer["role"] == "tool"]
        if self.provider == "responses":
            return [answer["output"] for answer in answers]
        if self.provider == "messages":
            return [block["content"] for answer in answers for block in answer["content"]]
        found = [part.function_response.response for part in answers]
        return [json.dumps(item.get("output", item)) for item in found]

    def _appended(self, answers: list[Any]) -> list[Any]:
        return [{"role": "user", "parts": answers}] if self.provider == "contents" else answers

    def _said(self, response: Any) -> list[Any]:
        if self.provider == "chat":
            return [response.choices[0].message]
        if self.provider == "responses":
            return list(response.output)
        if self.provider == "messages":
            return [{"role": "assistant", "content": response.content}]
        return [response.candidates[0].content]


class ChatDriver(ProviderDriver):
    """OpenAI's Chat Completions."""

    provider = "chat"


class ResponsesDriver(ProviderDriver):
    """OpenAI's Responses."""

    provider = "responses"


class AnthropicDriver(ProviderDriver):
    """Anthropic's Messages."""

    provider = "messages"


class GeminiDriver(ProviderDriver):
    """Gemini's contents."""

    provider = "contents"


class ExecutorDriver(Driver):
    """A program that calls the executor in a run of its own; its steps are the turns."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.runs = 0
        self.attempt = 1
        self.turns: list[Turn] = []

    async def ask(self, *turns: Turn) -> None:
        """A new run of the conversation."""
        self.runs += 1
        self.attempt = 1
        self.turns = list(turns)
        await self._run()

    async def go_on(self) -> None:
        """The program makes its run again, and says so."""
        self.attempt += 1
        await self._run()

    async def again(self, *turns: Turn) -> None:
        """Once to the first turn, then from the start."""
        await self.ask(*turns[:1])
        await self.settled()
        self.turns = list(turns)
        await self.go_on()

    async def _run(self) -> None:
        self.waiting = False
        executor = self.world.executor
        async with executor.run_scope(f"r{self.runs}", thread_id="t1", attempt=self.attempt):
            for turn in self.turns:
                self.note(*[(call[1], await self._call(*call)) for call in turn])
        self.waiting = bool(self.held())

    async def _call(self, call_id: Any, tool: str, args: dict[str, Any]) -> str:
        ctx = aa.ToolContext(call_id)
        try:
            return answer_text(await self.world.executor.run(tool, args, ctx=ctx))
        except aa.AgentAdapterError as exc:
            return answer_text(error=exc)

    async def sub(self, turn: Turn) -> str:
        """The call itself: there is no agent."""
        call_id, tool, args = turn[0]
        said: str = await self.world.executor.run(tool, args, ctx=aa.ToolContext(call_id))
        return said


class ChannelDriver(ExecutorDriver):
    """A turn of a channel: the hub makes it again as attempt n."""

    async def _run(self) -> None:
        self.waiting = False
        turn: ChannelTurn = turn_of_ann(
            FakePort(),
            executor=self.world.executor,
            attempt=self.attempt,
            turn_id=f"trn_{self.runs}",
        )
        async with turn.scope():
            for calls in self.turns:
                self.note(*[(call[1], await self._call(*call)) for call in calls])
        self.waiting = bool(self.held())


_NODE = "has no nodes"
_NO_NODES = f"a program's own loop {_NODE}"
_NO_TRAVEL = "keeps no states to go back to"
for name in ("openai chat", "openai responses", "anthropic", "gemini"):
    declare(
        name,
        {"node-retry": _NO_NODES, "travel": f"a list of messages {_NO_TRAVEL}"},
        {} if name in ("gemini",) else {"none": "the API gives each call an id, or an empty one"},
    )
for name in ("executor", "channel turn"):
    declare(name, {"node-retry": f"it {_NODE}", "travel": f"it {_NO_TRAVEL}"}, {})
