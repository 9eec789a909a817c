"""No framework: one loop over a provider's client that streams, pauses for a person and goes on.

The client is the real one, its answers come from a script, so this runs without a key:

    python examples/generic_tools.py
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
from openai import AsyncOpenAI

import agent_adapter as aa
from agent_adapter.integrations.generic import CallEnded, LoopEvent, TextPiece, run_tool_loop

registry = aa.ToolRegistry()


@registry.tool(effects="read")
def stock(item: str) -> int:
    """How many of an item there are."""
    return 3


@registry.tool(confirm=True)
def order_more(item: str, count: int) -> str:
    """Orders more of an item."""
    return f"ordered {count} of {item}"


store = aa.open_store("memory://")
executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)


def show(event: LoopEvent) -> None:
    """Print text as it comes, and each call as it ends."""
    if isinstance(event, TextPiece):
        print(event.text, end="")
    elif isinstance(event, CallEnded):
        print(f"[{event.tool}: {event.text}]")


async def refill(client: AsyncOpenAI, model: str) -> str:
    """A loop that stops where a person is needed, and goes on from what it kept."""
    options: Any = {"model": model, "executor": executor, "stream": True, "on_event": show}
    result = await run_tool_loop(
        client, registry, messages="Refill the bolts.", limits=aa.RunLimits(max_calls=10), **options
    )
    while result.status == "paused":
        kept = json.dumps(result.messages)  # as long as it takes, in any process
        for record in result.pending:
            await aa.Inbox(store).approve(record, reviewer="ann")  # what a person does
        result = await run_tool_loop(
            client, registry, messages=json.loads(kept), run_id=result.run_id, **options
        )
    return result.text


def scripted() -> AsyncOpenAI:
    """A client whose model looks at the stock, orders, and ends."""
    turns: list[Any] = [
        ("c1", "stock", {"item": "bolt"}),
        ("c2", "order_more", {"item": "bolt", "count": 100}),
        "A hundred bolts are on their way.\n",
    ]

    def answer(request: httpx2.Request) -> httpx2.Response:
        turn = turns.pop(0)
        if isinstance(turn, str):
            deltas: list[Any] = [{"content": f"{word} "} for word in turn.strip().split()]
            deltas.append({"content": "\n"})
        else:
            function = {"name": turn[1], "arguments": json.dumps(turn[2])}
            call = {"index": 0, "id": turn[0], "type": "function", "function": function}
            deltas = [{"tool_calls": [call]}]
        lines = [json.dumps(_chunk(delta)) for delta in deltas]
        text = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
        return httpx2.Response(200, text=text, headers={"content-type": "text/event-stream"})

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return AsyncOpenAI(api_key="none", http_client=http)


def _chunk(delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": None, "delta": delta}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0}
    return head | {"model": "scripted", "choices": [choice]}


async def main() -> None:
    """Run the script."""
    await refill(scripted(), "scripted")


if __name__ == "__main__":
    asyncio.run(main())
