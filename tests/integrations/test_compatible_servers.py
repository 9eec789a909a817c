"""S9: streams as other servers send OpenAI's API, and fields of theirs that must come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("openai")
pytest.importorskip("anthropic")
pytest.importorskip("google.genai")

import agent_adapter as aa
from agent_adapter.integrations.generic import LoopResult, run_tool_loop

from ._providers import ChatScript, GeminiScript, MessagesScript

pytestmark = [pytest.mark.anyio, pytest.mark.contract]


class Chunks(ChatScript):
    """Turns are lists of deltas, sent as they stand; a `dict` is a whole message."""

    def pieces(self, turn: Any) -> Iterator[tuple[str | None, Any]]:
        """One chunk for each delta."""
        if isinstance(turn, str):
            yield from super().pieces(turn)
            return
        for delta in turn:
            choice = {"index": 0, "finish_reason": None, "delta": delta}
            yield None, self._base("chat.completion.chunk") | {"choices": [choice]}
        choice = {"index": 0, "finish_reason": "tool_calls", "delta": {}}
        yield None, self._base("chat.completion.chunk") | {"choices": [choice]}
        yield None, "[DONE]"

    def whole(self, turn: Any) -> dict[str, Any]:
        """One completion."""
        if not isinstance(turn, dict):
            return super().whole(turn)
        choice = {"index": 0, "finish_reason": "tool_calls", "message": turn}
        return self._base("chat.completion") | {"choices": [choice]}


class Looker:
    """`look(at)`; `seen` is what it was called with."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.registry = aa.ToolRegistry()

        @self.registry.tool(effects="read")
        async def look(at: str = "") -> str:
            """Looks."""
            self.seen.append(at)
            return at

    async def loop(self, script: Any, *, stream: bool = True) -> LoopResult:
        """One loop over the script."""
        options: dict[str, Any] = {"model": "m", "messages": "go", "stream": stream}
        executor = aa.Executor(self.registry, store=aa.open_store("memory://"))
        return await run_tool_loop(script.client(), self.registry, executor=executor, **options)


def call(**fields: Any) -> dict[str, Any]:
    """A delta with a piece of one call; `name` and `arguments` go into its function."""
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    return {"tool_calls": [fields | ({"function": function} if function else {})]}


A, B = '{"at": "a"}', '{"at": "b"}'
STREAMS: dict[str, list[Any]] = {
    "one index for both": [
        call(index=0, id="c1", name="look", arguments=A),
        call(index=0, id="c2", name="look", arguments=B),
    ],
    "one index, in pieces": [
        call(index=0, id="c1", name="look", arguments='{"at": '),
        call(index=0, arguments='"a"}'),
        call(index=0, id="c2", name="look", arguments='{"at": '),
        call(index=0, arguments='"b"}'),
    ],
    "one index, no ids": [
        call(index=0, name="look", arguments=A),
        call(index=0, name="look", arguments=B),
    ],
    "no index": [
        call(id="c1", name="look", arguments=A),
        call(id="c2", name="look", arguments=B),
    ],
    "empty ids": [
        call(index=0, id="", name="look", arguments=A),
        call(index=1, id="", name="look", arguments=B),
    ],
    "name in every chunk": [
        call(index=0, id="c1", name="look", arguments=""),
        call(index=0, id="c1", name="look", arguments='{"at":'),
        call(index=0, id="c1", name="look", arguments='"a"}'),
        call(index=1, id="c2", name="look", arguments=B),
        call(index=1, id="c2", name="look", arguments=""),
    ],
    "name that grows": [
        call(index=0, id="c1", name="lo"),
        call(index=0, name="look", arguments=A),
        call(index=1, id="c2", name="lo"),
        call(index=1, name="ok", arguments=B),
    ],
    "nulls": [
        None,
        {"role": "assistant", "content": None, "tool_calls": None},
        call(index=0, id="c1", name="look", arguments=None),
        call(index=0, id=None, name=None, arguments=A),
        call(index=1, id="c2", name="look", arguments=B),
        call(index=1, id=None, type=None),
        None,
    ],
    "arguments as an object": [
        call(index=0, id="c1", name="look", arguments={"at": "a"}),
        call(index=1, id="c2", name="look", arguments={"at": "b"}),
    ],
    "interleaved": [
        call(index=0, id="c1", name="look", arguments='{"at":'),
        call(index=1, id="c2", name="look", arguments='{"at":'),
        call(index=0, arguments='"a"}'),
        call(index=1, arguments='"b"}'),
    ],
}


