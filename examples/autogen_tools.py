"""AutoGen: tools of one registry in an `AssistantAgent`; the executor's port decides.

The model is a scripted one, so this runs without a key and without a network:

    python examples/autogen_tools.py
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ToolCallExecutionEvent
from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage

import agent_adapter as aa
from agent_adapter.integrations.autogen import autogen_tools

registry = aa.ToolRegistry()


@registry.tool(effects="read")
def stock(item: str) -> int:
    """How many of an item are there."""
    return 12


@registry.tool(confirm=True)
def order(item: str, count: int) -> str:
    """Orders an item."""
    return f"ordered {count} x {item}"


def reviewer(request: aa.ApprovalRequest) -> bool:
    """Allow small orders; a real one would show `request.shown` to a person."""
    return int(request.arguments["count"]) <= 10


executor = aa.Executor(
    registry, approval=aa.CallbackApproval(reviewer), store=aa.open_store("memory://")
)


def build_agent(model: ChatCompletionClient) -> AssistantAgent:
    """An AutoGen agent with every tool of the registry."""
    tools = autogen_tools(registry, executor=executor)
    return AssistantAgent("buyer", model, tools=list(tools), max_tool_iterations=5)


async def ask(agent: AssistantAgent, prompt: str, run_id: str) -> list[tuple[str, bool, str]]:
    """Name, error flag and text of every tool call of one run."""
    # AutoGen has no run: the scope gives one, so that limits and the ledger have it.
    async with executor.run_scope(run_id, "ann"):
        result = await agent.run(task=prompt)
    events = [event for event in result.messages if isinstance(event, ToolCallExecutionEvent)]
    return [(call.name, bool(call.is_error), call.content) for e in events for call in e.content]


class Script(ChatCompletionClient):
    """A model that plays its turns: a text, or tool calls as `(id, name, arguments)`."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)

    async def create(self, messages: Sequence[Any], **options: Any) -> CreateResult:
        """The next turn."""
        turn = self.turns.pop(0)
        calls = turn if isinstance(turn, str) else [_call(*call) for call in turn]
        usage = self.total_usage()
        return CreateResult(finish_reason="stop", content=calls, usage=usage, cached=False)

    async def create_stream(
        self, messages: Sequence[Any], **options: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        """The next turn, in one piece."""
        yield await self.create(messages, **options)

    async def close(self) -> None:
        """Nothing is open."""

    def total_usage(self) -> RequestUsage:
        """A script costs nothing."""
        return RequestUsage(prompt_tokens=0, completion_tokens=0)

    actual_usage = total_usage

    def count_tokens(self, messages: Sequence[Any], **options: Any) -> int:
        """A script counts nothing."""
        return 0

    remaining_tokens = count_tokens

    @property
    def model_info(self) -> ModelInfo:
        """What the model can do."""
        return ModelInfo(
            vision=False,
            function_calling=True,
            json_output=False,
            family="unknown",
            structured_output=False,
        )

    capabilities = model_info  # AutoGen's older name for it


def _call(call_id: str, name: str, arguments: dict[str, Any]) -> FunctionCall:
    return FunctionCall(id=call_id, name=name, arguments=json.dumps(arguments))


def script() -> Script:
    """A model that looks at the stock, then orders twice."""
    few, many = {"item": "bolt", "count": 5}, {"item": "nut", "count": 500}
    return Script(
        [("c1", "stock", {"item": "bolt"})],
        [("c2", "order", few), ("c3", "order", many)],
        "The bolts are ordered, the nuts were refused.",
    )


async def main() -> None:
    """Run the script and print what each tool answered."""
    for name, failed, text in await ask(build_agent(script()), "Fill up the stock.", "run-1"):
        print(f"{name} (error: {failed}): {text}")


if __name__ == "__main__":
    asyncio.run(main())
