"""The types of channel: one module each, found by type and version."""

from __future__ import annotations

from collections.abc import Iterable

from agent_adapter.core.errors import ProtocolError
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.adapters.consulting import ConsultingAdapter
from agent_adapter.network.adapters.conversation import ConversationAdapter
from agent_adapter.network.adapters.discussion import DiscussionAdapter
from agent_adapter.network.adapters.workflow import WorkflowAdapter

__all__ = ["AdapterRegistry", "default_adapters"]


def default_adapters() -> list[ChannelAdapter]:
    """New adapters of the four types that there are."""
    return [ConsultingAdapter(), ConversationAdapter(), DiscussionAdapter(), WorkflowAdapter()]


class AdapterRegistry:
    """The types of channel that a hub or a client knows."""

    def __init__(self, adapters: Iterable[ChannelAdapter] | None = None) -> None:
        self._adapters: dict[tuple[str, int], ChannelAdapter] = {}
        for adapter in default_adapters() if adapters is None else adapters:
            self.register(adapter)

    def register(self, adapter: ChannelAdapter) -> None:
        """Know `adapter` by its type and version; channels that are open keep their version."""
        self._adapters[adapter.manifest.type, adapter.manifest.version] = adapter

    def get(self, type: str, version: int = 1) -> ChannelAdapter:
        """The adapter of a type; `ProtocolError` lists those that there are."""
        adapter = self._adapters.get((type, version))
        if adapter is None:
            known = ", ".join(f"{name} (version {number})" for name, number in self._adapters)
            raise ProtocolError(
                f"no channel type {type!r} version {version}; this hub knows {known}"
            )
        return adapter