@pytest.mark.parametrize("deltas", STREAMS.values(), ids=STREAMS)
async def test_two_calls_are_two_calls(deltas: list[Any]) -> None:
    """S9: each with its own name, arguments, id and answer."""
    looker = Looker()
    script = Chunks(deltas)
    result = await looker.loop(script)
    assert sorted(looker.seen) == ["a", "b"]
    assert result.status == "done"
    said, *answers = script.requests[1]["messages"][1:]
    asked = {c["id"]: json.loads(c["function"]["arguments"])["at"] for c in said["tool_calls"]}
    assert {m["tool_call_id"]: json.loads(m["content"]) for m in answers} == asked


@pytest.mark.parametrize("stream", [False, True])
async def test_call_without_a_name_is_answered(stream: bool) -> None:
    """S9: the model reads that there is no such tool, and which there are."""
    nameless = call(index=0, id="c1", name=None, arguments="{}")
    script = Chunks([nameless] if stream else {"role": "assistant", "content": None} | nameless)
    await Looker().loop(script, stream=stream)
    assert "tool-not-found" in script.answers()["c1"]
    assert "look" in script.answers()["c1"]


async def test_further_choices_are_left_out() -> None:
    """S9: with `n=2` the chunks of both come in one stream."""

    class Two(Chunks):
        def pieces(self, turn: Any) -> Iterator[tuple[str | None, Any]]:
            for name, data in super().pieces(turn):
                if isinstance(data, dict):
                    other = json.loads(json.dumps(data["choices"][0])) | {"index": 1}
                    yield name, data | {"choices": [other]}
                yield name, data

    looker = Looker()
    await looker.loop(Two([call(index=0, id="c1", name="look", arguments=A)]))
    assert looker.seen == ["a"]


EXTRA = {"extra_content": {"google": {"thought_signature": "c2ln"}}}


async def test_fields_of_a_server_come_back_from_a_stream() -> None:
    """S9: a thought's signature on the call, reasoning that came in pieces."""
    script = Chunks(
        [
            {"role": "assistant", "reasoning_content": "let me "},
            {"reasoning_content": "look", "reasoning_details": [{"type": "t", "text": "1"}]},
            {"reasoning_details": [{"type": "t", "text": "2"}]},
            call(index=0, id="c1", name="look", arguments='{"at":', **EXTRA),
            call(index=0, arguments='"a"}'),
        ]
    )
    await Looker().loop(script)
    said = script.requests[1]["messages"][1]
    assert said["reasoning_content"] == "let me look"
    assert [part["text"] for part in said["reasoning_details"]] == ["1", "2"]
    assert said["tool_calls"][0]["extra_content"] == EXTRA["extra_content"]


async def test_fields_of_a_server_come_back_from_a_message() -> None:
    """S9: not streamed."""
    message = {"role": "assistant", "content": None, "reasoning_content": "let me look"}
    message |= call(id="c1", type="function", name="look", arguments=A, **EXTRA)
    script = Chunks(message)
    await Looker().loop(script, stream=False)
    said = script.requests[1]["messages"][1]
    assert said["reasoning_content"] == "let me look"
    assert said["tool_calls"][0]["extra_content"] == EXTRA["extra_content"]


@pytest.mark.parametrize("stream", [False, True])
async def test_gemini_s_thought_signature_comes_back(stream: bool) -> None:
    """S9: Gemini 3 refuses a conversation without it."""

    class Thinking(GeminiScript):
        def _parts(self, turn: Any) -> list[dict[str, Any]]:
            parts = super()._parts(turn)
            return [part | {"thoughtSignature": "c2ln"} for part in parts]

    script = Thinking([("c1", "look", {"at": "a"})])
    await Looker().loop(script, stream=stream)
    (part,) = script.requests[1]["contents"][1]["parts"]
    assert part["thoughtSignature"] == "c2ln"


@pytest.mark.parametrize("stream", [False, True])
async def test_anthropic_s_thinking_comes_back(stream: bool) -> None:
    """S9: with the signature that the API checks."""

    class Thinking(MessagesScript):
        def whole(self, turn: Any) -> dict[str, Any]:
            message = super().whole(turn)
            thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
            return message | {"content": [thought, *message["content"]]}

        def pieces(self, turn: Any) -> Iterator[tuple[str | None, Any]]:
            thought = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": "hm"},
                {"type": "signature_delta", "signature": "c2ln"},
            ]
            start, *rest = MessagesScript(turn).pieces(turn)
            yield start
            block = {"type": "content_block_start", "index": 0, "content_block": thought}
            yield "content_block_start", block
            for delta in deltas:
                named = {"type": "content_block_delta", "index": 0, "delta": delta}
                yield "content_block_delta", named
            yield "content_block_stop", {"type": "content_block_stop", "index": 0}
            for name, data in rest:
                moved = {"index": data["index"] + 1} if "index" in data else {}
                yield name, data | moved

    script = Thinking([("c1", "look", {"at": "a"})])
    await Looker().loop(script, stream=stream)
    thought = script.requests[1]["messages"][1]["content"][0]
    assert (thought["thinking"], thought["signature"]) == ("hm", "c2ln")
