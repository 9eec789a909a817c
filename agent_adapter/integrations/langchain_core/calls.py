"""One call as LangChain and LangGraph know it: its ids, and the approval of a gate around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.gate import Grant
from agent_adapter.exec.ids import new_id
from agent_adapter.exec.scope import current_scope


@dataclass(slots=True)
class Native:
    """The native ids of one call; the same again when a node runs again.

    `run_id` is what survives a pause: the thread, else the run of the graph, else the task.
    `cut_off` is the provider's word where it stopped while the model wrote the call.
    `pausable` is whether a graph with a checkpointer runs the call, so that it can pause and go on.
    """

    call_id: str
    run_id: str | None
    thread_id: str | None
    task_id: str | None
    pausable: bool
    cut_off: str | None = None

    def context(self, bound_by: str, *, reexecutes: bool = True) -> ToolContext:
        """A fresh context for this call; a gate and its tool need one each."""
        return ToolContext(
            self.call_id,
            self.run_id,
            self.thread_id,
            bound_by=bound_by,
            reexecutes=reexecutes,
            incomplete=self.cut_off,
        )


def native_of(
    call_id: str | None, runtime: Any = None, config: Mapping[str, Any] | None = None
) -> Native:
    """The ids of a call from the `ToolRuntime` of its node, or from its configuration."""
    info = getattr(runtime, "execution_info", None)
    cut_off = None
    if info is not None:
        thread_id, run_id, task_id = info.thread_id, info.run_id, info.task_id
        messages = _messages(runtime.state)
        cut_off = _cut_off(call_id, messages)
        call_id = told_apart(call_id, messages)
    else:
        thread_id, run_id, task_id = _configured(config, "thread_id"), None, None
    run_id = thread_id or run_id
    if run_id is None and current_scope.get() is None:  # a run scope gives its own
        run_id = task_id or new_id("run")
    pausable = task_id is not None and thread_id is not None and _checkpointed(runtime.config)
    named = call_id or new_id("call")
    return Native(named, run_id, thread_id, task_id, pausable=pausable, cut_off=cut_off)


# The providers' words for an answer that they ended before the model did.
_CUT_OFF = frozenset(
    {
        *("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"),
        *("content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content"),
        *("malformed_function_call", "incomplete"),
    }
)


def _cut_off(call_id: str | None, messages: Sequence[Any]) -> str | None:
    """Why the message of a call ended early, `None` where it is whole.

    LangChain reads the arguments of a stream as far as they came, so a call that lacks its end
    looks like one with fewer arguments.
    """
    for message in reversed(messages):
        calls = getattr(message, "tool_calls", None)
        if calls and any(call["id"] == call_id for call in calls):
            told = message.response_metadata
            words = (told.get(key) for key in ("finish_reason", "stop_reason", "status"))
            return next((w for w in words if isinstance(w, str) and w.lower() in _CUT_OFF), None)
    return None


def _configured(config: Mapping[str, Any] | None, key: str) -> str | None:
    value = ((config or {}).get("configurable") or {}).get(key)
    return None if value is None else str(value)


def _checkpointed(config: Mapping[str, Any]) -> bool:
    # A thread may be named where nothing is kept; where LangGraph renames this, it is believed.
    found = (config.get("configurable") or {}).get("__pregel_checkpointer", True)
    return found is not None and found is not False


def told_apart(call_id: str | None, messages: Sequence[Any]) -> str | None:
    """The call's id, with its message's where an earlier message of the thread used the same one.

    Models reuse call ids; a node that runs again finds the same messages, so this is stable.
    """
    if call_id is None:
        return None
    latest: Any = None
    for message in reversed(messages):
        calls = getattr(message, "tool_calls", None)
        if not calls or all(call["id"] != call_id for call in calls):
            continue
        if latest is not None:
            return f"{call_id}@{latest.id}"
        latest = message
    return call_id


def _messages(state: Any) -> list[Any]:
    found = state.get("messages") if isinstance(state, Mapping) else state
    if found is state and not isinstance(state, list):
        found = getattr(state, "messages", None)
    return found if isinstance(found, list) else []


@dataclass(slots=True)
class Granted:
    """What a gate around a tool leaves for the one call that it let by."""

    spec: ToolSpec
    native: Native
    args: Mapping[str, Any]
    grant: Grant | None

    def take(self, spec: ToolSpec, native: Native, args: Mapping[str, Any]) -> Any:
        """The token, once, for that very call; the executor checks the rest of its binding."""
        grant = self.grant
        if grant is None or spec is not self.spec or native.call_id != self.native.call_id:
            return None
        if args != self.args:
            return None
        self.grant = None
        return grant.token


GRANTED: ContextVar[Granted | None] = ContextVar("agent_adapter_granted", default=None)
"""Set around a tool by the gate that let it by; inherited by the task that runs the tool."""
