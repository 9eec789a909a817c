"""`ClientTask`: a task of another participant, as somebody who waits for it sees it."""

from __future__ import annotations

from typing import Protocol

from agent_adapter.network.clients.hub_tasks import HubTasks
from agent_adapter.network.hub.task_records import TaskMetadata, TaskState


class Observer(Protocol):
    """A participant, as far as a handle of a task uses it."""

    @property
    def hub_client(self) -> HubTasks:
        """The client that it was registered with."""
        ...


class ClientTask:
    """A handle of a task; `info()` reads it again."""

    def __init__(self, *, metadata: TaskMetadata, client: Observer) -> None:
        self._metadata = metadata
        self._client = client

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self._metadata.task_id

    @property
    def metadata(self) -> TaskMetadata:
        """The task as it was at the last `info()`."""
        return self._metadata

    @property
    def state(self) -> TaskState:
        """The state at the last `info()`."""
        return self._metadata.state

    @property
    def owner_id(self) -> str:
        """The participant who does it."""
        return self._metadata.owner_id

    async def info(self) -> TaskMetadata:
        """The task as it is now."""
        self._metadata = await self._client.hub_client.get_task(self.task_id)
        return self._metadata
