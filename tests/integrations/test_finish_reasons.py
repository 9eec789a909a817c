"""Every finish reason of every wire, streamed and not: what was cut off is neither run nor done."""

from __future__ import annotations

from typing import Any, get_args

import pytest

pytest.importorskip("openai")
pytest.importorskip("anthropic")
pytest.importorskip("google.genai")

import agent_adapter as aa
from agent_adapter.exec import ledger
from agent_adapter.integrations import anthropic, google_genai, openai
from agent_adapter.integrations.generic import LoopResult, run_tool_loop

from ._kit_support import FakeRunner
from ._providers import ChatScript, Ended, GeminiScript, MessagesScript, ResponsesScript
from ._shop import YES, Shop, asking

pytestmark = [pytest.mark.anyio, pytest.mark.contract]

WIRES: dict[str, tuple[Any, dict[str, Any]]] = {
    "chat": (ChatScript, {}),
    "responses": (ResponsesScript, {"api": "responses"}),
    "messages": (MessagesScript, {}),
    "contents": (GeminiScript, {}),
}
# Every reason that may cut a call off, in each provider's words.
CUTS: dict[str, dict[str, str]] = {
    "chat": {"length": "length", "content_filter": "content-filter", "refusal": "refusal"},
    "responses": {
        "max_output_tokens": "length",
        "content_filter": "content-filter",
        "max_messages": "unknown",
        "steered": "unknown",
    },
    "messages": {
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "refusal": "refusal",
        "a_word_of_tomorrow": "unknown",
    },
    "contents": {
        "MAX_TOKENS": "length",
        "CONTINUATION": "length",
        "SAFETY": "content-filter",
        "RECITATION": "content-filter",
        "LANGUAGE": "content-filter",
        "BLOCKLIST": "content-filter",
        "PROHIBITED_CONTENT": "content-filter",
        "SPII": "content-filter",
        "IMAGE_SAFETY": "content-filter",
        "IMAGE_PROHIBITED_CONTENT": "content-filter",
        "IMAGE_RECITATION": "content-filter",
        "ESCALATION": "content-filter",
        "MODEL_ARMOR": "content-filter",
        "MALFORMED_FUNCTION_CALL": "malformed-call",
        "UNEXPECTED_TOOL_CALL": "malformed-call",
        "TOO_MANY_TOOL_CALLS": "malformed-call",
        "MALFORMED_RESPONSE": "malformed-call",
        "FINISH_REASON_UNSPECIFIED": "unknown",
        "OTHER": "unknown",
        "IMAGE_OTHER": "unknown",
        "NO_IMAGE": "unknown",
        "MISSING_THOUGHT_SIGNATURE": "unknown",
        "PUP_LIMITED_DISABLED": "unknown",
    },
}
NORMAL: dict[str, tuple[str, ...]] = {
    "chat": ("stop", "tool_calls", "function_call", "eos_token"),
    "responses": ("",),
    "messages": ("tool_use", "end_turn"),
    "contents": ("STOP",),
}
OTHERS = {"messages": {"pause_turn", "stop_sequence"}}
"""Words with tests of their own."""
CASES = [(wire, word) for wire, words in CUTS.items() for word in words]
STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


def _words_of_the_clients() -> dict[str, set[str]]:
    """Every word that the installed clients know for why a response ended."""
    from anthropic.types import StopReason
    from google.genai.types import FinishReason
    from openai.types.chat.chat_completion import Choice
    from openai.types.responses.response import IncompleteDetails

    def listed(annotation: Any) -> set[str]:
        parts = get_args(annotation)
        return {part for part in parts if isinstance(part, str)}.union(*map(listed, parts))

    return {
        "chat": listed(Choice.model_fields["finish_reason"].annotation),
        "responses": listed(IncompleteDetails.model_fields["reason"].annotation),
        "messages": listed(StopReason),
        "contents": {reason.value for reason in FinishReason},
    }


@pytest.mark.parametrize("wire", WIRES)
def test_every_word_of_a_client_is_tried(wire: str) -> None:
    """A word that a provider adds is not left to chance: this fails until it has a row here."""
    tried = {*CUTS[wire], *NORMAL[wire], *OTHERS.get(wire, ())}
    assert _words_of_the_clients()[wire] - tried == set()


