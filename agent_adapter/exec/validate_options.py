"""The arguments of `Executor`, checked when it is made rather than at its first call."""

from __future__ import annotations

from typing import Any

from agent_adapter.core.types import RunLimits


def validate_options(registry: Any, approval: Any, store: Any, limits: Any, hooks: Any) -> None:
    """Raises `TypeError` with the fix for an invalid argument."""
    if registry is not None and not callable(getattr(registry, "get", None)):
        raise _wrong("registry", "a ToolRegistry", registry, "put the tools into one")
    if approval is not None and not callable(getattr(approval, "request", None)):
        fix = "wrap a reviewer function in CallbackApproval(...)"
        raise _wrong("approval", "an ApprovalPort", approval, fix)
    if store is not None and not callable(getattr(store, "write", None)):
        raise _wrong("store", "a Store", store, "open one with open_store(url)")
    if limits is not None and not isinstance(limits, RunLimits):
        raise _wrong("limits", "RunLimits", limits, "write RunLimits(max_calls=...)")
    for hook in hooks:
        if not any(callable(getattr(hook, name, None)) for name in ("before", "after")):
            raise _wrong("hooks", "objects with before(call) or after(call, result)", hook, "")


def checked_said(said: Any) -> tuple[str, ...]:
    """The user's messages; raises `TypeError` for anything but texts."""
    texts = (said,) if isinstance(said, str) else said
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"said is what the user said, a text or a list of texts, not {said!r}")
    return tuple(text for text in texts if text.strip())


def _wrong(part: str, wanted: str, given: Any, fix: str) -> TypeError:
    found = f"{given.__name__} (a class)" if isinstance(given, type) else type(given).__name__
    return TypeError(f"Executor: {part} must be {wanted}, not {found}" + (fix and f"; {fix}"))
