"""LangChain: tools of one registry in an agent, whose middleware asks a reviewer.

The model is LangChain's own scripted one, so this runs without a key and without a network:

    python examples/langchain_tools.py
"""

from __future__ import annotations

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage

import agent_adapter as aa
from agent_adapter.integrations.langchain import approval_middleware, langchain_tools

registry = aa.ToolRegistry()


@registry.tool(effects="read")
def free_rooms(day: str) -> list[str]:
    """The rooms that are free on a day."""
    return ["Lab 1", "Lab 2"]


@registry.tool(confirm=True)
def book_room(room: str, seats: int) -> str:
    """Books a room."""
    return f"booked {room} for {seats}"


def reviewer(request: aa.ApprovalRequest) -> bool:
    """Allow small bookings; a real one would show `request.shown` to a person."""
    return int(request.arguments["seats"]) <= 10


port = aa.CallbackApproval(reviewer)


def build_agent(model: Any) -> Any:
    """A LangChain agent with every tool of the registry."""
    executor = aa.Executor(registry, store=aa.open_store("memory://"))
    # The middleware asks the port about confirm tools and hands the approved call a one-use token,
    # so the executor does not ask again.
    gate = approval_middleware(port, registry, executor=executor)
    tools = langchain_tools(registry, executor=executor)
    return create_agent(model, tools, middleware=[gate])


async def ask(agent: Any, prompt: str) -> list[tuple[str | None, str, Any]]:
    """Name, status and text of every tool message of one run."""
    output = await agent.ainvoke({"messages": [("user", prompt)]})
    found = [message for message in output["messages"] if isinstance(message, ToolMessage)]
    return [(message.name, message.status, message.content) for message in found]


class Script(FakeMessagesListChatModel):
    """LangChain's scripted model, which any tools may be bound to."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        """The script does not change with the tools."""
        return self


def script() -> Script:
    """A model that looks for rooms, then books two."""
    small, large = {"room": "Lab 1", "seats": 4}, {"room": "Lab 2", "seats": 40}
    booking = [
        {"id": "c2", "name": "book_room", "args": small},
        {"id": "c3", "name": "book_room", "args": large},
    ]
    looking = [{"id": "c1", "name": "free_rooms", "args": {"day": "Monday"}}]
    return Script(
        responses=[
            AIMessage("", tool_calls=looking),
            AIMessage("", tool_calls=booking),
            AIMessage("One room is booked, the other was refused."),
        ]
    )


async def main() -> None:
    """Run the script and print what each tool answered."""
    for name, status, text in await ask(build_agent(script()), "Book two labs for Monday."):
        print(f"{name} ({status}): {text}")


if __name__ == "__main__":
    asyncio.run(main())
