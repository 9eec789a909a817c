"""Tasks: pieces of work that participants report to their hub, kept in its store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from agent_adapter.core.errors import NotFoundError, ProtocolError
from agent_adapter.network.channels.snapshot import iso
from agent_adapter.network.hub import audit
from agent_adapter.network.hub import task_operations as operations
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.network.hub.identities import Identities
from agent_adapter.network.hub.observations import observe
from agent_adapter.network.hub.task_records import (
    TERMINAL_TASK_STATES,
    TaskMetadata,
    TaskSpec,
    TaskState,
    metadata_from,
    task_of,
)
from agent_adapter.network.rules import LimitsBlock
from agent_adapter.store.base import Row, Transaction

_CHECKPOINT_LIMIT = 1024 * 1024


class Tasks:
    """The tasks of a hub's participants, and what they continue from after a restart."""

    def __init__(self, service: ChannelService, identities: Identities) -> None:
        self._service = service
        self._identities = identities

    async def start_task(
        self, task_id: str, owner_id: str, title: str, channel_id: str | None = None
    ) -> TaskMetadata:
        """Store a new running task; a known `task_id` returns the existing one.

        `AccessDeniedError` if the owner's rule allows no more tasks at once.
        """
        task = TaskMetadata(task_id, owner_id, TaskSpec(title), channel_id=channel_id)
        limits = self._limits(owner_id)
        return await self._service.write(lambda tx: operations.start(tx, task, limits)[0])

    async def observe_task(self, metadata: Any) -> TaskMetadata:
        """Store a task that its owner has begun, or what its owner says of a known one.

        `AccessDeniedError` if the owner's rule allows no more tasks at once.
        """
        task = metadata_from(metadata)
        limits = self._limits(task.owner_id)

        def op(tx: Transaction) -> TaskMetadata:
            found, is_new = operations.start(tx, task, limits)
            return found if is_new or found.is_over else operations.again(tx, found, task)

        return await self._service.write(op)

    async def update_task(
        self,
        task_id: str,
        owner_id: str | None = None,
        *,
        state: TaskState | str | None = None,
        note: str | None = None,
        progress: Mapping[str, Any] | None = None,
        result: Any = None,
        error: str | None = None,
    ) -> TaskMetadata:
        """Change a task; a task that has ended is left unchanged.

        With `owner_id` it must be that owner's. Its end is recorded in the audit log and, where the
        task names a capability, in its owner's résumé.

        Raises `NotFoundError` for an unknown task, or another owner's; `ProtocolError` for an
        unknown state.
        """
        wanted = _state(state)

        def op(tx: Transaction) -> tuple[TaskMetadata, bool]:
            task = operations.read_task(tx, task_id)
            if owner_id is not None and task.owner_id != owner_id:
                raise NotFoundError(f"you have no task {task_id!r}")
            if task.is_over:
                return task, False
            changed = replace(task, progress={**task.progress, **(progress or {})})
            if progress or note is not None:
                changed = replace(changed, last_progress_at=iso(tx.now))
            if note is not None:
                changed = replace(changed, notes=[*task.notes, note])
            if result is not None:
                changed = replace(changed, result=result)
            if error:
                changed = replace(changed, error=error)
            changed = changed if wanted is None else replace(changed, state=wanted)
            if changed.is_over:
                return operations.end(tx, changed), True
            return operations.progressed(tx, changed), False

        task, ended = await self._service.write(op)
        if ended and task.spec.capability is not None:
            await self._identities.reload(task.owner_id)
        return task

    async def get_task(self, task_id: str) -> TaskMetadata:
        """A task; `NotFoundError` for an unknown one."""
        return await self._service.read(lambda tx: operations.read_task(tx, task_id))

    read_task = get_task

    async def list_tasks(
        self,
        owner_id: str | None = None,
        *,
        agent_id: str | None = None,
        channel_id: str | None = None,
        state: TaskState | str | None = None,
        limit: int = 50,
    ) -> list[TaskMetadata]:
        """Tasks, the newest first: of an owner (`agent_id` is another name for it), of a channel.

        Without either it is every task of the hub.
        """
        wanted = _state(state)
        where: dict[str, Any] = {} if wanted is None else {"state": wanted.value}
        owner = owner_id if agent_id is None else agent_id
        where |= {} if owner is None else {"owner_id": owner}
        where |= {} if channel_id is None else {"channel_id": channel_id}

        def op(tx: Transaction) -> list[Row]:
            return tx.select("tasks", where, order_by="created_at", descending=True, limit=limit)

        return [task_of(row) for row in await self._service.read(op)]

    async def record_observation(
        self,
        *,
        owner_id: str,
        capability: str,
        outcome: TaskState | str,
        latency_ms: int | None = None,
        task_id: str | None = None,
    ) -> None:
        """Count how a use of a capability has ended in its owner's résumé.

        Each task counts once, also if its end was counted before; an outcome that is not final and
        an unknown owner count nothing.
        """
        ended = _state(outcome)
        if ended is None or ended not in TERMINAL_TASK_STATES:
            return
        latency = None if latency_ms is None else float(latency_ms)

        def op(tx: Transaction) -> bool:
            return observe(tx, owner_id, capability, ended.value, latency, task_id=task_id)

        if await self._service.write(op):
            await self._identities.reload(owner_id)

    async def fire_task_event(self, task_id: str, kind: str, payload: Mapping[str, Any]) -> None:
        """Tell listeners of a task's event that no change of the task tells of."""
        facts = {**payload, "task_id": task_id, "agent_id": payload.get("owner_id")}
        await self._service.write(lambda tx: audit.write(tx, f"task_{kind}", facts))

    async def checkpoint_task(self, task_id: str, state: Mapping[str, Any]) -> None:
        """Keep what a task continues from, in place of what was kept before."""
        text = _checkpoint_text(task_id, state)

        def op(tx: Transaction) -> None:
            values = {"state": text, "at": tx.now}
            if not tx.update("checkpoints", {"task_id": task_id}, values):
                tx.insert("checkpoints", {"task_id": task_id} | values)

        await self._service.write(op)

    async def read_task_checkpoint(self, task_id: str) -> dict[str, Any] | None:
        """What `checkpoint_task` kept last; `None` if nothing was kept."""
        row = await self._service.read(lambda tx: tx.get("checkpoints", task_id))
        found: dict[str, Any] | None = None if row is None else json.loads(row["state"])
        return found

    async def expire_tasks(self) -> None:
        """End the tasks whose time is over."""
        rows = await self._service.read(operations.due)
        for row in rows:
            task = await self._service.write(partial(operations.expire, task_id=row["task_id"]))
            if task is not None and task.spec.capability is not None:
                await self._identities.reload(task.owner_id)

    def _limits(self, owner_id: str) -> LimitsBlock:
        owner = self._identities.find(owner_id)
        return LimitsBlock() if owner is None else owner.rule.limits


def _state(state: TaskState | str | None) -> TaskState | None:
    if state is None:
        return None
    try:
        # The value of an enumeration: AG2's own states are texts, too.
        return TaskState(getattr(state, "value", state))
    except ValueError:
        known = ", ".join(TaskState)
        raise ProtocolError(f"a task is one of {known}, not {state!r:.80}") from None


def _checkpoint_text(task_id: str, state: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(dict(state), allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise ProtocolError(
            f"the checkpoint of task {task_id} is no JSON object: {exc}; save texts, numbers, "
            "lists and mappings"
        ) from None
    if len(text) > _CHECKPOINT_LIMIT:
        raise ProtocolError(
            f"the checkpoint of task {task_id} has {len(text)} characters, the limit is "
            f"{_CHECKPOINT_LIMIT}; keep large data elsewhere and save where it is"
        )
    return text
