"""`tasks`: keep track of pieces of work."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import NetworkError, ToolError
from agent_adapter.core.routing import ChannelInject
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.ids import new_secret_id
from agent_adapter.network.clients.agent_client import AgentClient
from agent_adapter.network.tools.reading import read_from

_ENDS = {"progress": "running", "complete": "completed", "fail": "failed", "cancel": "cancelled"}


def tasks_tool(client: AgentClient) -> ToolSpec:
    """The tool, bound to one participant."""

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
        hub, owner = await client.hub_client.hub_like(), client.agent_id
        try:
            if action == "list":
                found = await hub.list_tasks(owner, state=state, limit=limit)
                await read_from(client, {task.channel_id for task in found if task.channel_id})
                return [asdict(task) for task in found]
            if action == "start":
                if not title:
                    raise ToolError('tasks(action="start") needs `title`')
                chosen = (
                    f"tsk_{ctx.idempotency_key}" if ctx.idempotency_key else new_secret_id("tsk")
                )
                channel_id = current.channel_id if current is not None else None
                return asdict(await hub.start_task(chosen, owner, title, channel_id))
            if not task_id:
                raise ToolError(f'tasks(action="{action}") needs `task_id`')
            if action == "status":
                task = await hub.read_task(task_id)
                await read_from(client, [task.channel_id] if task.channel_id else [])
                return asdict(task)
            return asdict(
                await hub.update_task(task_id, owner, state=_ENDS[action], note=note, result=result)
            )
        except NetworkError as exc:
            raise ToolError(f"tasks: {exc}") from exc

    return ToolSpec.from_function(tasks, effects="write")
