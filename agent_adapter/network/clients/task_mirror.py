"""`TaskMirror`: tells a hub of the tasks that an AG2 agent runs."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from typing import Any, Protocol

from agent_adapter.core.errors import NotFoundError
from agent_adapter.network.hub.task_records import TaskMetadata, TaskSpec, TaskState

_log = logging.getLogger("agent_adapter.network")


class TaskKeeper(Protocol):
    """A hub, or a client of one."""

    async def observe_task(self, metadata: Any) -> TaskMetadata:
        """Tell the hub of a task that its owner has begun."""
        ...

    async def update_task(
        self,
        task_id: str,
        *,
        state: TaskState | str | None = None,
        progress: Mapping[str, Any] | None = None,
        result: Any = None,
        error: str | None = None,
    ) -> Any:
        """Change a task."""
        ...


class TaskMirror:
    """Forwards the task events of a stream to a hub, in the name of one owner.

    A task that names a capability counts in its owner's résumé when it ends. What cannot be told is
    logged, and listeners hear of it as `mirror_failed`: the agent's own work goes on.
    """

    def __init__(
        self,
        *,
        hub_client: TaskKeeper | None = None,
        hub: TaskKeeper | None = None,
        owner_id: str,
        channel_id: str | None = None,
    ) -> None:
        keeper = hub_client if hub_client is not None else hub
        if keeper is None:
            raise TypeError("TaskMirror needs the hub_client= or the hub= that it tells")
        self._keeper = keeper
        self._owner_id = owner_id
        self._channel_id = channel_id

    def attach(self, stream: Any) -> list[Any]:
        """Follow the tasks of an AG2 stream; the result is for `detach`."""
        from ag2 import events

        told = {
            events.TaskStarted: self._started,
            events.TaskProgress: self._progress,
            events.TaskCompleted: self._completed,
            events.TaskFailed: self._failed,
            events.TaskExpired: self._expired,
            events.TaskCancelled: self._cancelled,
        }
        return [
            stream.where(kind).subscribe(method, sync_to_thread=False)
            for kind, method in told.items()
        ]

    def detach(self, stream: Any, sub_ids: list[Any]) -> None:
        """Stop following."""
        for sub_id in sub_ids:
            with contextlib.suppress(Exception):  # the stream may have ended
                stream.unsubscribe(sub_id)

    async def _started(self, event: Any) -> None:
        given = event.spec
        spec = TaskSpec(event.objective or "")
        if given is not None:
            payload = dict(given.payload)
            spec = TaskSpec(given.title, given.description, payload, given.capability)
        task = TaskMetadata(
            event.task_id,
            self._owner_id,
            spec,
            expires_at=event.expires_at,
            channel_id=self._channel_id,
        )
        try:
            await self._keeper.observe_task(task)
        except Exception as exc:
            await self._escalate(event.task_id, "started", exc)

    async def _progress(self, event: Any) -> None:
        await self._update(event.task_id, "progress", progress=dict(event.payload or {}))

    async def _completed(self, event: Any) -> None:
        ended = TaskState.COMPLETED
        await self._update(event.task_id, "completed", state=ended, result=event.result)

    async def _failed(self, event: Any) -> None:
        error = str(event.error)
        await self._update(event.task_id, "failed", state=TaskState.FAILED, error=error)

    async def _expired(self, event: Any) -> None:
        await self._update(event.task_id, "expired", state=TaskState.EXPIRED)

    async def _cancelled(self, event: Any) -> None:
        error = event.reason or None
        await self._update(event.task_id, "cancelled", state=TaskState.CANCELLED, error=error)

    async def _update(self, task_id: str, what: str, **changes: Any) -> None:
        try:
            await self._keeper.update_task(task_id, **changes)
        except NotFoundError:
            _log.info("task %s: %s was not told: the hub does not know it", task_id, what)
        except Exception as exc:
            await self._escalate(task_id, what, exc)

    async def _escalate(self, task_id: str, what: str, error: Exception) -> None:
        """Report what the hub was not told, without harm to the agent's turn."""
        _log.error("task %s: %s was not told: %s", task_id, what, error)
        tell = getattr(self._keeper, "fire_task_event", None)
        if tell is None:
            return
        payload = {"op": what, "owner_id": self._owner_id, "channel_id": self._channel_id}
        payload |= {"exc_type": type(error).__name__, "exc_message": str(error)[:2000]}
        with contextlib.suppress(Exception):  # it is in the log already
            await tell(task_id, "mirror_failed", payload)
