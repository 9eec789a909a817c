"""Compiled graphs, cached by content and shared by all channels."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from agent_adapter.core.errors import WorkflowGraphError
from agent_adapter.flow.conditions import ContextMatches, atoms, checked_expressions
from agent_adapter.flow.envelope import Envelope
from agent_adapter.flow.graph import TransitionGraph
from agent_adapter.flow.registry import TransitionRegistry
from agent_adapter.flow.state import WorkflowState
from agent_adapter.flow.targets import TransitionDecision

_KEPT = 1024

_Evaluate = Callable[[WorkflowState, Envelope], bool]
_Resolve = Callable[[WorkflowState, Envelope], TransitionDecision]


class CompiledGraph:
    """An immutable graph that decides turns.

    Attributes:
        graph: a copy of the graph; read-only.
        hash: `graph_hash` of its wire form.
        max_turns: its limit of turns.
        tool_names: the tools whose calls route a turn.
    """

    __slots__ = ("_default", "_expressions", "_rules", "graph", "hash", "max_turns", "tool_names")

    def __init__(self, graph: TransitionGraph, content_hash: str) -> None:
        self.graph = graph
        self.hash = content_hash
        self.max_turns = graph.max_turns
        self.tool_names = graph.tool_names()
        self._default: _Resolve = graph.default_target.resolve
        self._rules: tuple[tuple[_Evaluate, _Resolve], ...] = tuple(
            (rule.when.evaluate, rule.then.resolve) for rule in graph.ordered()
        )
        parts = (part for rule in graph.transitions for part in atoms(rule.when))
        self._expressions = frozenset(
            part.expression for part in parts if isinstance(part, ContextMatches)
        )

    def decide(self, state: WorkflowState, envelope: Envelope) -> TransitionDecision:
        """The decision of the first transition that fires, else of the default target.

        Raises `WorkflowGraphError` that names a custom condition or target that raised, or an
        expression that would take too long on the present values.
        """
        if not self._expressions:
            return self._decided(state, envelope)
        with checked_expressions(self._expressions, state, envelope):
            return self._decided(state, envelope)

    def _decided(self, state: WorkflowState, envelope: Envelope) -> TransitionDecision:
        at = -1
        try:
            for at, (fires, resolve) in enumerate(self._rules):  # noqa: B007  # named in the error
                if fires(state, envelope):
                    return resolve(state, envelope)
            at = len(self._rules)
            return self._default(state, envelope)
        except Exception as exc:
            raise WorkflowGraphError(f"{self._place(at)} raised {exc!r}") from exc

    def _place(self, at: int) -> str:
        if at >= len(self._rules):
            return f"the default target {self.graph.default_target.name!r}"
        rule = self.graph.ordered()[at]
        index = next(i for i, item in enumerate(self.graph.transitions) if item is rule)
        return f"transitions[{index}] ({rule.when.name} → {rule.then.name})"


def graph_hash(data: Mapping[str, Any]) -> str:
    """SHA-256 over the sorted JSON of a graph's wire form, in hexadecimal."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def compile_graph(
    data: Mapping[str, Any], registry: TransitionRegistry | None = None
) -> CompiledGraph:
    """The compiled form of a graph's wire form; equal graphs are compiled once."""
    known = registry if registry is not None else TransitionRegistry.default()
    try:
        content = graph_hash(data)
    except (TypeError, ValueError) as exc:
        raise WorkflowGraphError(f"the graph is not JSON: {exc}") from exc
    key = (known.version, content)
    with _lock:
        kept = _caches.setdefault(known, OrderedDict())
        if key in kept:
            kept.move_to_end(key)
            return kept[key]
    compiled = CompiledGraph(TransitionGraph.from_dict(data, registry=known), content)
    with _lock:
        kept[key] = compiled
        while len(kept) > _KEPT:
            kept.popitem(last=False)
    return compiled


_lock = threading.Lock()
_caches: WeakKeyDictionary[TransitionRegistry, OrderedDict[tuple[int, str], CompiledGraph]] = (
    WeakKeyDictionary()
)