class Files:
    """`remove(only)` with a default that deletes everything; `ran` is what it was called with."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.registry = aa.ToolRegistry()
        self.store = aa.open_store("memory://")
        self.executor = aa.Executor(self.registry, store=self.store)

        @self.registry.tool
        async def remove(only: str = "*", note: str = "") -> str:
            """Removes files."""
            self.ran.append(only)
            return "removed"

    async def loop(self, wire: str, *turns: Any, **more: Any) -> tuple[LoopResult, Any]:
        """One loop over a script of that wire, and the script."""
        make, options = WIRES[wire]
        script = make(*turns)
        given = {"messages": "go", "executor": self.executor, "model": "m"}
        return await run_tool_loop(
            script.client(), self.registry, **(given | options | more)
        ), script

    async def refusals(self, run_id: str | None) -> list[dict[str, Any]]:
        """What the ledger says of the calls that it refused."""
        await self.executor.aclose()
        found = await ledger.entries(self.store, run_id or "")
        return [dict(entry.facts) for entry in found if entry.kind == "refused"]


def cut(wire: str, streamed: bool) -> Any:
    """A call of which the end is missing, as far as the wire can show it."""
    if wire == "contents" or (wire == "messages" and not streamed):
        return ("c1", "remove", {"note": "x"})
    return ("c1", "remove", '{"note": "x", "only": "*.tm')


@STREAMED
@pytest.mark.parametrize(("wire", "word"), CASES)
async def test_call_of_a_cut_off_response_is_refused(wire: str, word: str, streamed: bool) -> None:
    """S1, S2: it does not run with what came, the model and the ledger are told."""
    files = Files()
    result, script = await files.loop(
        wire, Ended([cut(wire, streamed)], word), "sorry", stream=streamed
    )
    assert files.ran == []
    assert (result.status, result.text, result.finish) == ("done", "sorry", "stop")
    read = script.answers()["c1"]
    assert "tool-args-incomplete" in read and word in read
    (refusal,) = await files.refusals(result.run_id)
    assert refusal["error"] == "tool-args-incomplete"


@STREAMED
@pytest.mark.parametrize(("wire", "word"), CASES)
@pytest.mark.parametrize("arguments", ["", "{}"])
async def test_call_without_arguments_may_be_cut_off_too(
    wire: str, word: str, streamed: bool, arguments: str
) -> None:
    """S2: nothing is not the defaults."""
    files = Files()
    sent = arguments if wire in ("chat", "responses") else {}
    turn = Ended([("c1", "remove", sent)], word)
    await files.loop(wire, turn, stream=streamed)
    assert files.ran == []


@STREAMED
@pytest.mark.parametrize(("wire", "word"), CASES)
async def test_text_that_was_cut_off_is_not_done(wire: str, word: str, streamed: bool) -> None:
    """S1, S2: the caller sees that the answer is not whole, and why."""
    result, _ = await Files().loop(wire, Ended("half an answ", word), stream=streamed)
    finish = CUTS[wire][word]
    status = "refused" if finish == "refusal" else "cut-off"
    assert (result.status, result.finish, result.text) == (status, finish, "half an answ")


@STREAMED
@pytest.mark.parametrize(("wire", "word"), [(w, x) for w, words in NORMAL.items() for x in words])
async def test_normal_ends_run_and_are_done(wire: str, word: str, streamed: bool) -> None:
    """A finish reason that says so, in the words of compatible servers as well."""
    files = Files()
    turn = Ended([("c1", "remove", {"only": "a"})], word)
    result, _ = await files.loop(wire, turn, stream=streamed)
    assert files.ran == ["a"]
    assert result.status == "done"


@pytest.mark.parametrize("wire", ["chat", "messages", "contents"])
async def test_stream_without_a_finish_reason_is_cut_off(wire: str) -> None:
    """S2: the connection may have ended early."""
    result, _ = await Files().loop(wire, Ended("half an answ", None), stream=True)
    assert (result.status, result.finish) == ("cut-off", "unknown")


async def test_whole_arguments_show_themselves() -> None:
    """A server without finish reasons still calls tools: JSON lacks nothing once it is valid."""
    files = Files()
    calls = [("c1", "remove", {"only": "a"}), ("c2", "remove", ""), ("c3", "remove", "{")]
    await files.loop("chat", Ended(calls, None), stream=True)
    assert files.ran == ["a"]


@STREAMED
async def test_whole_item_of_an_incomplete_response_runs(streamed: bool) -> None:
    """Responses marks each item by itself."""

    class Mixed(ResponsesScript):
        def whole(self, turn: Any) -> dict[str, Any]:
            response = super().whole(turn)
            if response["status"] == "incomplete":
                response["output"][0]["status"] = "completed"
            return response

    files = Files()
    script = Mixed(Ended([("c1", "remove", {"only": "a"}), cut("responses", True)], "length"))
    options = {"messages": "go", "model": "m", "api": "responses", "stream": streamed}
    await run_tool_loop(script.client(), files.registry, executor=files.executor, **options)
    assert files.ran == ["a"]


@STREAMED
async def test_paused_turn_runs_none_of_its_calls(streamed: bool) -> None:
    """Anthropic goes on with such a turn when it is sent back unchanged."""
    files = Files()
    calls = [("c1", "remove", {"only": "a"})]
    result, script = await files.loop("messages", Ended(calls, "pause_turn"), stream=streamed)
    assert (files.ran, result.turns) == ([], 2)
    assert script.requests[1]["messages"][-1]["content"][0]["id"] == "c1"


@STREAMED
async def test_stop_sequence_ends_a_text_and_may_cut_a_call_off(streamed: bool) -> None:
    """The caller's own sequence may stand in the middle of an argument."""
    files = Files()
    calls = Ended([("c1", "remove", {"only": "a"})], "stop_sequence")
    await files.loop("messages", calls, stream=streamed)
    assert files.ran == []
    result, _ = await files.loop("messages", Ended("an answ", "stop_sequence"), stream=streamed)
    assert (result.status, result.finish, result.text) == ("done", "stop", "an answ")


