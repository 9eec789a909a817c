"""A LangGraph task that waits for a person: its other calls end first, then the graph pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from agent_adapter.core.errors import ApprovalPending
from agent_adapter.exec.scope import inside_a_tool
from agent_adapter.integrations.langchain_core.calls import Native

T = TypeVar("T")

APPROVAL = "agent_adapter.approval"
"""The `type` of the value that a pause shows to a client."""

_TASKS: dict[str, NodeCalls] = {}


class NodeCalls:
    """The calls of one node's task that are under way in this process.

    LangGraph abandons the other calls of a `ToolNode` as soon as one of them interrupts, and a
    program that ends its loop then would cancel them halfway: so whoever waits for a person lets
    them end first.
    """

    __slots__ = ("_busy", "_idle", "_name", "records")

    def __init__(self, name: str) -> None:
        self._name = name
        self._busy = 0
        self._idle = asyncio.Event()
        self.records: dict[str, None] = {}

    def begin(self) -> None:
        """One more call runs."""
        self._busy += 1
        self._idle.clear()
        _TASKS[self._name] = self

    def end(self) -> None:
        """One call ended, or waits for a person."""
        self._busy -= 1
        if self._busy == 0:
            self._idle.set()
            _TASKS.pop(self._name, None)

    async def settled(self, records: Iterable[str]) -> tuple[str, ...]:
        """Return when no call of the task runs, with every record that one of them waits for."""
        self.records.update(dict.fromkeys(records))
        self.end()
        try:
            for _ in range(3):  # calls of the same turn may not have begun yet
                await asyncio.sleep(0)
            await self._idle.wait()
        finally:
            self.begin()
        return tuple(self.records)


async def until_decided(
    native: Native, tool: str, attempt: Callable[[], Awaitable[T]], *, alone: bool = False
) -> T:
    """What `attempt` gives; while it is `ApprovalPending`, the graph is paused.

    Whatever a client resumes the graph with is ignored: it only makes the call ask again. Outside
    of a graph that can pause the error is raised, and so it is in a graph that a tool runs: the
    tool's own call then waits, and pauses the graph around it. `alone` is for a call in a thread of
    its own: LangGraph itself waits for the threads that have begun.
    """
    # LangGraph 1.2 maps the calls of a sync `ToolNode` over threads: when one pauses, a call whose
    # thread has not begun is cancelled, runs nothing, and is asked about after the next resume.
    if not native.pausable or inside_a_tool():
        return await attempt()
    if alone:
        return await _asking(tool, attempt, None)
    calls = _TASKS.get(native.task_id or "") or NodeCalls(native.task_id or "")
    calls.begin()
    try:
        return await _asking(tool, attempt, calls)
    finally:
        calls.end()


async def _asking(tool: str, attempt: Callable[[], Awaitable[T]], calls: NodeCalls | None) -> T:
    from langgraph.types import interrupt

    while True:
        try:
            return await attempt()
        except ApprovalPending as exc:
            records: Iterable[str] = exc.ids if calls is None else await calls.settled(exc.ids)
            # No arguments: they may hold secrets, and the record shows them.
            interrupt({"type": APPROVAL, "tool": tool, "records": list(records)})
