"""S10: what is more than JSON, through every target and out of every framework's own tools."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

pytest.importorskip("openai")
pytest.importorskip("anthropic")
pytest.importorskip("google.genai")

import agent_adapter as aa
from agent_adapter.core.content import Artifact
from agent_adapter.core.result_parts import parts_of
from agent_adapter.integrations import anthropic, google_genai, openai
from agent_adapter.integrations.generic import run_tool_loop
from agent_adapter.integrations.imports import imported

from ._providers import ChatScript, GeminiScript, MessagesScript, ResponsesScript

pytestmark = [pytest.mark.anyio, pytest.mark.contract]

PNG = b"\x89PNG\r\n\x1a\n" + b"\1" * 150_000
IN_BASE64 = base64.b64encode(PNG).decode()
PDF, WAV = b"%PDF-1.7", b"RIFF\0\0\0\0WAVE"
LINE = "image, image/png, 150,008 bytes"
ALL: list[Any] = [
    "a chart",
    aa.Image(data=PNG),
    {"n": 1},
    aa.File(data=PDF, name="bill.pdf"),
    aa.Audio(data=WAV),
    aa.File(data=b"PK", media_type="application/zip"),
    aa.Image(uri="https://example.org/a.png"),
]


def registry_of(value: Any) -> aa.ToolRegistry:
    """One tool, `shoot`, that gives `value`."""
    registry = aa.ToolRegistry()

    @registry.tool(effects="read")
    async def shoot() -> Any:
        """Takes a picture."""
        return value

    return registry


def executor() -> aa.Executor:
    """A fresh one."""
    return aa.Executor(store=aa.open_store("memory://"))


async def sent(make: Any, value: Any, **options: Any) -> dict[str, Any]:
    """What the provider is sent after a tool gave `value`."""
    script = make([("c1", "shoot", {})])
    given: dict[str, Any] = {"model": "m", "messages": "go", "executor": executor()}
    result = await run_tool_loop(script.client(), registry_of(value), **given, **options)
    json.dumps(result.messages)
    request: dict[str, Any] = script.requests[1]
    return request


async def test_chat_is_sent_images_in_a_message_of_the_user() -> None:
    """S10: a tool message holds text only."""
    _, _, tool, user = (await sent(ChatScript, ALL))["messages"]
    assert tool["role"] == "tool"
    assert f"[attached: {LINE}]" in tool["content"]
    assert "[left out: file, application/zip" in tool["content"]
    assert '{"n":1}' in tool["content"]
    by_type = {part["type"]: part for part in user["content"]}
    urls = [p["image_url"]["url"] for p in user["content"] if p["type"] == "image_url"]
    assert urls == [f"data:image/png;base64,{IN_BASE64}", "https://example.org/a.png"]
    assert by_type["input_audio"]["input_audio"]["format"] == "wav"
    assert by_type["file"]["file"]["filename"] == "bill.pdf"


async def test_responses_is_sent_parts_of_the_output() -> None:
    """S10: in order, what it cannot take as a line."""
    output = (await sent(ResponsesScript, ALL, api="responses"))["input"][-1]["output"]
    assert [part["type"] for part in output] == [
        *("input_text", "input_image", "input_text", "input_file"),
        *("input_text", "input_text", "input_image"),
    ]
    assert output[1]["image_url"].endswith(IN_BASE64)
    assert output[4]["text"] == "[left out: audio, audio/wav, 12 bytes]"


async def test_anthropic_is_sent_blocks() -> None:
    """S10: images and documents, by their bytes or address."""
    block = (await sent(MessagesScript, ALL))["messages"][-1]["content"][0]
    kinds = [part["type"] for part in block["content"]]
    assert kinds == ["text", "image", "text", "document", "text", "text", "image"]
    source = {"type": "base64", "media_type": "image/png", "data": IN_BASE64}
    assert block["content"][1]["source"] == source
    assert block["content"][-1]["source"]["url"] == "https://example.org/a.png"


async def test_anthropic_s_runner_is_given_blocks() -> None:
    """S10: through the beta tool runner as well."""
    registry = registry_of(aa.Image(data=PNG))
    (tool,) = anthropic.anthropic_runnables(registry, executor=executor())
    (block,) = await tool.call({})  # type: ignore[misc]
    assert block["source"]["data"] == IN_BASE64  # type: ignore[index]


async def test_gemini_is_sent_parts_of_the_response() -> None:
    """S10: media beside the JSON, which says where they were."""
    part = (await sent(GeminiScript, ALL))["contents"][-1]["parts"][0]["functionResponse"]
    told = part["response"]["output"]
    assert told[:3] == ["a chart", f"[attached: {LINE}]", {"n": 1}]
    assert told[4] == "[left out: audio, audio/wav, 12 bytes]"
    first = part["parts"][0]["inline_data"]
    assert base64.urlsafe_b64decode(first["data"]) == PNG
    assert [list(p) for p in part["parts"]] == [["inline_data"], ["inline_data"], ["file_data"]]


@pytest.mark.parametrize("value", [PNG, {"chart": PNG}], ids=["bytes", "inside"])
async def test_bytes_of_an_image_are_an_image(value: Any) -> None:
    """S10: a tool that returns a PNG as bytes sends no base64 as text."""
    for make, options in (
        (ChatScript, {}),
        (ResponsesScript, {"api": "responses"}),
        (MessagesScript, {}),
        (GeminiScript, {}),
    ):
        request = json.dumps(await sent(make, value, **options))
        assert request.count(IN_BASE64[:1000].replace("+", "-").replace("/", "_")) <= 1
        assert '"text": "iVBOR' not in request and '"output": "\\"iVBOR' not in request
        assert "image/png" in request


async def test_helpers_answer_with_parts() -> None:
    """S10: without a loop."""
    registry = registry_of(aa.Image(data=PNG))
    chat = ChatScript().whole([("c1", "shoot", {})])
    messages = await openai.run_tool_calls(chat, registry, executor=executor())
    assert [message["role"] for message in messages] == ["tool", "user"]
    gemini = GeminiScript().whole([("c1", "shoot", {})])
    (part,) = await google_genai.function_responses(gemini, registry, executor=executor())
    assert part.function_response is not None
    assert part.function_response.parts is not None
    assert part.function_response.parts[0].inline_data is not None
    assert part.function_response.parts[0].inline_data.data == PNG


async def test_mcp_client_is_sent_content_blocks() -> None:
    """S10: every part has a block of its own kind, an address is a link."""
    pytest.importorskip("mcp")
    from mcp import Client

    from agent_adapter.integrations.mcp import mcp_server

    async with Client(mcp_server(registry_of(ALL), executor=executor())) as client:
        result = await client.call_tool("shoot", {})
    kinds = [block.type for block in result.content]
    links = ["resource", "resource_link"]
    assert kinds == ["text", "image", "text", links[0], "audio", links[0], links[1]]
    assert result.content[1].data == IN_BASE64  # type: ignore[union-attr]
    assert result.structured_content == {"n": 1}


async def test_mcp_result_keeps_all_its_parts() -> None:
    """S10: content beside structured content, links, and both ways the same."""
    pytest.importorskip("mcp")
    from mcp import Client

    from agent_adapter.integrations.mcp import import_tools, mcp_server

    async with Client(mcp_server(registry_of(ALL), executor=executor())) as client:
        (spec,) = await import_tools(client, name="cam", pins=False)
        value = await executor().run_spec(spec, {})
    data, text, *media = value
    assert (data, text) == (aa.Json({"n": 1}), aa.Text("a chart"))
    assert media[0] == aa.Image(data=PNG)
    assert [part.media_type for part in media][1:4] == [
        *("application/pdf", "audio/wav", "application/zip")
    ]
    assert media[4].uri == "https://example.org/a.png"


async def _answer_of(**answer: Any) -> Any:
    """What an imported tool gives whose server answers this."""
    from mcp.server import Server
    from mcp_types import CallToolResult, ListToolsResult, Tool

    from agent_adapter.integrations.mcp import import_tools

    async def listed(request: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="pay", input_schema={"type": "object"})])

    async def called(request: Any, params: Any) -> CallToolResult:
        texts = answer.pop("texts", ())
        content = [{"type": "text", "text": text} for text in texts]
        return CallToolResult.model_validate({"content": content, **answer})

    server: Any = Server("shop", on_list_tools=listed, on_call_tool=called)
    (spec,) = await import_tools(server, name="shop", pins=False)
    return await executor().run_spec(spec, {})


@pytest.mark.parametrize("texts", [(), ("it failed",), ('{"code": 7, "reason": "card declined"}',)])
async def test_mcp_error_keeps_its_reason(texts: tuple[str, ...]) -> None:
    """S10: also where it is in the structured content alone, or beside a text that says less."""
    pytest.importorskip("mcp")
    reason = {"code": 7, "reason": "card declined"}
    with pytest.raises(aa.ToolFailed, match="card declined") as caught:
        await _answer_of(texts=texts, structured_content=reason, is_error=True)
    assert str(caught.value).count("card declined") == 1
    assert all(text in str(caught.value) for text in texts)


@pytest.mark.parametrize(
    ("data", "texts", "kept"),
    [
        ({"n": 1}, ('{ "n": 1.0 }',), []),
        ({"result": "x"}, ("x",), []),
        ({"result": ["a", 2]}, ("a", "2"), []),
        ({"result": 12}, ("12",), []),
        ({"n": 1}, ("One was found.",), ["One was found."]),
        ({"n": 1}, ("One was found.", '{"n": 1}'), ["One was found."]),
        ({"result": ["a", "b"]}, ("a", "c"), ["a", "c"]),
    ],
)
async def test_mcp_text_beside_data_is_kept_unless_it_says_the_data_again(
    data: Any, texts: tuple[str, ...], kept: list[str]
) -> None:
    """S10: a server's words for the model are not lost beside its data."""
    pytest.importorskip("mcp")
    value = await _answer_of(texts=texts, structured_content=data)
    assert value == ([aa.Json(data), *map(aa.Text, kept)] if kept else data)


