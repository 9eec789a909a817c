"""Operations on tasks: begun, made progress, ended; each in one transaction with its records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent_adapter.core.errors import AccessDeniedError, NotFoundError
from agent_adapter.network.channels.snapshot import iso
from agent_adapter.network.hub import audit
from agent_adapter.network.hub.observations import observe
from agent_adapter.network.hub.task_records import (
    TaskMetadata,
    TaskState,
    seconds_of,
    task_of,
    task_values,
)
from agent_adapter.network.rules import LimitsBlock, parse_duration
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.positions import next_position

_AT_ONCE = 200


def start(tx: Transaction, task: TaskMetadata, limits: LimitsBlock) -> tuple[TaskMetadata, bool]:
    """Insert a new task, with the end that the owner's limits give it; the task, if it is new.

    Raises `AccessDeniedError` if as many tasks of the owner are running as `limits` allow.
    """
    known = tx.get("tasks", task.task_id)
    if known is not None:
        return task_of(known), False
    most = limits.max_concurrent_tasks
    if most > 0 and not task.is_over:
        where = {"owner_id": task.owner_id, "state in": ["created", "running"]}
        running = tx.count("tasks", where)
        if running >= most:
            raise AccessDeniedError(
                f"{running} tasks of the participant are running and its rule allows {most} "
                "(limits.max_concurrent_tasks); end one first"
            )
    lives = parse_duration(limits.task_ttl_default)
    until = task.expires_at or (iso(tx.now + lives) if lives else None)
    made = replace(
        task,
        created_at=iso(tx.now),
        started_at=task.started_at or iso(tx.now),
        expires_at=until,
    )
    facts = _facts(made) | {"title": made.title}
    row = {"task_id": made.task_id, "created_at": tx.now} | task_values(made, tx.now)
    tx.insert("tasks", row)
    audit.write(tx, "task_started", facts)
    return made, True


def end(tx: Transaction, task: TaskMetadata) -> TaskMetadata:
    """Record that a task has ended in its `state`: in the audit log, and for its capability."""
    over = _save(tx, replace(task, completed_at=iso(tx.now)), {})
    facts = _facts(over) | {"outcome": over.state.value, "capability": over.spec.capability}
    facts |= {"reason": over.error or None, "started_at": over.started_at}
    audit.write(tx, audit.TASK_TERMINATED, facts)
    if over.spec.capability is not None:
        begun = seconds_of(over.started_at)
        latency = None if begun is None else max(0.0, (tx.now - begun) * 1000)
        capability = over.spec.capability
        observe(tx, over.owner_id, capability, over.state.value, latency, task_id=over.task_id)
    return over


def end_of_channel(tx: Transaction, channel_id: str, reason: str) -> None:
    """Expire the tasks of a channel that has ended."""
    for row in tx.select("tasks", {"channel_id": channel_id}):
        task = task_of(row)
        if not task.is_over:
            end(tx, replace(task, state=TaskState.EXPIRED, error=f"its channel ended: {reason}"))


def read_task(tx: Transaction, task_id: str) -> TaskMetadata:
    """The task; `NotFoundError` for an unknown id."""
    row = tx.get("tasks", task_id)
    if row is None:
        raise NotFoundError(f"task not found: there is no task {task_id!r}")
    return task_of(row)


def again(tx: Transaction, known: TaskMetadata, task: TaskMetadata) -> TaskMetadata:
    """Take over what the owner of a known task says when it begins it again."""
    changed = replace(
        known,
        state=task.state,
        started_at=task.started_at or known.started_at,
        expires_at=task.expires_at or known.expires_at,
        channel_id=task.channel_id or known.channel_id,
        progress={**known.progress, **task.progress},
    )
    return end(tx, changed) if changed.is_over else _save(tx, changed, {})


def _save(tx: Transaction, task: TaskMetadata, more: Row) -> TaskMetadata:
    tx.update("tasks", {"task_id": task.task_id}, task_values(task, tx.now) | more)
    return task


def _facts(task: TaskMetadata) -> dict[str, Any]:
    ids: dict[str, Any] = {"task_id": task.task_id, "owner_id": task.owner_id}
    return ids | {"agent_id": task.owner_id, "channel_id": task.channel_id}


def progressed(tx: Transaction, task: TaskMetadata) -> TaskMetadata:
    """Write a change of a task that goes on."""
    return _save(tx, task, {"event": next_position(tx)})


def due(tx: Transaction) -> list[Row]:
    """Tasks whose time is over, at most 200 per state."""
    found: list[Row] = []
    for state in ("running", "created"):
        where = {"state": state, "expires_at <=": tx.now}
        found += tx.select("tasks", where, order_by="expires_at", limit=_AT_ONCE)
    return found


def shift(tx: Transaction, seconds: float) -> None:
    """Add the time without a hub to the life spans of the tasks that go on."""
    going_on: Row = {"state in": ["created", "running"], "expires_at !=": None}
    for row in tx.select("tasks", going_on):
        values = {"expires_at": row["expires_at"] + seconds}
        tx.update("tasks", {"task_id": row["task_id"]}, values)


def expire(tx: Transaction, task_id: str) -> TaskMetadata | None:
    """End a task whose time is over; `None` if it is not."""
    task = read_task(tx, task_id)
    until = seconds_of(task.expires_at)
    if task.is_over or until is None or until > tx.now:
        return None
    return end(tx, replace(task, state=TaskState.EXPIRED, error="ttl_expired"))
