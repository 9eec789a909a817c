"""Where in a graph a call is made: a place that is the same again when its node runs again."""

from __future__ import annotations

import json
import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_REMEMBERED = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One graph around a call, from the outside in.

    `namespace` is where its checkpoints are kept, `checkpoint_id` the one its task started from.
    """

    namespace: str
    checkpoint_id: str


def levels_of(configurable: Mapping[str, Any], namespace: str) -> list[Level]:
    """The graphs around the task with this checkpoint namespace, the outermost first."""
    found = configurable.get("checkpoint_map") or {}
    around = [name for name in found if name == "" or f"{namespace}|".startswith(f"{name}|")]
    return [Level(namespace=n, checkpoint_id=found[n]) for n in sorted(around, key=len)]


def task_within(namespace: str, level: str) -> tuple[str, list[str]]:
    """The id of the task at `level` that leads to `namespace`, and what follows after that task.

    What follows are the names of the inner graphs' nodes and their counters, without task ids: an
    inner graph that keeps no checkpoints has others each time.
    """
    parts = namespace.split("|")
    depth = len(level.split("|")) if level else 0
    task = parts[depth].rpartition(":")[2]
    return task, [part.partition(":")[0] for part in parts[depth + 1 :]]


@dataclass(slots=True)
class _Entry:
    """One entry of a node, its retries included, and the numbers that its calls were given."""

    scratchpad: Any  # held, so that no other entry gets its id
    given: dict[Hashable, list[int]] = field(default_factory=dict)
    made: Counter[Hashable] = field(default_factory=Counter)


class Occurrences:
    """Numbers the equal calls of one entry of a node: 1, 2, … in the order in which they come.

    A node that runs again starts from 1: LangGraph gives each entry a scratchpad of its own, and
    counts the tries of a retry policy.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._handed: OrderedDict[Hashable, int] = OrderedDict()
        self._lock = threading.Lock()  # a sync `ToolNode` makes its calls in threads

    def number(self, call: Hashable, scratchpad: Any, attempt: int, within: str | None) -> int:
        """The number of this call; `within` names an entry further out, shared by inner nodes."""
        with self._lock:
            entry = self._entry(scratchpad)
            entry.made[(attempt, call)] += 1
            given, place = entry.given.setdefault(call, []), entry.made[(attempt, call)]
            if place > len(given):
                given.append(len(given) + 1 if within is None else self._hand_out((within, call)))
            return given[place - 1]

    def _entry(self, scratchpad: Any) -> _Entry:
        entry = self._entries.pop(id(scratchpad), None) or _Entry(scratchpad)
        self._entries[id(scratchpad)] = entry
        while len(self._entries) > _REMEMBERED:
            self._entries.popitem(last=False)
        return entry

    def _hand_out(self, call: Hashable) -> int:
        self._handed[call] = number = self._handed.pop(call, 0) + 1
        while len(self._handed) > _REMEMBERED:
            self._handed.popitem(last=False)
        return number


OCCURRENCES = Occurrences()


def call_of(position: Sequence[str], call_id: str, tool: str, args: Any) -> Hashable:
    """What equal calls of one entry have in common."""
    return (*position, call_id, tool, json.dumps(args, sort_keys=True, default=repr))
