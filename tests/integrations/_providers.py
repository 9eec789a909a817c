"""Scripted providers: the real SDK clients over a mock transport, streaming or not.

A script's turn is a text, or the calls that the model makes as `(id, name, arguments)`; arguments
given as text are sent as they stand. `Ended(turn, word)` ends one with a finish reason of the
provider. What the clients sent is kept in `requests`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Ended:
    """A turn that ends with the provider's own `word` for why."""

    turn: Any
    word: str | None


def _taken(turn: Any, usual: str) -> tuple[Any, Any]:
    """The turn itself and its finish reason."""
    return (turn.turn, turn.word) if isinstance(turn, Ended) else (turn, usual)


class Script:
    """The turns of a model, handed out one for each request; afterwards it says "done"."""

    distribution: str
    """The client's, whose older releases use another HTTP library."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.requests: list[dict[str, Any]] = []
        self.number = 0

    @property
    def library(self) -> Any:
        """The HTTP library of the installed client."""
        needed = metadata.requires(self.distribution) or ()
        newer = any(text.startswith("httpx2") and "extra" not in text for text in needed)
        return import_module("httpx2" if newer else "httpx")

    @property
    def transport(self) -> Any:
        """Answers the requests of one client."""
        return self.library.MockTransport(self._handle)

    @property
    def http(self) -> Any:
        """An HTTP client for an SDK."""
        return self.library.AsyncClient(transport=self.transport)

    def _handle(self, request: Any) -> Any:
        body = json.loads(request.content)
        self.requests.append(body)
        self.number = next(_NUMBERS)  # as a provider gives out response ids
        turn = self.turns.pop(0) if self.turns else "done"
        streamed = bool(body.get("stream")) or "stream" in str(request.url)
        if not streamed:
            return self.library.Response(200, json=self.whole(turn))
        lines = "".join(_event(*event) for event in self.pieces(turn))
        return self.library.Response(200, text=lines, headers={"content-type": "text/event-stream"})

    def whole(self, turn: Any) -> dict[str, Any]:
        """The turn as one response."""
        raise NotImplementedError

    def pieces(self, turn: Any) -> Iterator[tuple[str | None, Any]]:
        """The turn as a stream's events."""
        raise NotImplementedError


def _event(name: str | None, data: Any) -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "") + f"data: {text}\n\n"


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


