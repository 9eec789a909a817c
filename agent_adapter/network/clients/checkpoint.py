"""`HubBackedCheckpointStore`: keeps what tasks continue from in a hub's store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from opentelemetry import trace


class CheckpointKeeper(Protocol):
    """A hub, or a client of one."""

    async def checkpoint_task(self, task_id: str, state: Mapping[str, Any]) -> None:
        """Keep what a task continues from."""
        ...

    async def read_task_checkpoint(self, task_id: str) -> dict[str, Any] | None:
        """What was kept last; `None` if nothing was kept."""
        ...


class HubBackedCheckpointStore:
    """The `checkpoint_store` of AG2's tasks over a `Hub` or a `HubClient`.

    `Task(checkpoint_store=HubBackedCheckpointStore(hub), resume_from=earlier_task_id)` continues
    in another process, or after a crash, what the earlier task has saved.
    """

    def __init__(self, hub: CheckpointKeeper) -> None:
        self._hub = hub

    async def write(self, task_id: str, state: Mapping[str, Any]) -> None:
        """Save the state of a task, in place of what was saved before."""
        await self._hub.checkpoint_task(task_id, dict(state))
        attributes = {"ag2.checkpoint.task_id": task_id}
        trace.get_current_span().add_event("checkpoint.write", attributes)

    async def read(self, task_id: str) -> dict[str, Any] | None:
        """What was saved last; `None` if nothing was."""
        found = await self._hub.read_task_checkpoint(task_id)
        attributes: dict[str, str | bool] = {"ag2.checkpoint.task_id": task_id}
        attributes["ag2.checkpoint.hit"] = found is not None
        trace.get_current_span().add_event("checkpoint.read", attributes)
        return found