async def test_fastmcp_client_is_sent_content_blocks() -> None:
    """S10: FastMCP's tools as MCP's."""
    pytest.importorskip("fastmcp")
    from agent_adapter.integrations.fastmcp import INTEGRATION, fastmcp_tools

    (tool,) = fastmcp_tools(registry_of(ALL), executor=executor())
    result = await tool.run({})
    assert [block.type for block in result.content][:2] == ["text", "image"]
    spec = INTEGRATION.import_tool(tool)
    assert aa.Image(data=PNG) in await executor().run_spec(spec, {})


async def test_langchain_message_has_standard_blocks() -> None:
    """S10: as LangChain's models take them, audio as well."""
    pytest.importorskip("langchain_core")
    from agent_adapter.integrations.langchain import langchain_tools

    (tool,) = langchain_tools(registry_of(ALL), executor=executor())
    call = {"name": "shoot", "args": {}, "id": "c1", "type": "tool_call"}
    message = await tool.ainvoke(call)
    kinds = [block["type"] for block in message.content_blocks]
    assert kinds == ["text", "image", "text", "file", "audio", "file", "image"]
    assert message.content[1]["base64"] == IN_BASE64


async def test_langchain_tool_keeps_its_artifact_and_blocks() -> None:
    """S10: the artifact is for the program, and no model reads it."""
    pytest.importorskip("langchain_core")
    from langchain_core.tools import tool

    from agent_adapter.integrations.langchain import INTEGRATION, langchain_tool

    @tool(response_format="content_and_artifact")
    def shoot() -> tuple[Any, Any]:
        """Takes a picture."""
        block = {"type": "image", "base64": IN_BASE64, "mime_type": "image/png"}
        return [{"type": "text", "text": "a chart"}, block], {"secret": 1}

    spec = INTEGRATION.import_tool(shoot)
    value = await executor().run_spec(spec, {})
    assert value == [aa.Text("a chart"), aa.Image(data=PNG), Artifact({"secret": 1})]
    assert parts_of(value) == (aa.Text("a chart"), aa.Image(data=PNG))
    exported = langchain_tool(spec, executor=executor())
    call = {"name": "shoot", "args": {}, "id": "c1", "type": "tool_call"}
    assert (await exported.ainvoke(call)).artifact == {"secret": 1}


