"""One call as LangChain and LangGraph know it: its ids, and the approval of a gate around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.identity import Identity
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.gate import Grant
from agent_adapter.exec.ids import new_id
from agent_adapter.exec.scope import RunScope, current_scope
from agent_adapter.integrations.wires.finish import cut_off as word_for_cut_off
from agent_adapter.integrations.wires.history import user_texts


@dataclass(slots=True)
class Native:
    """The native ids of one call; a gate around the call and its tool share them.

    `given_id` is the id as the model gave it, "" where it gave none. `pausable` is whether a graph
    with a checkpointer runs the call, so that it can pause and go on. `token` is the approval of a
    gate around the call, to be taken once. `identity` is set once the call is located. `cut_off` is
    the provider's word where it stopped while the model wrote the call. `messages` are the state's.
    """

    call_id: str
    given_id: str
    run_id: str | None
    thread_id: str | None
    task_id: str | None
    pausable: bool
    config: Mapping[str, Any]
    info: Any = None
    token: Any = None
    identity: Identity | None = None
    cut_off: str | None = None
    messages: Sequence[Any] = ()

    def context(self, bound_by: str, *, replays: bool = True) -> ToolContext:
        """A fresh context for this call; a gate and its tool need one each.

        `replays` is whether the call answers with what it gave before when its node runs again.
        """
        located = replays and self.identity is not None and self.identity.position is not None
        # A channel's turn takes its calls out of the graph's run, and with it out of their places.
        reexecutes = replays and (not located or _taken_over())
        ctx = ToolContext(
            self.call_id,
            self.run_id,
            self.thread_id,
            bound_by=bound_by,
            reexecutes=reexecutes,
            incomplete=self.cut_off,
        )
        ctx.said = self.said
        if self.identity is not None:
            ctx.identity = self.identity if replays else replace(self.identity, position=None)
        return ctx

    def said(self) -> list[str]:
        """What the user wrote to the graph; nothing where another graph may have written it."""
        around = str(self.configurable.get("checkpoint_ns") or "")
        if "|" in around:
            return []
        return user_texts(
            [each for each in self.messages if getattr(each, "type", None) == "human"]
        )

    @property
    def configurable(self) -> Mapping[str, Any]:
        """LangGraph's part of the configuration that the call runs with."""
        return self.config.get("configurable") or {}


def native_of(
    call_id: str | None, runtime: Any = None, config: Mapping[str, Any] | None = None
) -> Native:
    """The ids of a call from the `ToolRuntime` of its node, or from its configuration."""
    given_id = call_id or ""
    cut_off = None
    messages: list[Any] = []
    if getattr(runtime, "execution_info", None) is not None:
        config, info = runtime.config, runtime.execution_info
        messages = _messages(runtime.state)
        cut_off = _cut_off(call_id, messages)
        call_id = told_apart(call_id, messages)
    else:
        # A tool that a node calls by itself: LangGraph's runtime is in the configuration.
        found = ((config or {}).get("configurable") or {}).get("__pregel_runtime")
        info = getattr(found, "execution_info", None)
    config = config or {}
    if info is not None:
        thread_id, run_id, task_id = info.thread_id, info.run_id, info.task_id
    else:
        thread_id, run_id, task_id = _configured(config, "thread_id"), None, None
    run_id = thread_id or run_id
    if run_id is None and current_scope.get() is None:  # a run scope gives its own
        run_id = task_id or new_id("run")
    pausable = task_id is not None and thread_id is not None and _checkpointed(config)
    return Native(
        call_id or new_id("call"),
        given_id,
        run_id,
        None if thread_id is None else str(thread_id),
        task_id,
        pausable=pausable,
        config=config,
        info=info,
        cut_off=cut_off,
        messages=messages,
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
            return next(filter(None, map(word_for_cut_off, words)), None)
    return None


def _taken_over() -> bool:
    scope = current_scope.get()
    return isinstance(scope, RunScope) and scope.overrides


def _configured(config: Mapping[str, Any], key: str) -> str | None:
    value = (config.get("configurable") or {}).get(key)
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

    def take(self, spec: ToolSpec, call_id: str | None, args: Mapping[str, Any]) -> Native | None:
        """The call with its token, once, if it is that very call; the executor checks the rest."""
        grant = self.grant
        if grant is None or spec is not self.spec or (call_id or "") != self.native.given_id:
            return None
        if args != self.args:
            return None
        self.grant = None
        self.native.token = grant.token
        return self.native


GRANTED: ContextVar[Granted | None] = ContextVar("agent_adapter_granted", default=None)
"""Set around a tool by the gate that let it by; inherited by the task that runs the tool."""
