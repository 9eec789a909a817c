"""AG2: tools of one registry in an agent, and a reviewer who decides about the one that pays.

The model is AG2's own scripted one, so this runs without a key and without a network:

    python examples/ag2_tools.py
"""

from __future__ import annotations

import asyncio
from typing import Any

from ag2 import Agent
from ag2.events import ToolCallEvent, ToolResultsEvent
from ag2.testing import TestConfig

import agent_adapter as aa
from agent_adapter.integrations.ag2 import ag2_tools

registry = aa.ToolRegistry()


@registry.tool(effects="read")
def order_total(order_id: str) -> float:
    """What an order cost, in euros."""
    return {"A1": 12.5, "A2": 480.0}.get(order_id, 0.0)


@registry.tool(confirm=True)
def refund(order_id: str, amount: float) -> str:
    """Pays money back to the customer."""
    return f"refunded {amount:.2f} for {order_id}"


def reviewer(request: aa.ApprovalRequest) -> aa.ApprovalDecision:
    """Allow small refunds; a real one would show `request.shown` to a person."""
    if request.arguments["amount"] > 100:
        return aa.ApprovalDecision.deny(reviewer="ann", reason="more than 100 euros")
    return aa.ApprovalDecision.approve(reviewer="ann")


port = aa.CallbackApproval(reviewer)


def build_agent(config: Any) -> Agent:
    """An AG2 agent with every tool of the registry."""
    # approval=port: a gate in each tool's middleware asks the port about confirm tools and hands
    # the approved call a one-use token, so the executor does not ask again.
    executor = aa.Executor(registry, store=aa.open_store("memory://"))
    tools = ag2_tools(registry, executor=executor, approval=port)
    return Agent("shop", config=config, tools=tools)


async def ask(agent: Agent, prompt: str) -> list[tuple[str | None, Any]]:
    """The tools that were called for `prompt`, with the part the model read of each."""
    reply = await agent.ask(prompt)
    events = await reply.history.get_events()
    batches = [event for event in events if isinstance(event, ToolResultsEvent)]  # one per turn
    return [(r.name, r.result.parts[0]) for batch in batches for r in batch.results]


def script() -> TestConfig:
    """A model that looks both orders up, then asks for two refunds at once."""
    return TestConfig(
        [
            ToolCallEvent("order_total", id="c1", arguments='{"order_id": "A1"}'),
            ToolCallEvent("order_total", id="c2", arguments='{"order_id": "A2"}'),
        ],
        [
            ToolCallEvent("refund", id="c3", arguments='{"order_id": "A1", "amount": 12.5}'),
            ToolCallEvent("refund", id="c4", arguments='{"order_id": "A2", "amount": 480}'),
        ],
        "One refund is paid, the other was refused.",
        raise_tool_errors=False,
    )


async def main() -> None:
    """Run the script and print what each tool answered."""
    for name, part in await ask(build_agent(script()), "Refund A1 and A2."):
        print(f"{name}: {part.data if hasattr(part, 'data') else part.content}")


if __name__ == "__main__":
    asyncio.run(main())
