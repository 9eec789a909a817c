"""`TaskMetadata`: what a hub knows of a piece of work, and how it is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from agent_adapter.core.errors import ProtocolError
from agent_adapter.core.records import Record
from agent_adapter.network.channels.snapshot import iso
from agent_adapter.store.base import Row

_VERSION = 2
_LONGEST = 256 * 1024


class TaskState(StrEnum):
    """The state of a task; the last four are final."""

    CREATED = "created"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


TERMINAL_TASK_STATES = frozenset(TaskState) - {TaskState.CREATED, TaskState.RUNNING}
"""The states of a task that has ended."""


@dataclass(frozen=True, slots=True)
class TaskSpec(Record):
    """What a task is about; `capability` is the capability of its owner that it exercises."""

    title: str
    description: str = ""
    payload: dict[str, Any] = field(default_factory=dict)
    capability: str | None = None


@dataclass(frozen=True, slots=True)
class TaskMetadata(Record):
    """One piece of work of a participant; times are in ISO 8601.

    Attributes:
        task_id: its id.
        owner_id: the participant who does it.
        spec: what it is about.
        state: its state.
        created_at: when it became known.
        started_at: when it began.
        completed_at: when it ended.
        expires_at: when the hub ends it as expired.
        last_progress_at: when it last made progress.
        progress: what its owner has said about its progress, merged.
        result: what came out, as a JSON value.
        error: why it failed or was cancelled.
        channel_id: the channel that it belongs to.
        notes: remarks of its owner, oldest first.
    """

    task_id: str
    owner_id: str
    spec: TaskSpec
    state: TaskState = TaskState.RUNNING
    created_at: str = ""
    started_at: str | None = None
    completed_at: str | None = None
    expires_at: str | None = None
    last_progress_at: str | None = None
    progress: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    error: str = ""
    channel_id: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """What it is about, in a line."""
        return self.spec.title

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state in TERMINAL_TASK_STATES


def metadata_from(given: Any) -> TaskMetadata:
    """The record of a task, also of one that another library describes with the same fields.

    Raises `ProtocolError` for anything else.
    """
    if isinstance(given, TaskMetadata):
        return given
    write = getattr(given, "to_dict", None)
    data = write() if callable(write) else given
    if not isinstance(data, Mapping):
        raise ProtocolError(f"a task is described by a TaskMetadata, not a {type(given).__name__}")
    known = TaskMetadata.__dataclass_fields__
    return TaskMetadata.from_dict({name: data[name] for name in known if name in data})


def seconds_of(written: str | None) -> float | None:
    """A time in ISO 8601 as seconds since the epoch; `ProtocolError` if it is none."""
    if not written:
        return None
    try:
        return datetime.fromisoformat(written).timestamp()
    except ValueError:
        raise ProtocolError(f"{written!r:.80} is no time in ISO 8601") from None


def task_values(task: TaskMetadata, now: float) -> Row:
    """The columns of a task's row, except its key."""
    rest = {
        "v": _VERSION,
        "notes": task.notes,
        "description": task.spec.description,
        "spec_payload": task.spec.payload,
        "capability": task.spec.capability,
        "progress": task.progress,
        "result": task.result,
        "error": task.error,
        "started_at": task.started_at,
        "completed_at": task.completed_at,
        "last_progress_at": task.last_progress_at,
    }
    try:
        payload = json.dumps(rest, allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise ProtocolError(
            f"task {task.task_id}: it has a value that is not JSON: {exc}"
        ) from None
    if len(payload) > _LONGEST:
        raise ProtocolError(
            f"task {task.task_id} has {len(payload)} characters of progress and result, the limit "
            f"is {_LONGEST}; keep large data elsewhere and say where it is"
        )
    return {
        "owner_id": task.owner_id,
        "channel_id": task.channel_id,
        "title": task.spec.title,
        "state": task.state.value,
        "payload": payload,
        "result": task.result if isinstance(task.result, str) else None,
        "updated_at": now,
        "expires_at": seconds_of(task.expires_at),
    }


def task_of(row: Row) -> TaskMetadata:
    """The record of a stored task, also of one that an older version has written."""
    rest: dict[str, Any] = json.loads(row["payload"])
    spec = TaskSpec(
        row["title"],
        rest.get("description", ""),
        rest.get("spec_payload", {}),
        rest.get("capability"),
    )
    state = TaskState(row["state"])
    over = state in TERMINAL_TASK_STATES
    return TaskMetadata(
        task_id=row["task_id"],
        owner_id=row["owner_id"],
        spec=spec,
        state=state,
        created_at=iso(row["created_at"]),
        started_at=rest.get("started_at", iso(row["created_at"])),
        completed_at=rest.get("completed_at", iso(row["updated_at"]) if over else None),
        expires_at=None if row["expires_at"] is None else iso(row["expires_at"]),
        last_progress_at=rest.get("last_progress_at"),
        progress=rest.get("progress", {}),
        result=rest.get("result", row["result"]),
        error=rest.get("error", ""),
        channel_id=row["channel_id"],
        notes=list(rest["notes"]),
    )
