"""Channel types: one module and one entry point each, registered by type and version."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from agent_adapter.core.errors import NetworkError, ProtocolError
from agent_adapter.core.plugins import UnusablePlugin, built_in_names, load_plugins
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.adapters.checks import check_pure, has_async_checks
from agent_adapter.network.channels.expectations import check_expectations
from agent_adapter.network.channels.metadata import ChannelManifest

GROUP = "agent_adapter.channel_types"
"""The entry-point group of channel types: the name is the type, the value makes its adapter."""

_log = logging.getLogger("agent_adapter.network")

AdapterFactory = Callable[[], ChannelAdapter]


@cache
def channel_types() -> dict[str, AdapterFactory]:
    """What makes the adapter of each installed channel type; looked up once.

    Logs one warning per entry that it skips, and never fails because of one.
    """
    entries = entry_points(group=GROUP)
    return load_plugins(entries, _accept, package=__name__, noun="channel type", log=_log).found


class AdapterRegistry:
    """The channel types of a hub or a client; by default the installed ones.

    Attributes:
        has_async_checks: whether a check of one of them has to be awaited.
        has_own: whether one of them is not of this library, so that its checks may return anything.
    """

    def __init__(self, adapters: Iterable[ChannelAdapter] | None = None) -> None:
        self._adapters: dict[tuple[str, int], ChannelAdapter] = {}
        self.own_evaluators: set[str] = set()
        self.own_handlers: set[str] = set()
        self.has_async_checks = False
        self.has_own = False
        for adapter in (
            [make() for make in channel_types().values()] if adapters is None else adapters
        ):
            self.register(adapter)

    def register(self, adapter: ChannelAdapter) -> None:
        """Register `adapter` by type and version; open channels keep their version.

        Raises `ProtocolError` for an expectation of its manifest that no hub would act on, and for
        an async method other than a check.
        """
        check_expectations(adapter.manifest, self.own_evaluators, self.own_handlers)
        check_pure(adapter)
        self.has_own = self.has_own or not type(adapter).__module__.startswith(f"{__name__}.")
        self.has_async_checks = self.has_async_checks or has_async_checks(adapter)
        self._adapters[adapter.manifest.type, adapter.manifest.version] = adapter

    def clear(self) -> None:
        """Forget all types."""
        self._adapters.clear()

    def __len__(self) -> int:
        return len(self._adapters)

    def get(
        self, type: str, version: int = 1, error: type[NetworkError] = ProtocolError
    ) -> ChannelAdapter:
        """The adapter of a type; `error` lists the known types."""
        adapter = self._adapters.get((type, version))
        if adapter is None:
            lacks = "no registered adapter" if error is ProtocolError else "no adapter"
            raise error(
                f"no channel type {type!r} version {version}; there is {lacks} for it: "
                f"{self._known(type)}"
            )
        return adapter

    def _known(self, type: str) -> str:
        known = ", ".join(f"{name} (version {number})" for name, number in self._adapters)
        if type in built_in_names(__name__) and type not in channel_types():
            return "the installed package does not list it: install it again (make setup)"
        return f"this hub knows {known or 'none'}"


def _accept(name: str, loaded: Any) -> AdapterFactory:
    if not callable(loaded):
        raise UnusablePlugin(f"it is a {type(loaded).__name__}, not a class or function")
    factory: AdapterFactory = loaded
    # Instantiated here: a broken type is then skipped with a warning instead of failing a hub.
    adapter: Any = factory()
    missing = [item for item in _MEMBERS if not hasattr(adapter, item)]
    if missing:
        raise UnusablePlugin(f"{type(adapter).__name__} lacks {', '.join(missing)}")
    manifest = adapter.manifest
    if not isinstance(manifest, ChannelManifest):
        raise UnusablePlugin(f"`manifest` must be a ChannelManifest, not {manifest!r:.80}")
    try:
        check_expectations(manifest)
    except ProtocolError as exc:
        raise UnusablePlugin(str(exc)) from None
    if manifest.type != name:
        raise UnusablePlugin(
            f"its type is {manifest.type!r}, its entry point {name!r}: they must be the same"
        )
    return factory


_MEMBERS = [name for name in vars(ChannelAdapter) if not name.startswith("_")]


TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_adapter.flow.state import (
        WorkflowState as WorkflowState,
    )
    from agent_adapter.network.adapters.base import (
        AdapterResult as AdapterResult,
    )
    from agent_adapter.network.adapters.base import (
        AdapterState as AdapterState,
    )
    from agent_adapter.network.adapters.base import (
        ExpectedTurn as ExpectedTurn,
    )
    from agent_adapter.network.adapters.base import (
        Rendered as Rendered,
    )
    from agent_adapter.network.adapters.base import (
        default_build_packet_envelope as default_build_packet_envelope,
    )
    from agent_adapter.network.adapters.base import (
        default_build_round_envelope as default_build_round_envelope,
    )
    from agent_adapter.network.adapters.base import (
        default_build_text_envelope as default_build_text_envelope,
    )
    from agent_adapter.network.adapters.base import (
        default_expected_next as default_expected_next,
    )
    from agent_adapter.network.adapters.base import (
        default_extract_turn_input as default_extract_turn_input,
    )
    from agent_adapter.network.adapters.base import (
        default_render_envelope as default_render_envelope,
    )
    from agent_adapter.network.adapters.base import (
        default_tools_for as default_tools_for,
    )
    from agent_adapter.network.adapters.base import (
        ensure_parts as ensure_parts,
    )
    from agent_adapter.network.adapters.consulting import (
        CONSULTING_TYPE as CONSULTING_TYPE,
    )
    from agent_adapter.network.adapters.consulting import (
        ConsultingAdapter as ConsultingAdapter,
    )
    from agent_adapter.network.adapters.consulting import (
        ConsultingState as ConsultingState,
    )
    from agent_adapter.network.adapters.conversation import (
        CONVERSATION_TYPE as CONVERSATION_TYPE,
    )
    from agent_adapter.network.adapters.conversation import (
        ConversationAdapter as ConversationAdapter,
    )
    from agent_adapter.network.adapters.conversation import (
        ConversationState as ConversationState,
    )
    from agent_adapter.network.adapters.discussion import (
        DISCUSSION_TYPE as DISCUSSION_TYPE,
    )
    from agent_adapter.network.adapters.discussion import (
        ORDERING_ROUND_ROBIN as ORDERING_ROUND_ROBIN,
    )
    from agent_adapter.network.adapters.discussion import (
        DiscussionAdapter as DiscussionAdapter,
    )
    from agent_adapter.network.adapters.discussion import (
        DiscussionState as DiscussionState,
    )
    from agent_adapter.network.adapters.workflow import (
        WORKFLOW_TYPE as WORKFLOW_TYPE,
    )
    from agent_adapter.network.adapters.workflow import (
        WorkflowAdapter as WorkflowAdapter,
    )
else:
    from agent_adapter.core.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