async def test_agno_result_has_media() -> None:
    """S10: Agno hands them to its model after the text."""
    pytest.importorskip("agno")
    from agno.tools.function import FunctionCall, ToolResult

    from agent_adapter.integrations.agno import INTEGRATION, agno_functions

    (function,) = agno_functions(registry_of(ALL), executor=executor())
    outcome = await FunctionCall(function=function, arguments={}, call_id="c1").aexecute()
    result = outcome.result
    assert isinstance(result, ToolResult)
    assert f"[attached: {LINE}]" in result.content
    assert result.images is not None and result.images[0].content == PNG
    assert result.audios is not None and result.files is not None
    spec = INTEGRATION.import_tool(function)
    assert aa.Image(data=PNG) in await executor().run_spec(spec, {})


async def test_ag2_result_has_parts() -> None:
    """S10: inputs of AG2's own, and a line for what its clients refuse."""
    pytest.importorskip("ag2")
    from ag2.events import BinaryInput, TextInput

    from agent_adapter.integrations.ag2 import INTEGRATION, ag2_tools

    from ._ag2_agent import call_event, run

    tools = ag2_tools(registry_of(ALL), executor=executor())
    result = (await run(tools, call_event("shoot")))["call_1"]
    text, image, _, file, audio, *_ = result.result.parts
    assert isinstance(text, TextInput) and isinstance(image, BinaryInput)
    assert (image.data, image.media_type) == (PNG, "image/png")
    assert file.vendor_metadata == {"filename": "bill.pdf"}
    assert audio.content == "[left out: audio, audio/wav, 12 bytes]"
    spec = INTEGRATION.import_tool(tools[0])
    assert aa.Image(data=PNG) in await executor().run_spec(spec, {})


