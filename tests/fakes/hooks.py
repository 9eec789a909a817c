"""Hooks that record what passes them, or change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_adapter.core.ports import HookCall
from agent_adapter.core.tool import ToolSpec


class RecordingHook:
    """Keeps every call and result that passes, and changes nothing.

    `seen` holds `("before", tool, arguments)` and `("after", tool, result)` in order; `specs` the
    very spec of each call.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, Any]] = []
        self.specs: list[ToolSpec] = []

    def before(self, call: HookCall) -> Mapping[str, Any] | None:
        """Leaves the arguments as they are."""
        self.seen.append(("before", call.spec.name, dict(call.arguments)))
        self.specs.append(call.spec)
        return None

    def after(self, call: HookCall, result: Any) -> Any:
        """Leaves the result as it is."""
        self.seen.append(("after", call.spec.name, result))
        return result


class RaisingHook:
    """Fails with `error` at the named stage."""

    def __init__(self, stage: str, error: Exception) -> None:
        self.stage = stage
        self.error = error

    def before(self, call: HookCall) -> Mapping[str, Any] | None:
        """Raises where the stage is `before`."""
        if self.stage == "before":
            raise self.error
        return None

    def after(self, call: HookCall, result: Any) -> Any:
        """Raises where the stage is `after`."""
        if self.stage == "after":
            raise self.error
        return result