class ChatScript(Script):
    """OpenAI's Chat Completions."""

    distribution = "openai"

    def client(self) -> Any:
        """An async client."""
        from openai import AsyncOpenAI

        return AsyncOpenAI(api_key="k", http_client=self.http, max_retries=0)

    def whole(self, turn: Any) -> dict[str, Any]:
        """One completion."""
        turn, word = _taken(turn, "stop")
        message: dict[str, Any] = {"role": "assistant", "content": turn}
        if not isinstance(turn, str):
            calls = [
                {"id": i, "type": "function", "function": {"name": n, "arguments": _text(a)}}
                for i, n, a in turn
            ]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        choice = {"index": 0, "finish_reason": word, "message": message}
        return self._base("chat.completion") | {"choices": [choice]}

    def pieces(self, turn: Any) -> Iterator[tuple[str | None, Any]]:
        """Deltas, arguments in two pieces."""
        turn, word = _taken(turn, "stop" if isinstance(turn, str) else "tool_calls")
        if isinstance(turn, str):
            deltas: list[dict[str, Any]] = [{"content": half} for half in _halves(turn)]
        else:
            deltas = []
            for place, (i, name, arguments) in enumerate(turn):
                first, rest = _halves(_text(arguments))
                function = {"name": name, "arguments": first}
                head = {"index": place, "id": i, "type": "function", "function": function}
                tail = {"index": place, "function": {"arguments": rest}}
                deltas += [{"tool_calls": [head]}, {"tool_calls": [tail]}]
        for delta, why in [*((delta, None) for delta in deltas), ({}, word)]:
            choice = {"index": 0, "finish_reason": why, "delta": delta}
            yield None, self._base("chat.completion.chunk") | {"choices": [choice]}
        yield None, "[DONE]"

    def _base(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{self.number}", "object": kind, "created": 1, "model": "m"}

    def answers(self, request: int = -1) -> dict[str, str]:
        """What the model read of each call, by call id."""
        return {
            m["tool_call_id"]: m["content"]
            for m in self.requests[request]["messages"]
            if m["role"] == "tool"
        }


class ResponsesScript(Script):
    """OpenAI's Responses."""

    distribution = "openai"

    def client(self) -> Any:
        """An async client."""
        from openai import AsyncOpenAI

        return AsyncOpenAI(api_key="k", http_client=self.http, max_retries=0)

    def whole(self, turn: Any) -> dict[str, Any]:
        """One response; an item's id is not the call's. An `Ended` one is incomplete."""
        turn, word = _taken(turn, "")
        status = "incomplete" if word else "completed"
        if isinstance(turn, str):
            text = {"type": "output_text", "text": turn, "annotations": []}
            message = {"type": "message", "id": "msg_1", "role": "assistant"}
            output: list[Any] = [message | {"status": status, "content": [text]}]
        else:
            output = [
                {
                    "type": "function_call",
                    "id": f"fc_{place}",
                    "call_id": i,
                    "name": name,
                    "arguments": _text(arguments),
                    "status": status,
                }
                for place, (i, name, arguments) in enumerate(turn)
            ]
        return {
            "id": f"resp_{self.number}",
            "object": "response",
            "created_at": 1,
            "model": "m",
            "status": status,
            "incomplete_details": {"reason": word} if word else None,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }

    def pieces(self, turn: Any) -> Iterator[tuple[str | None, Any]]:
        """Text deltas, then the completed response."""
        response = self.whole(turn)
        started = response | {"output": [], "status": "in_progress"}
        order = 0

        def event(kind: str, **data: Any) -> tuple[str, Any]:
            nonlocal order
            order += 1
            return kind, {"type": kind, "sequence_number": order, **data}

        yield event("response.created", response=started)
        text = _taken(turn, "")[0]
        for half in _halves(text) if isinstance(text, str) else ():
            yield event(
                "response.output_text.delta",
                item_id="msg_1",
                output_index=0,
                content_index=0,
                delta=half,
                logprobs=[],
            )
        yield event(f"response.{response['status']}", response=response)

    def answers(self, request: int = -1) -> dict[str, str]:
        """What the model read of each call, by call id."""
        return {
            item["call_id"]: item["output"]
            for item in self.requests[request]["input"]
            if item.get("type") == "function_call_output"
        }


class MessagesScript(Script):
    """Anthropic's Messages API."""

    distribution = "anthropic"

    def client(self) -> Any:
        """An async client."""
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(api_key="k", http_client=self.http, max_retries=0)

    def whole(self, turn: Any) -> dict[str, Any]:
        """One message."""
        turn, word = _taken(turn, "end_turn" if isinstance(turn, str) else "tool_use")
        calls = not isinstance(turn, str)
        content: list[Any] = [{"type": "text", "text": turn}]
        if calls:
            content = [
                {"type": "tool_use", "id": i, "name": name, "input": arguments}
                for i, name, arguments in turn
            ]
        return {
            "id": f"msg_{self.number}",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": content,
            "stop_reason": word,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    def pieces(self, turn: Any) -> Iterator[tuple[str | None, Any]]:
        """Content blocks in deltas."""
        message = self.whole(turn)
        blocks = message.pop("content")
        started = message | {"content": [], "stop_reason": None}
        yield "message_start", {"type": "message_start", "message": started}
        for index, block in enumerate(blocks):
            place = {"index": index}
            if block["type"] == "text":
                empty, deltas = (
                    {"type": "text", "text": ""},
                    [{"type": "text_delta", "text": half} for half in _halves(block["text"])],
                )
            else:
                empty, deltas = (
                    block | {"input": {}},
                    [
                        {"type": "input_json_delta", "partial_json": half}
                        for half in _halves(_text(block["input"]))
                    ],
                )
            start = {"type": "content_block_start", "content_block": empty}
            yield "content_block_start", start | place
            for delta in deltas:
                yield (
                    "content_block_delta",
                    {"type": "content_block_delta", "delta": delta} | place,
                )
            yield "content_block_stop", {"type": "content_block_stop"} | place
        stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        usage = {"output_tokens": 1}
        yield "message_delta", {"type": "message_delta", "delta": stop, "usage": usage}
        yield "message_stop", {"type": "message_stop"}

    def results(self, request: int = -1) -> dict[str, dict[str, Any]]:
        """The result blocks that the model read, by call id."""
        return {
            block["tool_use_id"]: block
            for message in self.requests[request]["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "tool_result"
        }

    def answers(self, request: int = -1) -> dict[str, str]:
        """What the model read of each call, by call id."""
        return {call_id: _read(block) for call_id, block in self.results(request).items()}


def _read(block: dict[str, Any]) -> str:
    content = block["content"]
    if isinstance(content, str):
        return content
    return "".join(str(part["text"]) for part in content)


class GeminiScript(Script):
    """Gemini's generate-content API; `ids=False` is a backend that gives calls no id."""

    distribution = "google-genai"

    def __init__(self, *turns: Any, ids: bool = True) -> None:
        super().__init__(*turns)
        self.ids = ids

    def client(self) -> Any:
        """A client."""
        from google import genai
        from google.genai.types import HttpOptions

        return genai.Client(api_key="k", http_options=HttpOptions(httpx_async_client=self.http))

    def whole(self, turn: Any) -> dict[str, Any]:
        """One candidate."""
        turn, word = _taken(turn, "STOP")
        return self._with(self._parts(turn), word)

    def pieces(self, turn: Any) -> Iterator[tuple[str | None, Any]]:
        """One chunk for each part, a text in two, and one with the finish reason."""
        turn, word = _taken(turn, "STOP")
        for part in self._parts(turn):
            if "text" in part:
                for half in _halves(part["text"]):
                    yield None, self._with([{"text": half}], None)
            else:
                yield None, self._with([part], None)
        yield None, self._with([], word)

    def _parts(self, turn: Any) -> list[dict[str, Any]]:
        if isinstance(turn, str):
            return [{"text": turn}]
        return [
            {"functionCall": ({"id": i} if self.ids else {}) | {"name": name, "args": arguments}}
            for i, name, arguments in turn
        ]

    def _with(self, parts: list[dict[str, Any]], word: str | None) -> dict[str, Any]:
        content = {"role": "model", "parts": parts}
        candidate = {"content": content, "index": 0} | ({"finishReason": word} if word else {})
        return {"candidates": [candidate], "responseId": f"gem_{self.number}"}

    def responses(self, request: int = -1) -> list[dict[str, Any]]:
        """The function responses that the model read, in order."""
        return [
            part["functionResponse"]
            for content in self.requests[request]["contents"]
            for part in content["parts"]
            if "functionResponse" in part
        ]

    def answers(self, request: int = -1) -> dict[str, str]:
        """What the model read of each call, by call id, as JSON."""
        return {r.get("id", ""): json.dumps(r["response"]) for r in self.responses(request)}
