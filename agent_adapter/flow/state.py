"""`WorkflowState`: what a channel's accepted envelopes add up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from agent_adapter.core.errors import WorkflowGraphError
from agent_adapter.flow.wire import json_copy


@dataclass(slots=True)
class WorkflowState:
    """The folded state of a workflow channel: what conditions and targets read.

    Attributes:
        participant_order: ids in the order in which a round robin goes.
        expected_next_speaker: whose turn it is; `None` means that the channel is to close.
        last_speaker_id: who took the last turn.
        last_envelope_id: the envelope of the last turn.
        turn_count: how many turns were taken.
        pending_close_reason: why the graph ends the channel; empty while it goes on.
        creator_id: who opened the channel.
        graph_data: the graph, as `TransitionGraph.to_dict()` writes it.
        context_vars: the channel's variables, JSON values.
    """

    participant_order: list[str] = field(default_factory=list)
    expected_next_speaker: str | None = None
    last_speaker_id: str | None = None
    last_envelope_id: str | None = None
    turn_count: int = 0
    pending_close_reason: str = ""
    creator_id: str = ""
    graph_data: dict[str, Any] = field(default_factory=dict)
    context_vars: dict[str, Any] = field(default_factory=dict)

    def to_dict(self, *, graph: bool = True) -> dict[str, Any]:
        """The state as JSON values; without `graph` its largest part is left to another place."""
        data: dict[str, Any] = {name: getattr(self, name) for name in _FIELDS}
        data["participant_order"] = list(self.participant_order)
        data["context_vars"] = json_copy(self.context_vars, "WorkflowState.context_vars")
        if graph:
            data["graph_data"] = json_copy(self.graph_data, "WorkflowState.graph_data")
        else:
            del data["graph_data"]
        return data

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], *, graph_data: dict[str, Any] | None = None
    ) -> WorkflowState:
        """The state that `to_dict` wrote; `graph_data` puts back a graph that was left out."""
        unknown = sorted(set(data) - set(_FIELDS))
        if unknown:
            known = ", ".join(_FIELDS)
            raise WorkflowGraphError(
                f"a workflow state has no {', '.join(unknown)}; its fields are {known}"
            )
        state = cls(**data)
        if graph_data is not None:
            state.graph_data = graph_data
        return state

    def copy(self) -> WorkflowState:
        """A state of its own: its lists and variables can be changed without touching this one."""
        return WorkflowState.from_dict(self.to_dict())


_FIELDS = tuple(item.name for item in fields(WorkflowState))
