"""Tasks: pieces of work that participants report to their hub, kept in its store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.errors import NotFoundError, ProtocolError
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.store.base import Row, Transaction

TASK_STATES = ("running", "completed", "failed", "cancelled")
"""The states of a task; the last three are final."""

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One piece of work of `owner_id`, optionally for `channel_id`, with progress `notes`."""

    task_id: str
    owner_id: str
    title: str
    state: str = "running"
    channel_id: str | None = None
    notes: tuple[str, ...] = ()
    result: str | None = None
    created_at: float = 0.0
    updated_at: float = 0.0


class Tasks:
    """The tasks of a hub's participants."""

    def __init__(self, service: ChannelService) -> None:
        self._service = service

    async def start_task(
        self, task_id: str, owner_id: str, title: str, channel_id: str | None = None
    ) -> Task:
        """Store a new task; a known `task_id` returns the existing one."""
        return await self._service.write(
            lambda tx: start_task(tx, task_id, owner_id, title, channel_id)
        )

    async def update_task(
        self,
        task_id: str,
        owner_id: str,
        *,
        state: str = "running",
        note: str | None = None,
        result: str | None = None,
    ) -> Task:
        """Change a task of its owner; a task that has ended is left unchanged.

        `NotFoundError` for another owner's task, `ProtocolError` for an unknown state.
        """
        return await self._service.write(
            lambda tx: update_task(tx, task_id, owner_id, state=state, note=note, result=result)
        )

    async def read_task(self, task_id: str) -> Task:
        """A task; `NotFoundError` for an unknown one."""
        return await self._service.read(lambda tx: read_task(tx, task_id))

    async def list_tasks(
        self, owner_id: str, *, state: str | None = None, limit: int = 50
    ) -> list[Task]:
        """Tasks of one owner, newest first."""
        return await self._service.read(
            lambda tx: list_tasks(tx, owner_id, state=state, limit=limit)
        )


def start_task(
    tx: Transaction, task_id: str, owner_id: str, title: str, channel_id: str | None
) -> Task:
    """Insert a new task; a known `task_id` returns the existing one."""
    row: Row = {
        "task_id": task_id,
        "owner_id": owner_id,
        "channel_id": channel_id,
        "title": title,
        "state": "running",
        "payload": _payload(()),
        "created_at": tx.now,
        "updated_at": tx.now,
    }
    tx.insert("tasks", row)
    return read_task(tx, task_id)


def update_task(
    tx: Transaction,
    task_id: str,
    owner_id: str,
    *,
    state: str = "running",
    note: str | None = None,
    result: str | None = None,
) -> Task:
    """Change a task of `owner_id`; a task that has ended is left unchanged.

    Raises `NotFoundError` for another owner's task, `ProtocolError` for an unknown state.
    """
    if state not in TASK_STATES:
        raise ProtocolError(f"a task is one of {', '.join(TASK_STATES)}, not {state!r}")
    task = read_task(tx, task_id)
    if task.owner_id != owner_id:
        raise NotFoundError(f"you have no task {task_id!r}")
    if task.state != "running":
        return task
    notes = task.notes if note is None else (*task.notes, note)
    changed: Row = {
        "state": state,
        "payload": _payload(notes),
        "result": task.result if result is None else result,
        "updated_at": tx.now,
    }
    tx.update("tasks", {"task_id": task_id}, changed)
    return read_task(tx, task_id)


def read_task(tx: Transaction, task_id: str) -> Task:
    """The task; `NotFoundError` for an unknown id."""
    row = tx.get("tasks", task_id)
    if row is None:
        raise NotFoundError(f"there is no task {task_id!r}")
    return _task(row)


def list_tasks(
    tx: Transaction, owner_id: str, *, state: str | None = None, limit: int = 50
) -> list[Task]:
    """Tasks of one owner, the newest first."""
    where: dict[str, Any] = {"owner_id": owner_id}
    if state is not None:
        where["state"] = state
    rows = tx.select("tasks", where, order_by="created_at", descending=True, limit=limit)
    return [_task(row) for row in rows]


def _payload(notes: tuple[str, ...]) -> str:
    return json.dumps({"v": _VERSION, "notes": list(notes)})


def _task(row: Row) -> Task:
    payload: Mapping[str, Any] = json.loads(row["payload"])
    return Task(
        task_id=row["task_id"],
        owner_id=row["owner_id"],
        title=row["title"],
        state=row["state"],
        channel_id=row["channel_id"],
        notes=tuple(payload["notes"]),
        result=row["result"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
