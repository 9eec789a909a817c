"""Which provider a client belongs to."""

from __future__ import annotations

from typing import Any

from agent_adapter.core.errors import IntegrationError
from agent_adapter.integrations.wires.anthropic import Messages
from agent_adapter.integrations.wires.chat import Chat
from agent_adapter.integrations.wires.gemini import Contents
from agent_adapter.integrations.wires.protocol import Wire
from agent_adapter.integrations.wires.responses import Responses


def wire_for(client: Any, api: str | None) -> Wire:
    """The wire of an async provider client; `IntegrationError` for anything else."""
    names = {(base.__module__.partition(".")[0], base.__name__) for base in type(client).__mro__}
    if ("openai", "AsyncOpenAI") in names:
        if api not in (None, "chat", "responses"):
            raise ValueError(f"api is 'chat' or 'responses', not {api!r}")
        return Responses(client=client) if api == "responses" else Chat(client=client)
    if api is not None:
        raise ValueError(f"api={api!r} chooses between OpenAI's two; leave it out here")
    if ("anthropic", "AsyncAnthropic") in names:
        return Messages(client=client)
    if ("google", "Client") in names:
        return Contents(client=client.aio)
    if ("google", "AsyncClient") in names:
        return Contents(client=client)
    blocking = names & {("openai", "OpenAI"), ("anthropic", "Anthropic")}
    fix = f"; give Async{next(iter(blocking))[1]}" if blocking else ""
    raise IntegrationError(
        f"the loop drives AsyncOpenAI, AsyncAnthropic and google.genai.Client, not "
        f"{type(client).__name__}{fix}"
    )
