"""Google GenAI: declarations and function responses, and a reviewer who decides.

The client is the real one, its answers come from a script, so this runs without a key:

    python examples/google_genai_tools.py
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
from google import genai
from google.genai import types

import agent_adapter as aa
from agent_adapter.integrations.google_genai import function_responses, google_genai_tools

registry = aa.ToolRegistry()


@registry.tool(effects="read")
def weather(city: str) -> dict[str, float]:
    """The weather in a city."""
    return {"degrees": 21.5, "wind": 3.0}


@registry.tool(confirm=True)
def open_windows(floor: int) -> str:
    """Opens the windows of a floor."""
    return f"floor {floor} is open"


def reviewer(request: aa.ApprovalRequest) -> aa.ApprovalDecision:
    """Keep the cellar shut; a real one would show `request.shown` to a person."""
    if request.arguments["floor"] < 0:
        return aa.ApprovalDecision.deny(reviewer="ann", reason="the cellar stays shut")
    return aa.ApprovalDecision.approve(reviewer="ann")


store = aa.open_store("memory://")
executor = aa.Executor(registry, approval=aa.CallbackApproval(reviewer), store=store)


async def chat(client: genai.Client, model: str, prompt: str) -> list[types.Content]:
    """The conversation, with every call answered through the executor."""
    contents: list[Any] = [types.UserContent(prompt)]
    config = types.GenerateContentConfig(
        tools=list(google_genai_tools(registry)),
        # Its own calling would go past the executor, and show a model the text of exceptions.
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    while True:
        response = await client.aio.models.generate_content(
            model=model, contents=contents, config=config
        )
        contents.append((response.candidates or [])[0].content)
        parts = await function_responses(response, registry, executor=executor, messages=contents)
        if not parts:
            return contents
        contents.append(types.Content(role="user", parts=parts))


def scripted() -> genai.Client:
    """A client whose model asks for the weather, opens two floors, and ends."""

    def call(name: str, **arguments: Any) -> dict[str, Any]:
        return {"functionCall": {"name": name, "args": arguments}}

    turns = [
        [call("weather", city="Bonn")],
        [call("open_windows", floor=1), call("open_windows", floor=-1)],
        [{"text": "The first floor is open, the cellar stays shut."}],
    ]

    def answer(request: httpx2.Request) -> httpx2.Response:
        content = {"role": "model", "parts": turns.pop(0)}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        body = {"candidates": [candidate], "responseId": f"response-{len(turns)}"}
        return httpx2.Response(200, json=body)

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return genai.Client(api_key="none", http_options=types.HttpOptions(httpx_async_client=http))


async def main() -> None:
    """Run the script and print what each call was answered with."""
    for content in await chat(scripted(), "scripted", "Is it warm enough to air?"):
        for part in content.parts or []:
            if part.function_response is not None:
                print(f"{part.function_response.name}: {part.function_response.response}")
            elif part.text and content.role == "model":
                print(f"model: {part.text}")


if __name__ == "__main__":
    asyncio.run(main())
