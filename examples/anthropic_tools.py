"""Anthropic: the SDK's own tool runner with tools of a registry, and a reviewer who decides.

The client is the real one, its answers come from a script, so this runs without a key:

    python examples/anthropic_tools.py
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
from anthropic import AsyncAnthropic

import agent_adapter as aa
from agent_adapter.integrations.anthropic import (
    anthropic_runnables,
    anthropic_tools,
    run_tool_calls,
)

registry = aa.ToolRegistry()


@registry.tool(effects="read")
def free_rooms(day: str) -> list[str]:
    """The rooms that are free on a day."""
    return ["blue", "red"]


@registry.tool(confirm=True)
def book(room: str, day: str) -> str:
    """Books a room."""
    return f"booked {room} on {day}"


def reviewer(request: aa.ApprovalRequest) -> aa.ApprovalDecision:
    """Allow the blue room; a real one would show `request.shown` to a person."""
    if request.arguments["room"] != "blue":
        return aa.ApprovalDecision.deny(reviewer="ann", reason="the red room is being painted")
    return aa.ApprovalDecision.approve(reviewer="ann")


store = aa.open_store("memory://")
executor = aa.Executor(registry, approval=aa.CallbackApproval(reviewer), store=store)


async def by_hand(client: AsyncAnthropic, model: str, prompt: str) -> list[Any]:
    """The conversation, with every call answered under the id that the model gave it."""
    messages: list[Any] = [{"role": "user", "content": prompt}]
    tools: Any = anthropic_tools(registry)
    while True:
        message = await client.messages.create(
            model=model, max_tokens=1000, messages=messages, tools=tools
        )
        messages.append({"role": "assistant", "content": message.content})
        answers = await run_tool_calls(message, registry, executor=executor, messages=messages)
        if not answers:
            return messages
        messages += answers


async def with_runner(client: AsyncAnthropic, model: str, prompt: str) -> str:
    """The last text of the SDK's own loop, whose tools run through the executor."""
    runner = client.beta.messages.tool_runner(
        model=model,
        max_tokens=1000,
        messages=[{"role": "user", "content": prompt}],
        tools=anthropic_runnables(registry, executor=executor, run_id="booking-1"),
    )
    message = await runner.until_done()
    return "".join(block.text for block in message.content if block.type == "text")


def scripted() -> AsyncAnthropic:
    """A client whose model looks for rooms, books two of them, and ends."""

    def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
        return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}

    turns = [
        [call("t1", "free_rooms", day="monday")],
        [
            call("t2", "book", room="blue", day="monday"),
            call("t3", "book", room="red", day="monday"),
        ],
        [{"type": "text", "text": "The blue room is yours, the red one is not."}],
    ]

    def answer(request: httpx2.Request) -> httpx2.Response:
        content = turns.pop(0)
        body = {
            "id": f"msg_{len(turns)}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": content,
            "stop_reason": "tool_use" if turns else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return httpx2.Response(200, json=body)

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return AsyncAnthropic(api_key="none", http_client=http)


async def main() -> None:
    """Run the script both ways and print what came of it."""
    for message in await by_hand(scripted(), "scripted", "Book two rooms on monday."):
        if message["role"] == "user" and isinstance(message["content"], list):
            for block in message["content"]:
                print(f"{block['tool_use_id']}: {block['content']} (error: {block['is_error']})")
    print(f"runner: {await with_runner(scripted(), 'scripted', 'Book two rooms on monday.')}")


if __name__ == "__main__":
    asyncio.run(main())
