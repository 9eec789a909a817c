"""AG2 as its page wires it: `build_agent`, `ask`, and the history that `ask` reads."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2 import Agent
from ag2.events import DataInput, TextInput, ToolCallEvent, ToolResultsEvent
from ag2.testing import TestConfig

import agent_adapter as aa
from agent_adapter import (
    ApprovalDecision,
    ApprovalRequest,
    CallbackApproval,
    Executor,
    get_integration,
)
from agent_adapter.integrations.ag2 import ag2_tools

# The page's executor has no store, which warns at the first write.
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:this Executor keeps its ledger in memory"),
]

registry = aa.ToolRegistry()


@registry.tool
def lookup_price(sku: str) -> dict[str, Any]:
    """The price of an article."""
    return {"sku": sku, "price": 3}


@registry.tool(confirm=True)
def place_order(sku: str, count: int) -> str:
    """Orders an article."""
    return f"ordered {count} of {sku}"


async def reviewer(request: ApprovalRequest) -> ApprovalDecision:
    """Allows orders of up to ten."""
    if request.arguments["count"] > 10:
        return ApprovalDecision.deny(reviewer="bo", reason="too many")
    return ApprovalDecision.approve(reviewer="bo")


port = CallbackApproval(reviewer)


def build_agent(config: Any) -> Agent:
    """The wiring: a gate in each tool's middleware asks the port."""
    tools = ag2_tools(registry, executor=Executor(registry), approval=port)
    return Agent("shop", config=config, tools=tools)


async def ask(agent: Agent, prompt: str) -> list[tuple[str | None, Any]]:
    """The tools that were called, and the first part of each result."""
    reply = await agent.ask(prompt)
    events = await reply.history.get_events()
    batches = [e for e in events if isinstance(e, ToolResultsEvent)]
    return [(r.name, r.result.parts[0]) for batch in batches for r in batch.results]


def _model(*turns: Any) -> TestConfig:
    return TestConfig(*turns, "done", raise_tool_errors=False)


def _order(count: int) -> ToolCallEvent:
    return ToolCallEvent("place_order", arguments=f'{{"sku": "s1", "count": {count}}}')


async def test_the_wiring_runs_a_plain_and_an_approved_tool() -> None:
    """A tool without a rule just runs; one with a rule runs when the port says yes."""
    look = ToolCallEvent("lookup_price", arguments='{"sku": "s1"}')
    found = await ask(build_agent(_model(look, _order(2))), "go")
    assert found == [
        ("lookup_price", DataInput({"sku": "s1", "price": 3})),
        ("place_order", TextInput("ordered 2 of s1")),
    ]


async def test_the_wiring_shows_a_denial_to_the_model() -> None:
    """A denied call is the model-visible error, and the turn goes on."""
    [(name, part)] = await ask(build_agent(_model(_order(11))), "go")
    assert name == "place_order"
    assert '"kind": "approval-denied"' in part.content
    assert "too many" in part.content


async def test_the_integration_exports_without_a_gate() -> None:
    """`get_integration("ag2")` exports the same tools; there the executor's own port decides."""
    ag2 = get_integration("ag2")
    executor = Executor(registry, approval=port)
    tools = [ag2.export_tool(spec, executor=executor) for spec in registry.for_target("ag2")]
    found = await ask(Agent("shop", config=_model(_order(3)), tools=tools), "go")
    assert found == [("place_order", TextInput("ordered 3 of s1"))]