@STREAMED
@pytest.mark.parametrize("wire", ["chat", "responses"])
async def test_refusal_is_told(wire: str, streamed: bool) -> None:
    """What the model says when it declines is the text of the result."""

    class Refusing(WIRES[wire][0]):  # type: ignore[misc]
        def whole(self, turn: Any) -> dict[str, Any]:
            response: dict[str, Any] = super().whole("")
            if wire == "chat":
                response["choices"][0]["message"] |= {"content": None, "refusal": turn}
            else:
                part = {"type": "refusal", "refusal": turn}
                response["output"][0]["content"] = [part]
            return response

        def pieces(self, turn: Any) -> Any:
            for name, data in super().pieces(turn):
                if wire == "chat" and isinstance(data, dict):
                    delta = data["choices"][0]["delta"]
                    if "content" in delta:
                        delta["refusal"] = delta.pop("content")
                yield name, data

    options: dict[str, Any] = {"messages": "go", "model": "m", "stream": streamed}
    script = Refusing("I will not")
    result = await run_tool_loop(script.client(), aa.ToolRegistry(), **(options | WIRES[wire][1]))
    assert (result.status, result.finish, result.text) == ("refused", "refusal", "I will not")


async def test_blocked_prompt_is_cut_off() -> None:
    """Gemini answers it without a candidate."""

    class Blocked(GeminiScript):
        def whole(self, turn: Any) -> dict[str, Any]:
            return {"promptFeedback": {"blockReason": "SAFETY"}}

    result = await run_tool_loop(Blocked("x").client(), aa.ToolRegistry(), model="m", messages="go")
    assert (result.status, result.finish, result.text) == ("cut-off", "content-filter", "")


async def test_failed_response_is_raised() -> None:
    """It is neither text nor call."""

    class Failed(ResponsesScript):
        def whole(self, turn: Any) -> dict[str, Any]:
            error = {"code": "server_error", "message": "x"}
            return super().whole(turn) | {"status": "failed", "error": error}

    with pytest.raises(aa.IntegrationError, match="server_error"):
        await run_tool_loop(
            Failed("x").client(), aa.ToolRegistry(), model="m", messages="go", api="responses"
        )


