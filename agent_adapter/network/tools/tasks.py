"""`tasks`: keep track of pieces of work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import NetworkError, ToolError
from agent_adapter.core.routing import ChannelInject
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.ids import new_id
from agent_adapter.network.hub.tasks import list_tasks, read_task, start_task, update_task

if TYPE_CHECKING:
    from agent_adapter.network.clients.agent_client import AgentClient
    from agent_adapter.store.base import Store

__all__ = ["tasks_tool"]

_ENDS = {"progress": "running", "complete": "completed", "fail": "failed", "cancel": "cancelled"}


def tasks_tool(client: AgentClient) -> ToolSpec:
    """The tool of one participant."""

    async def tasks(
        action: Literal["start", "progress", "complete", "fail", "cancel", "list", "status"],
        ctx: ToolContext,
        title: str | None = None,
        task_id: str | None = None,
        note: str | None = None,
        result: str | None = None,
        state: Literal["running", "completed", "failed", "cancelled"] | None = None,
        limit: int = 20,
        current: ChannelInject = None,
    ) -> Any:
        """Start, update, end and look up your tasks.

        Args:
            action: what to do; "start" needs `title`, "list" nothing, the others `task_id`.
            ctx: the call.
            title: for "start": what the task is.
            task_id: the task.
            note: for "progress", "fail" and "cancel": what happened.
            result: for "complete": what came out.
            state: for "list": only tasks in this state.
            limit: for "list": how many at most.
            current: the channel of the turn.
        """
        store, owner = _store_of(client), client.agent_id
        if action == "list":
            found = await store.read(lambda tx: list_tasks(tx, owner, state=state, limit=limit))
            return [asdict(task) for task in found]
        if action == "start":
            if not title:
                raise ToolError('tasks(action="start") needs `title`')
            chosen = f"tsk_{ctx.idempotency_key}" if ctx.idempotency_key else new_id("tsk")
            channel_id = current.channel_id if current is not None else None
            return await _done(
                store.write, lambda tx: start_task(tx, chosen, owner, title, channel_id)
            )
        if not task_id:
            raise ToolError(f'tasks(action="{action}") needs `task_id`')
        if action == "status":
            return await _done(store.read, lambda tx: read_task(tx, task_id))
        end = _ENDS[action]
        return await _done(
            store.write,
            lambda tx: update_task(tx, task_id, owner, state=end, note=note, result=result),
        )

    return ToolSpec.from_function(tasks, effects="write")


async def _done(run: Callable[[Any], Any], op: Callable[[Any], Any]) -> dict[str, Any]:
    try:
        return asdict(await run(op))
    except NetworkError as exc:
        raise ToolError(f"tasks: {exc}") from exc


def _store_of(client: AgentClient) -> Store:
    hub = client.hub_client.hub
    if hub is None:
        raise ToolError("tasks are kept by the hub, which is in another process")
    store: Store = hub.store
    return store
