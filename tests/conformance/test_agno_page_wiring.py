"""Agno as its page wires it: `build_agent`, `run_with_approvals`, and deferred decisions."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("agno")

from agno.agent import Agent
from agno.models.base import Model

import agent_adapter as aa
from agent_adapter import ApprovalRequest, CallbackApproval, Executor, get_integration
from agent_adapter.integrations.agno import agno_functions, resolve_requirements

from ..integrations._agno_model import ScriptedModel

# The page's executor has no store, which warns at the first write.
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:this Executor keeps its ledger in memory"),
]

registry = aa.ToolRegistry()


@registry.tool(effects="read")
def list_invoices(customer: str) -> list[str]:
    """A customer's invoices."""
    return [f"{customer}-1"]


@registry.tool(confirm=True)
def send_invoice(number: str) -> str:
    """Sends an invoice."""
    return f"sent {number}"


def reviewer(request: ApprovalRequest) -> bool:
    """Allows every invoice but the thirteenth."""
    return bool(request.arguments["number"] != "ann-13")


port = CallbackApproval(reviewer)


def build_agent(model: Model) -> Agent:
    """The wiring: confirm tools pause, the executor keeps the same port."""
    tools = agno_functions(registry, executor=Executor(registry, approval=port))
    return Agent(model=model, tools=tools, telemetry=False)


async def run_with_approvals(agent: Agent, prompt: str) -> Any:
    """The tools of the run once every pause is resolved."""
    output = await agent.arun(prompt)
    while output.is_paused:
        await resolve_requirements(output, port, registry)
        output = await agent.acontinue_run(run_response=output)
    return [(tool.tool_name, tool.confirmed, tool.result) for tool in output.tools or []]


def _model(*turns: Any) -> ScriptedModel:
    return ScriptedModel(turns=[*turns, "done"])


def _send(number: str) -> list[tuple[str, str, dict[str, str]]]:
    return [("c1", "send_invoice", {"number": number})]


async def test_the_wiring_runs_a_plain_and_an_approved_tool() -> None:
    """A tool without a rule just runs; one with a rule pauses, and runs when the port says yes."""
    look = [("c0", "list_invoices", {"customer": "ann"})]
    found = await run_with_approvals(build_agent(_model(look, _send("ann-1"))), "go")
    assert sorted(found, key=lambda item: item[0]) == [
        ("list_invoices", None, '["ann-1"]'),
        ("send_invoice", True, '"sent ann-1"'),
    ]


async def test_the_wiring_rejects_what_the_port_denies() -> None:
    """A denied call is rejected, and the run goes on to its end."""
    [(name, confirmed, _)] = await run_with_approvals(build_agent(_model(_send("ann-13"))), "go")
    assert (name, confirmed) == ("send_invoice", False)


async def test_the_integration_exports_the_same_functions() -> None:
    """`get_integration("agno")` exports functions whose pauses resolve alike."""
    agno = get_integration("agno")
    executor = Executor(registry)
    tools = [agno.export_tool(spec, executor=executor) for spec in registry.for_target("agno")]
    agent = Agent(model=_model(_send("ann-2")), tools=tools, telemetry=False)
    assert await run_with_approvals(agent, "go") == [("send_invoice", True, '"sent ann-2"')]
