"""`HubTasks`: the tasks and events of a hub, as its clients ask for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from agent_adapter.network.events.feed import Subscription
from agent_adapter.network.hub.task_records import TaskMetadata, TaskState
from agent_adapter.network.links.operations import HubLike


class HubTasks:
    """Base of a client: operations on tasks, of the hub itself or over a connection."""

    @abstractmethod
    async def hub_like(self) -> HubLike:
        """The hub or its remote stand-in."""

    async def subscribe(
        self, kinds: str | Iterable[str] | None = None, *, after: str | None = None
    ) -> Subscription:
        """The hub's events; over a connection those that its participants may see."""
        return (await self.hub_like()).subscribe(kinds, after=after)

    async def observe_task(self, metadata: Any) -> TaskMetadata:
        """Tell the hub of a task that its owner has begun."""
        return await (await self.hub_like()).observe_task(metadata)

    async def get_task(self, task_id: str) -> TaskMetadata:
        """A task; `NotFoundError` for an unknown one."""
        return await (await self.hub_like()).get_task(task_id)

    async def update_task(
        self,
        task_id: str,
        *,
        state: TaskState | str | None = None,
        progress: Mapping[str, Any] | None = None,
        result: Any = None,
        error: str | None = None,
    ) -> TaskMetadata:
        """Change a task; one that has ended is left unchanged."""
        hub = await self.hub_like()
        value = None if state is None else str(getattr(state, "value", state))
        return await hub.update_task(
            task_id, state=value, progress=progress, result=result, error=error
        )

    async def list_tasks(
        self,
        *,
        agent_id: str | None = None,
        channel_id: str | None = None,
        state: TaskState | str | None = None,
        limit: int = 50,
    ) -> list[TaskMetadata]:
        """Tasks, the newest first: of a participant, of a channel."""
        hub = await self.hub_like()
        value = None if state is None else str(getattr(state, "value", state))
        return await hub.list_tasks(
            agent_id=agent_id, channel_id=channel_id, state=value, limit=limit
        )

    async def record_observation(
        self,
        *,
        owner_id: str,
        capability: str,
        outcome: TaskState | str,
        latency_ms: int | None = None,
        task_id: str | None = None,
    ) -> None:
        """Count how a use of a capability has ended; over a connection of a task of its own."""
        hub = await self.hub_like()
        await hub.record_observation(
            owner_id=owner_id,
            capability=capability,
            outcome=str(getattr(outcome, "value", outcome)),
            latency_ms=latency_ms,
            task_id=task_id,
        )

    async def fire_task_event(self, task_id: str, kind: str, payload: Mapping[str, Any]) -> None:
        """Tell the hub's listeners of a task's event; only where the hub is in this process."""
        tell = getattr(await self.hub_like(), "fire_task_event", None)
        if tell is not None:
            await tell(task_id, kind, payload)

    async def checkpoint_task(self, task_id: str, state: Mapping[str, Any]) -> None:
        """Keep what a task continues from, in place of what was kept before."""
        await (await self.hub_like()).checkpoint_task(task_id, state)

    async def read_task_checkpoint(self, task_id: str) -> dict[str, Any] | None:
        """What `checkpoint_task` kept last; `None` if nothing was kept."""
        return await (await self.hub_like()).read_task_checkpoint(task_id)
