"""OpenAI: a chat with tools, by hand, and a reviewer who decides about the one that pays.

The client is the real one, its answers come from a script, so this runs without a key:

    python examples/openai_tools.py
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
from openai import AsyncOpenAI

import agent_adapter as aa
from agent_adapter.integrations.openai import openai_tools, run_tool_calls

registry = aa.ToolRegistry()


@registry.tool(effects="read")
def order_total(order_id: str, currency: str = "EUR") -> str:
    """What an order cost."""
    total = {"A1": 12.5, "A2": 480.0}.get(order_id, 0.0)
    return f"{total:.2f} {currency}"


@registry.tool(confirm=True)
def refund(order_id: str, amount: float) -> str:
    """Pays money back to the customer."""
    return f"refunded {amount:.2f} for {order_id}"


def reviewer(request: aa.ApprovalRequest) -> aa.ApprovalDecision:
    """Allow small refunds; a real one would show `request.shown` to a person."""
    if request.arguments["amount"] > 100:
        return aa.ApprovalDecision.deny(reviewer="ann", reason="more than 100 euros")
    return aa.ApprovalDecision.approve(reviewer="ann")


store = aa.open_store("memory://")
executor = aa.Executor(registry, approval=aa.CallbackApproval(reviewer), store=store)


async def chat(client: AsyncOpenAI, model: str, prompt: str) -> list[Any]:
    """The conversation, with every call answered through the executor."""
    messages: list[Any] = [{"role": "user", "content": prompt}]
    tools: Any = openai_tools(registry, strict=True)
    while True:
        response = await client.chat.completions.create(model=model, messages=messages, tools=tools)
        messages.append(response.choices[0].message)
        # The calls of one response run in parallel; a denied one is an answer like any other.
        answers = await run_tool_calls(response, registry, executor=executor, messages=messages)
        if not answers:
            return messages
        messages += answers


def scripted() -> AsyncOpenAI:
    """A client whose model looks two orders up, asks for two refunds, and ends."""

    def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"id": call_id, "type": "function", "function": function}

    turns: list[dict[str, Any]] = [
        {
            "tool_calls": [
                call("c1", "order_total", order_id="A1", currency=None),  # strict: the default
                call("c2", "order_total", order_id="A2", currency="USD"),
            ]
        },
        {
            "tool_calls": [
                call("c3", "refund", order_id="A1", amount=12.5),
                call("c4", "refund", order_id="A2", amount=480.0),
            ]
        },
        {"content": "One refund is paid, the other was refused."},
    ]

    def answer(request: httpx2.Request) -> httpx2.Response:
        message = {"role": "assistant", "content": None, **turns.pop(0)}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        body = {"id": f"chatcmpl-{len(turns)}", "object": "chat.completion", "created": 0}
        return httpx2.Response(200, json=body | {"model": "scripted", "choices": [choice]})

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return AsyncOpenAI(api_key="none", http_client=http)


async def main() -> None:
    """Run the script and print what each call was answered with."""
    for message in await chat(scripted(), "scripted", "Refund A1 and A2."):
        if isinstance(message, dict):
            print(f"{message['role']}: {message['content']}")
        elif message.content:
            print(f"assistant: {message.content}")


if __name__ == "__main__":
    asyncio.run(main())
