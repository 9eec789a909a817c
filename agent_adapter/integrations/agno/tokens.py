"""The approvals of paused Agno calls, until Agno runs the calls."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.identity import Identity
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.gate import Grant
from agent_adapter.integrations.agno.calls import text_of

CallKey = tuple[str | None, str | None]
"""Run id and call id."""


class HeldApproval:
    """One approval between a pause and the call it was given for."""

    __slots__ = ("args", "grant", "identity", "native", "spec")

    def __init__(
        self,
        spec: ToolSpec,
        native: Mapping[str, Any],
        args: Mapping[str, Any],
        grant: Grant,
        identity: Identity,
    ) -> None:
        self.spec = spec
        self.native = text_of(native)
        self.args = args
        self.grant = grant
        self.identity = identity


class HeldApprovals:
    """One-use tokens by (run id, call id); the oldest are dropped beyond `size` calls."""

    def __init__(self, size: int = 10_000) -> None:
        self.size = size
        self.held: OrderedDict[CallKey, list[HeldApproval]] = OrderedDict()

    def put(self, key: CallKey, held: HeldApproval) -> None:
        """Keep `held` for the call `key`."""
        self.held.setdefault(key, []).append(held)
        while len(self.held) > self.size:
            for oldest in self.held.popitem(last=False)[1]:
                oldest.grant.drop()

    def take(
        self, ctx: ToolContext, spec: ToolSpec, native: Mapping[str, Any]
    ) -> HeldApproval | None:
        """The approval of exactly this call, once; models reuse call ids, so arguments count."""
        key = (ctx.run_id, ctx.call_id)
        waiting = self.held.get(key)
        if not waiting:
            return None
        text = text_of(native)
        for index, held in enumerate(waiting):
            if held.spec is spec and held.native == text:
                del waiting[index]
                if not waiting:
                    del self.held[key]
                return held
        return None
