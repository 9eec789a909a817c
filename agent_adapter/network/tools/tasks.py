"""`tasks`: keep track of pieces of work, one's own and those one waits for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any, Literal

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import NetworkError, ToolError
from agent_adapter.core.routing import ChannelInject
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.ids import new_secret_id
from agent_adapter.flow.envelope import EV_TASK_CANCEL_REQUEST, Envelope
from agent_adapter.network.clients.agent_client import AgentClient
from agent_adapter.network.events.feed import Subscription
from agent_adapter.network.hub.task_records import TaskMetadata, TaskState
from agent_adapter.network.tools.reading import read_from

_ENDS = {"progress": None, "complete": "completed", "fail": "failed", "cancel": "cancelled"}
_LONGEST_WAIT = 3600.0


def tasks_tool(client: AgentClient) -> ToolSpec:
    """The tool, bound to one participant."""

    async def tasks(
        action: Literal[
            "start", "progress", "complete", "fail", "cancel", "list", "status", "wait"
        ],
        ctx: ToolContext,
        title: str | None = None,
        task_id: str | None = None,
        note: str | None = None,
        payload: dict[str, Any] | None = None,
        result: Any = None,
        reason: str = "",
        scope: Literal["own", "all"] = "own",
        state: Literal["active", "all", "running", "completed", "failed", "expired", "cancelled"]
        | None = None,
        timeout: float = 300.0,  # noqa: ASYNC109  # a parameter of the tool
        poll_interval: float | None = None,
        limit: int = 20,
        current: ChannelInject = None,
    ) -> Any:
        """Start, update, end, look up and wait for tasks.

        Args:
            action: what to do; "start" needs `title`, "list" nothing, the others `task_id`.
            ctx: the call.
            title: for "start": what the task is.
            task_id: the task.
            note: for "progress", "fail" and "cancel": what happened.
            payload: for "progress": what is known so far, by name.
            result: for "complete": what came out.
            reason: for "cancel": why. The owner of another's task is asked to cancel it.
            scope: for "list": your own tasks, or all that you may see.
            state: for "list": only tasks in this state; "active" have not ended.
            timeout: for "wait": how many seconds at most.
            poll_interval: without effect: a wait ends as soon as the task does.
            limit: for "list": how many at most.
            current: the channel of the turn.
        """
        try:
            if action == "list":
                return await _list(client, scope, state, limit)
            if action == "start":
                channel_id = current.channel_id if current is not None else None
                return await _start(client, ctx, title, channel_id)
            if not task_id:
                raise ToolError(f'tasks(action="{action}") requires `task_id`')
            if action in ("status", "wait"):
                return await _status(client, task_id, timeout if action == "wait" else 0.0)
            changes = {"note": note, "progress": payload, "result": result}
            return await _change(client, action, task_id, changes, note or reason)
        except NetworkError as exc:
            raise ToolError(f"tasks: {exc}") from exc

    return ToolSpec.from_function(tasks, effects="write")


def summary(task: TaskMetadata) -> dict[str, Any]:
    """A task as a model reads it."""
    return {
        "task_id": task.task_id,
        "owner_id": task.owner_id,
        "title": task.spec.title,
        "capability": task.spec.capability,
        "state": task.state.value,
        "created_at": task.created_at,
        "started_at": task.started_at,
        "completed_at": task.completed_at,
        "expires_at": task.expires_at,
        "last_progress_at": task.last_progress_at,
        "progress": task.progress,
        "notes": task.notes,
        "result": task.result,
        "error": task.error,
    }


async def _list(
    client: AgentClient, scope: str, state: str | None, limit: int
) -> list[dict[str, Any]]:
    found = await _listed(client, scope, state, limit)
    await read_from(client, {task.channel_id for task in found if task.channel_id})
    return [summary(task) for task in found]


async def _start(
    client: AgentClient, ctx: ToolContext, title: str | None, channel_id: str | None
) -> dict[str, Any]:
    if not title:
        raise ToolError('tasks(action="start") needs `title`')
    hub, key = await client.hub_client.hub_like(), ctx.idempotency_key
    chosen = f"tsk_{key}" if key else new_secret_id("tsk")
    return summary(await hub.start_task(chosen, client.agent_id, title, channel_id))


async def _status(client: AgentClient, task_id: str, seconds: float) -> dict[str, Any]:
    task = await _awaited(client, task_id, seconds)
    await read_from(client, [task.channel_id] if task.channel_id else [])
    return summary(task)


async def _change(
    client: AgentClient, action: str, task_id: str, changes: dict[str, Any], why: str
) -> dict[str, Any] | str:
    """Change a task of the participant's own; of another's, ask its owner to cancel it."""
    hub, own = await client.hub_client.hub_like(), client.agent_id
    if action == "cancel":
        task = await hub.get_task(task_id)
        if task.owner_id != own:
            return await _asked_to_cancel(client, task, why)
    error = why or None if action in ("fail", "cancel") else None
    return summary(await hub.update_task(task_id, own, state=_ENDS[action], error=error, **changes))


async def _listed(
    client: AgentClient, scope: str, state: str | None, limit: int
) -> list[TaskMetadata]:
    """Tasks that the participant may see: its own, and those of its channels."""
    hub, own = await client.hub_client.hub_like(), client.agent_id
    wanted = None if state in (None, "all", "active") else TaskState(state).value
    most = limit * 4 if state == "active" else limit
    found = await hub.list_tasks(agent_id=own, state=wanted, limit=most)
    if scope == "all":
        seen = {task.task_id: task for task in found}
        for channel in await hub.list_channels(agent_id=own, limit=100):
            page = await hub.list_tasks(channel_id=channel.channel_id, state=wanted, limit=most)
            seen |= {task.task_id: task for task in page}
        found = sorted(seen.values(), key=lambda task: task.created_at, reverse=True)
    kept: Iterable[TaskMetadata] = found
    if state == "active":
        kept = (task for task in found if not task.is_over)
    return list(kept)[:limit]


async def _awaited(client: AgentClient, task_id: str, timeout: float) -> TaskMetadata:  # noqa: ASYNC109
    """The task, once it has ended or the time is over."""
    hub = await client.hub_client.hub_like()
    if timeout <= 0:
        return await hub.get_task(task_id)
    async with await client.hub_client.subscribe(_END_KINDS) as events:
        task = await hub.get_task(task_id)
        if not task.is_over:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(timeout, _LONGEST_WAIT)):
                    await _ended(events, task_id)
            task = await hub.get_task(task_id)
    if not task.is_over:
        raise ToolError(f"tasks: {task_id} has not ended within {timeout:g} s")
    return task


async def _ended(events: Subscription, task_id: str) -> None:
    async for event in events:
        if event.task_id == task_id:
            return


async def _asked_to_cancel(client: AgentClient, task: TaskMetadata, reason: str) -> str:
    """Ask the owner of a task to cancel it, in the task's channel."""
    if task.is_over:
        return f"{task.task_id} is already {task.state.value}"
    if task.channel_id is None:
        raise ToolError(
            f"tasks: {task.task_id} has no associated channel in which its owner could be asked"
        )
    await client.send_envelope(
        Envelope(
            task.channel_id,
            client.agent_id,
            [task.owner_id],
            EV_TASK_CANCEL_REQUEST,
            {"task_id": task.task_id, "reason": reason},
            task_id=task.task_id,
        )
    )
    return f"cancel_request posted to the owner of {task.task_id}, who decides"


_END_KINDS = ("task_completed", "task_failed", "task_expired", "task_cancelled")
