"""`LocalLink`: a hub in the same process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from agent_adapter.exec.executor import Executor
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.channels.views import ViewPolicy
from agent_adapter.network.compat.endpoints import LinkEndpoint, LocalLinkClient, local_ends
from agent_adapter.network.links.operations import HubLike
from agent_adapter.store.base import Store


class InProcessHub(HubLike, Protocol):
    """A hub of this process, as its clients see it."""

    store: Store
    executor: Executor
    driver_for: Callable[[Any], Any] | None

    def is_connected(self, agent_id: str) -> bool:
        """Whether a receiver is attached for that participant."""
        ...

    def find_agent_id(self, name: str) -> str | None:
        """The id of the participant with that name."""
        ...

    def name_for(self, agent_id: str, *, default: str | None = None) -> str:
        """The name of a participant; `default`, else the id itself, for an unknown one."""
        ...

    def name_to_id_map(self) -> dict[str, str]:
        """The ids of all participants by name."""
        ...

    def attach_endpoint(self, endpoint: LinkEndpoint) -> Any:
        """Answer AG2's frames that arrive at `endpoint`."""
        ...

    def can_send(self, channel_id: str, sender_id: str, *, event_type: str | None = None) -> bool:
        """Whether the channel would accept a message of `sender_id` now."""
        ...

    def adapter_for(self, channel_id: str) -> ChannelAdapter:
        """The adapter of a channel."""
        ...

    def default_view_policy(self, channel_id: str, participant_id: str) -> ViewPolicy:
        """The view of a participant that has not chosen another one."""
        ...


class LocalLink:
    """A link to `hub` in the same process and event loop."""

    def __init__(self, hub: InProcessHub) -> None:
        self.hub = hub

    async def connect(self) -> HubLike:
        """The hub itself."""
        return self.hub

    async def disconnect(self, hub: HubLike) -> None:
        """Do nothing: a local hub has no connection."""

    def client(self) -> LocalLinkClient:
        """A client that exchanges AG2's frames with the hub itself; `HubClient` needs none."""
        client, endpoint = local_ends()
        self.hub.attach_endpoint(endpoint)
        return client