@pytest.mark.parametrize(("wire", "word"), CASES)
@pytest.mark.parametrize("as_json", [False, True], ids=["object", "json"])
async def test_answers_to_a_cut_off_response_refuse_its_calls(
    wire: str, word: str, as_json: bool
) -> None:
    """S1, S2: with a provider's own client and no loop."""
    files = Files()
    turn = Ended([("c1", "remove", {"only": "a"})], word)
    response = _response(wire, turn, as_json)
    answered = {
        "chat": openai.run_tool_calls,
        "responses": openai.run_tool_calls,
        "messages": anthropic.run_tool_calls,
        "contents": google_genai.function_responses,
    }[wire]
    answers: Any = await answered(response, files.registry, executor=files.executor)
    assert files.ran == []
    assert "tool-args-incomplete" in str(answers)


def _response(wire: str, turn: Any, as_json: bool) -> Any:
    from anthropic.types import Message
    from google.genai.types import GenerateContentResponse
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response

    kinds: dict[str, Any] = {
        "chat": ChatCompletion,
        "responses": Response,
        "messages": Message,
        "contents": GenerateContentResponse,
    }
    data = WIRES[wire][0]().whole(turn)
    if as_json:
        return data
    kind = kinds[wire]
    return kind.model_validate(data) if wire == "contents" else kind.construct(**data)


async def test_no_person_is_asked_about_a_call_that_is_cut_off() -> None:
    """S2: the port of the loop is not asked either."""
    port, own = asking(YES), asking(YES)
    shop = Shop(approval=own)
    turn = Ended([("c1", "refund", "")], "length")
    options: dict[str, Any] = {"model": "m", "messages": "go", "approval": port}
    client = ChatScript(turn).client()
    await run_tool_loop(client, shop.registry, executor=shop.executor, **options)
    assert (port.requests, own.requests, shop.ran) == ([], [], [])


async def test_another_runner_is_not_given_such_a_call() -> None:
    """S2: it might run it."""
    runner = FakeRunner()
    script = ChatScript(Ended([("c1", "remove", "")], "length"))
    options: dict[str, Any] = {"model": "m", "messages": "go", "executor": runner}
    await run_tool_loop(script.client(), Files().registry, **options)
    assert "tool-args-incomplete" in script.answers()["c1"]
    assert runner.calls == []


async def test_anthropic_s_own_runner_runs_no_such_call() -> None:
    """S1: the beta tool runner stops at a message that was cut off."""
    files = Files()
    script = MessagesScript(Ended([("c1", "remove", {})], "max_tokens"))
    runner = script.client().beta.messages.tool_runner(
        model="m",
        max_tokens=10,
        messages=[{"role": "user", "content": "go"}],
        tools=anthropic.anthropic_runnables(files.registry, executor=files.executor),
    )
    await runner.until_done()
    assert files.ran == []


async def test_executor_refuses_what_its_context_calls_incomplete() -> None:
    """Whatever the arguments are, before they are looked at."""
    files = Files()
    spec = files.registry.get("remove")
    for asked in (files.executor.run_spec, files.executor.prepare):
        ctx = aa.ToolContext(incomplete="length")
        with pytest.raises(aa.ToolArgsIncomplete) as refused:
            await asked(spec, {"only": "a"}, ctx)
        assert refused.value.reason == "length"
    assert files.ran == []


def test_error_survives_copy_and_pickle() -> None:
    """It crosses processes as others do."""
    import copy
    import pickle

    error = aa.ToolArgsIncomplete("remove", "length")
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (str(again), again.reason) == (str(error), "length")


