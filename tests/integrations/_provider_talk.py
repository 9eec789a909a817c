"""A conversation in the form of one provider, its calls answered with `messages=`."""

from __future__ import annotations

import itertools
from typing import Any

from agent_adapter.integrations import anthropic, google_genai, openai

from .test_provider_calls import Provider

_NUMBERS = itertools.count(1000)


class Talk:
    """Messages that grow as a program's own loop makes them grow."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.name = provider.name
        self.messages: list[Any] = []
        self.last: Any = None
        self.options: dict[str, Any] = {}
        self.before: list[Any] = []

    def user(self, text: str) -> None:
        """One message of the user."""
        if self.name == "contents":
            self.messages.append({"role": "user", "parts": [{"text": text}]})
        else:
            self.messages.append({"role": "user", "content": text})

    def synthetic(self, text: str) -> None:
        """A message that a framework wrote as the user's."""
        self.user(text)
        self.messages[-1]["synthetic"] = True

    def summarise(self, keep: int) -> None:
        """A summary in place of all but the last messages."""
        kept = self.messages[-keep:]
        self.messages = []
        self.synthetic("what was said so far")
        self.messages += kept

    async def answer(
        self,
        garden: Any,
        *calls: tuple[str, str, Any],
        nameless: bool = False,
        previous: bool = False,
        **options: Any,
    ) -> str:
        """A response with these calls, answered; what the model reads of the first."""
        response = self.provider.response(*calls, number=next(_NUMBERS))
        if previous:
            response = response.model_copy(update={"previous_response_id": self.last.id})
        if nameless:
            field = "response_id" if self.name == "contents" else "id"
            response = response.model_copy(update={field: ""})
        self.last, self.options, self.before = response, options, list(self.messages)
        read = await self.again(garden)
        self.messages = [*self.before, *self._said(response), *self.answers]
        return read

    async def again(self, garden: Any, **options: Any) -> str:
        """The last response answered (again), with what was said before it."""
        runs = {
            "chat": openai.run_tool_calls,
            "responses": openai.run_tool_calls,
            "messages": anthropic.run_tool_calls,
            "contents": google_genai.function_responses,
        }
        before = self.messages if options else self.before
        given = {"executor": garden.executor, "messages": before} | self.options | options
        self.answers: list[Any] = await runs[self.name](self.last, garden.registry, **given)
        if self.name == "contents":
            parts = [part.model_dump(mode="json", exclude_none=True) for part in self.answers]
            self.answers = [{"role": "user", "parts": parts}]
        return _first(self.answers[0])

    def _said(self, response: Any) -> list[Any]:
        """The response as a program appends it to its messages."""
        if self.name == "chat":
            return [response.choices[0].message]
        if self.name == "responses":
            return list(response.output)
        if self.name == "messages":
            return [{"role": "assistant", "content": response.content}]
        return [response.candidates[0].content]


def _first(answer: Any) -> str:
    """The text of the first answer; of Gemini's the JSON of the error or the output."""
    import json

    if "parts" in answer:
        response = answer["parts"][0]["function_response"]["response"]
        return json.dumps(response if "error" in response else response["output"])
    content = answer.get("content", answer.get("output"))
    if isinstance(content, list):
        content = content[0]["content"]
    return str(content)
