"""Agno: tools of one registry in an agent, which pauses until a reviewer decides.

The model is a scripted one, so this runs without a key and without a network:

    python examples/agno_tools.py
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from agno.agent import Agent
from agno.models.base import Model
from agno.models.response import ModelResponse

import agent_adapter as aa
from agent_adapter.integrations.agno import agno_functions, resolve_requirements

registry = aa.ToolRegistry()


@registry.tool(effects="read")
def open_invoices(customer: str) -> list[str]:
    """The numbers of a customer's open invoices."""
    return ["R-7", "R-8"]


@registry.tool(confirm=True)
def send_invoice(number: str, to: str) -> str:
    """Sends an invoice by e-mail."""
    return f"sent {number} to {to}"


def reviewer(request: aa.ApprovalRequest) -> bool:
    """Allow mail inside the house; a real one would show `request.shown` to a person."""
    return str(request.arguments["to"]).endswith("@example.com")


port = aa.CallbackApproval(reviewer)


def build_agent(model: Model) -> Agent:
    """An Agno agent with every tool of the registry."""
    executor = aa.Executor(registry, approval=port, store=aa.open_store("memory://"))
    # send_invoice has confirm=True, so it is exported with requires_confirmation=True
    tools = agno_functions(registry, executor=executor)
    return Agent(model=model, tools=tools, telemetry=False)


async def run_with_approvals(agent: Agent, prompt: str) -> list[tuple[Any, Any, Any]]:
    """Name, confirmation and result of each tool that was called for `prompt`."""
    output = await agent.arun(prompt)
    while output.is_paused:  # Agno paused: a confirm tool wants to run
        await resolve_requirements(output, port, registry)  # the port confirms or rejects
        output = await agent.acontinue_run(run_response=output)
    return [(tool.tool_name, tool.confirmed, tool.result) for tool in output.tools or []]


@dataclass
class Script(Model):
    """A model that plays its turns: a text, or tool calls as `(id, name, arguments)`."""

    id: str = "script"
    turns: list[Any] = field(default_factory=list)

    async def ainvoke(self, *args: Any, **options: Any) -> ModelResponse:
        """The next turn."""
        turn = self.turns.pop(0)
        if isinstance(turn, str):
            return ModelResponse(role="assistant", content=turn)
        calls = [
            {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, n, a in turn
        ]
        return ModelResponse(role="assistant", tool_calls=calls)

    # Agno's other ways to ask a model; an async agent without streaming uses none of them.
    invoke = invoke_stream = ainvoke_stream = ainvoke  # type: ignore[assignment]  # see above
    _parse_provider_response = _parse_provider_response_delta = ainvoke  # type: ignore[assignment]  # see above


def script() -> Script:
    """A model that looks the invoices up, then sends both."""
    mine, other = "ann@example.com", "mallory@elsewhere.net"
    return Script(
        turns=[
            [("c1", "open_invoices", {"customer": "ann"})],
            [
                ("c2", "send_invoice", {"number": "R-7", "to": mine}),
                ("c3", "send_invoice", {"number": "R-8", "to": other}),
            ],
            "One invoice is sent, the other was refused.",
        ]
    )


async def main() -> None:
    """Run the script and print what each tool answered."""
    for name, confirmed, result in await run_with_approvals(build_agent(script()), "Send them."):
        print(f"{name} (confirmed: {confirmed}): {result}")


if __name__ == "__main__":
    asyncio.run(main())