@pytest.mark.parametrize(
    "told",
    [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}, {"finish_reason": "SAFETY"}],
)
@pytest.mark.parametrize("gated", [False, True])
async def test_langgraph_runs_no_call_that_was_cut_off(told: dict[str, str], gated: bool) -> None:
    """S1, S2: LangChain reads half of the arguments as arguments; the message says why it ended."""
    pytest.importorskip("langchain")
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.messages.tool import tool_call_chunk

    from agent_adapter.integrations.langchain import approval_middleware, langchain_tools

    from ._langchain_agent import answers, create_agent, run
    from ._langchain_model import ScriptedModel

    piece = tool_call_chunk(name="refund", args='{"order": "A1", "amount": 5', id="c1", index=0)
    cut_off = AIMessageChunk(content="", response_metadata=told, tool_call_chunks=[piece])
    assert cut_off.tool_calls[0]["args"] == {"order": "A1", "amount": 5}
    port = asking(YES)
    shop = Shop(approval=port)
    model = ScriptedModel(responses=[cut_off, AIMessage("done")])
    gate = approval_middleware(port, shop.registry, executor=shop.executor)
    tools = langchain_tools(shop.registry, executor=shop.executor)
    output = await run(create_agent(model, tools, middleware=[gate] if gated else []))
    assert shop.ran == []
    assert "tool-args-incomplete" in str(answers(output)["c1"].content)
    assert port.requests == []


@pytest.mark.parametrize("said", ["length", "max_tokens", "SAFETY", "incomplete"])
@pytest.mark.parametrize("text", ['{"order": "A1", "amount": 5}', '{"order": "A1", "am', ""])
@pytest.mark.parametrize("gated", [False, True])
async def test_ag2_runs_no_call_that_was_cut_off(said: str, text: str, gated: bool) -> None:
    """S1, S2: AG2 says why a response ended, beside its calls; nobody is asked about them."""
    pytest.importorskip("ag2")
    from ag2.events import ModelResponse, ToolCallsEvent

    from agent_adapter.integrations.ag2 import ag2_tools

    from ._ag2_agent import ask, call_event, error_of, results

    port = asking(YES)
    shop = Shop(approval=port)
    made = ToolCallsEvent([call_event("refund", text)])
    cut_off = ModelResponse(tool_calls=made, finish_reason=said)
    whole = ModelResponse(
        tool_calls=ToolCallsEvent(
            [call_event("refund", {"order": "A2", "amount": 1}, call_id="call_2")]
        ),
        finish_reason="tool_calls",
    )
    approval = port if gated else None
    tools = ag2_tools(shop.registry, executor=shop.executor, approval=approval)
    answered = await results(await ask(tools, cut_off, whole))
    assert error_of(answered["call_1"])["kind"] == "tool-args-incomplete"
    assert said in error_of(answered["call_1"])["message"]
    assert [arguments["order"] for _, arguments in shop.ran] == ["A2"]
    assert [request.arguments["order"] for request in port.requests] == ["A2"]


_CUT = ['{"order": "A1", "am', '{"order": "A1", "amount": 5', "{"]


@pytest.mark.parametrize("text", [*_CUT, '"A1'])
async def test_agno_gives_no_tool_arguments_that_lost_their_end(text: str) -> None:
    """S1, S2: Agno hides why a response ended; what is no JSON any more reaches no tool."""
    pytest.importorskip("agno")
    from agent_adapter.integrations.agno import agno_functions

    from ._agno_agent import agent_of, shown

    shop = Shop(approval=asking(YES))
    agent = agent_of(
        agno_functions(shop.registry, executor=shop.executor), [("c1", "look_up", text)]
    )
    await agent.arun("go")
    assert shop.ran == []
    assert shown(agent)


@pytest.mark.parametrize("text", [*_CUT, ""])
async def test_autogen_gives_no_tool_arguments_that_lost_their_end(text: str) -> None:
    """S1, S2: AutoGen hides why a response ended; what is no JSON any more reaches no tool."""
    pytest.importorskip("autogen_agentchat")
    from autogen_agentchat.agents import AssistantAgent

    from agent_adapter.integrations.autogen import autogen_tools
    from workloads.autogen_model import ScriptedModel

    shop = Shop(approval=asking(YES))
    tools = autogen_tools(shop.registry, executor=shop.executor)
    agent = AssistantAgent("a", ScriptedModel([("c1", "look_up", text)]), tools=tools)
    await agent.run(task="go")
    assert shop.ran == []
