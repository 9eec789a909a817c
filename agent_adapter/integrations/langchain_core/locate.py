"""Which call a call is: its run, its conversation and its place, from what LangGraph really has."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from agent_adapter.core.identity import Identity, Reentry
from agent_adapter.exec.scope import current_scope
from agent_adapter.integrations.langchain_core.calls import Native
from agent_adapter.integrations.langchain_core.lineage import Checkpoints
from agent_adapter.integrations.langchain_core.positions import (
    OCCURRENCES,
    Level,
    call_of,
    levels_of,
    task_within,
)
from agent_adapter.integrations.langchain_core.roots import root_of


async def locate(native: Native, tool: str, args: Any, *, blocking: bool = False) -> Native:
    """`native` with its identity; the same again when its node runs again, retried or resumed.

    `blocking` is for a call of a sync graph, whose saver is read in the same manner. To be called
    once for each call: equal calls of one node are numbered as they come.
    """
    if native.info is None:  # no graph runs it: no place is known
        native.identity = Identity(run=_root(native), conversation=native.thread_id)
        return native
    if native.pausable and native.thread_id is not None:
        native.identity = await _checkpointed(
            native, tool, args, native.thread_id, blocking=blocking
        )
    else:
        position = _position(native, tool, args, [native.info.task_id], within=None)
        native.identity = Identity(
            run=_root(native), conversation=native.thread_id, position=position
        )
    if not native.given_id:
        # A question is bound to the id, so it must be the same when the node runs again.
        place = json.dumps(native.identity.position)
        native.call_id = "call_" + hashlib.sha256(place.encode()).hexdigest()[:32]
    return native


def _root(native: Native) -> str | None:
    # A run scope is what the program itself says about the run.
    return root_of(native.config) if current_scope.get() is None else None


async def _checkpointed(
    native: Native, tool: str, args: Any, thread_id: str, *, blocking: bool
) -> Identity:
    configurable = native.configurable
    saver = Checkpoints(configurable["__pregel_checkpointer"], thread_id, blocking=blocking)
    namespace = native.info.checkpoint_ns
    levels = levels_of(configurable, namespace)
    run: str | None
    if configurable.get("__pregel_durability") == "exit":
        # Nothing is saved while the tool runs: only the thread and the outermost task last.
        level, run, rewritten = "", f"thread:{thread_id}", True
    else:
        lineage = await saver.lineage(levels[0].checkpoint_id)
        run = None if lineage is None else lineage.run
        rewritten = lineage is not None and lineage.rewritten
        level = await _deepest_kept(saver, levels, configurable)
    task, inner = task_within(namespace, level)
    # Inner graphs that keep nothing begin anew when their node does, with other tasks.
    within = f"{task}:{root_of(native.config)}" if inner else None
    return Identity(
        run=run,
        conversation=thread_id,
        position=_position(native, tool, args, [task, *inner], within=within),
        reentry=Reentry.REPLAYED if rewritten else Reentry.NEW,
    )


async def _deepest_kept(
    saver: Checkpoints, levels: list[Level], configurable: Mapping[str, Any]
) -> str:
    """The namespace of the innermost graph whose tasks keep their ids when they come again."""
    kept = levels[0]
    for level in levels[1:]:
        if level.checkpoint_id != kept.checkpoint_id:  # else a task within a task of one graph
            innermost = level is levels[-1]
            if innermost and _keeps_nothing(configurable):
                break
            if not await saver.keeps(level.namespace, level.checkpoint_id):
                break
        kept = level
    return kept.namespace


def _keeps_nothing(configurable: Mapping[str, Any]) -> bool:
    """Whether the graph around the call was compiled with `checkpointer=False`."""
    # The saver in the configuration is then the outer graph's. The loop tells; where LangGraph
    # renames this, the saver is asked, which takes longer.
    call = configurable.get("__pregel_call")
    schedule = (getattr(call, "keywords", None) or {}).get("schedule_task")
    return getattr(getattr(schedule, "__self__", None), "checkpointer", True) is None


def _position(
    native: Native, tool: str, args: Any, place: list[str], *, within: str | None
) -> tuple[str | int, ...]:
    scratchpad = native.configurable.get("__pregel_scratchpad")
    call = call_of(place, native.given_id, tool, args)
    number = OCCURRENCES.number(call, scratchpad, native.info.node_attempt, within)
    return (*place, native.given_id, number)