async def test_autogen_reads_lines() -> None:
    """S10: its results are text."""
    pytest.importorskip("autogen_core")
    from autogen_core import CancellationToken

    from agent_adapter.integrations.autogen import autogen_tools

    (tool,) = autogen_tools(registry_of(ALL), executor=executor())
    text = tool.return_value_as_string(await tool.run_json({}, CancellationToken()))
    assert f"[left out: {LINE}]" in text
    assert "iVBOR" not in text


async def test_blocks_of_a_foreign_function_are_parts() -> None:
    """S10: Anthropic's and OpenAI's own blocks; data that only looks alike stays data."""
    anthropic_s = {"type": "base64", "media_type": "image/png", "data": IN_BASE64}
    openai_s = {"type": "input_image", "image_url": f"data:image/png;base64,{IN_BASE64}"}
    for block in ({"type": "image", "source": anthropic_s}, openai_s):

        async def run(args: Any, block: Any = block) -> Any:
            return [{"type": "text", "text": "a chart"}, block]

        spec = imported("shoot", "Takes a picture.", {"type": "object"}, run)
        value = await executor().run_spec(spec, {})
        assert value == [aa.Text("a chart"), aa.Image(data=PNG)]

    listing = [{"type": "file", "name": "a.txt", "url": "https://x/a", "owner": "ann"}]

    async def listed(args: Any) -> Any:
        return listing

    spec = imported("listed", "Lists.", {"type": "object"}, listed)
    assert await executor().run_spec(spec, {}) == listing
