"""The demo's AG2 agent: a real `ag2.Agent` whose model follows a script."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_adapter.integrations.ag2 import ag2_tools

if TYPE_CHECKING:
    from agent_adapter.cli.demo.conversation import DemoMessage
    from agent_adapter.core.ports import ApprovalPort
    from agent_adapter.core.registry import ToolRegistry
    from agent_adapter.exec.executor import Executor


class Ag2DemoAgent:
    """An AG2 agent that reads order A1 and requests a refund."""

    framework = "AG2"

    def __init__(self, registry: ToolRegistry, executor: Executor, port: ApprovalPort) -> None:
        from ag2 import Agent
        from ag2.testing import TestConfig

        refund = {"order_id": "A1", "amount": 40.0}
        script = TestConfig(
            _call("order_status", {"order_id": "A1"}, "ag2-1"),
            [
                _call("refund", refund, "ag2-2"),
                _call("note", {"order_id": "A1", "text": "refund requested"}, "ag2-3"),
            ],
            "The refund waits for a person.",
            # After the approval a model repeats the call, with a call id of its own.
            _call("refund", refund, "ag2-4"),
            "The lamp is paid back.",
            raise_tool_errors=False,
        )
        tools = ag2_tools(registry, executor=executor, approval=port)
        self._agent = Agent("shop", config=script, tools=tools)
        self._reply: Any = None

    async def start(self) -> list[DemoMessage]:
        """The first turn: read the order, request the refund, write a note."""
        self._reply = await self._agent.ask("My lamp (order A1) arrived broken.")
        return await self._said(0)

    async def resume(self) -> list[DemoMessage]:
        """The next turn of the same conversation, after a person decided."""
        seen = len(await self._results())
        self._reply = await self._reply.ask("It was approved, go on.")
        return await self._said(seen)

    async def _results(self) -> list[Any]:
        from ag2.events import ToolResultsEvent

        events = await self._reply.history.get_events()
        batches = [event for event in events if isinstance(event, ToolResultsEvent)]
        return [result for batch in batches for result in batch.results]

    async def _said(self, seen: int) -> list[DemoMessage]:
        from agent_adapter.cli.demo.conversation import DemoMessage

        said = [
            DemoMessage(tool=result.name, shown=_text(result)) for result in await self._results()
        ]
        return [*said[seen:], DemoMessage(tool=None, shown=str(self._reply.body))]


def _call(name: str, arguments: dict[str, Any], call_id: str) -> Any:
    from ag2.events import ToolCallEvent

    return ToolCallEvent(name, id=call_id, arguments=json.dumps(arguments))


def _text(result: Any) -> str:
    part = result.result.parts[0]
    text = getattr(part, "content", None)
    return text if isinstance(text, str) else json.dumps(part.data)
