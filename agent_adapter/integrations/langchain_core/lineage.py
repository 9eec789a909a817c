"""The run that a checkpoint belongs to: from a user's input on, pauses and retries included."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

_REMEMBERED = 4096
_WAIT_SECONDS = 2.0
"""How long a checkpoint that LangGraph saves in the background is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """What the ancestors of a root checkpoint say.

    `run` is the id of the newest one that holds a user's input. `rewritten` is whether one since
    then is a fork or an update: the tasks after it have other ids than those before.
    """

    run: str
    rewritten: bool


_LINEAGES: OrderedDict[tuple[str, str], Lineage] = OrderedDict()
"""By thread and checkpoint."""

_KEPT: OrderedDict[tuple[str, str], bool] = OrderedDict()
"""By thread and namespace, which holds the ids of the tasks around."""


def _remember(memory: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    memory[key] = value
    while len(memory) > _REMEMBERED:
        memory.popitem(last=False)


class Checkpoints:
    """Reads of one saver, in the manner in which its graph runs; what was read is remembered."""

    def __init__(self, saver: Any, thread_id: str, *, blocking: bool) -> None:
        self._saver = saver
        self._thread_id = thread_id
        self._blocking = blocking

    async def lineage(self, checkpoint_id: str) -> Lineage | None:
        """The lineage of a root checkpoint; `None` if the saver does not have it."""
        passed: list[tuple[str, bool]] = []
        cursor: str | None = checkpoint_id
        known: Lineage | None = None
        while cursor is not None and known is None:
            known = _LINEAGES.get((self._thread_id, cursor))
            if known is not None:
                break
            found = await self._find("", cursor)
            if found is None:
                break
            source, parent = found.metadata.get("source"), found.parent_config
            passed.append((cursor, source in ("fork", "update")))
            if source == "input":
                known = Lineage(run=cursor, rewritten=False)
            cursor = parent["configurable"]["checkpoint_id"] if parent else None
        if known is None:
            if not passed:
                return None
            # No input is left of it: pruned, or a state that was only ever updated.
            known = Lineage(run=passed[-1][0], rewritten=False)
        return self._descend(known, passed)

    def _descend(self, known: Lineage, passed: list[tuple[str, bool]]) -> Lineage:
        """The lineage of the first of `passed`, the ancestors of which lead to `known`."""
        for id, rewritten in reversed(passed):
            known = Lineage(run=known.run, rewritten=known.rewritten or rewritten)
            _remember(_LINEAGES, (self._thread_id, id), known)
        return known

    async def keeps(self, namespace: str, checkpoint_id: str) -> bool:
        """Whether the graph in this namespace saves its checkpoints."""
        known = _KEPT.get((self._thread_id, namespace))
        if known is None:
            known = await self._find(namespace, checkpoint_id) is not None
            _remember(_KEPT, (self._thread_id, namespace), known)
        return known

    async def _find(self, namespace: str, checkpoint_id: str) -> Any:
        """The checkpoint, once it is saved."""
        wanted = {"checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
        config = {"configurable": {"thread_id": self._thread_id, **wanted}}
        pause, waited = 0.002, 0.0
        while True:
            if self._blocking:
                found = self._saver.get_tuple(config)
            else:
                found = await self._saver.aget_tuple(config)
            if found is not None or waited >= _WAIT_SECONDS:
                return found
            await asyncio.sleep(pause)
            waited += pause
            pause = min(2 * pause, 0.1)
