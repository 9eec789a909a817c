"""`WorkflowState`: the folded state of a workflow channel."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from agent_adapter.core.errors import WorkflowGraphError
from agent_adapter.flow.wire import json_copy


class FoldedState:
    """Base of the built-in states; awaiting one gives the state itself.

    `hub.adapter_state(channel_id)` was awaited in version 0.1, and still may be.
    """

    __slots__ = ()

    def __await__(self) -> Generator[None, None, Self]:
        yield from ()
        return self


@dataclass(slots=True)
class WorkflowState(FoldedState):
    """The folded state of a workflow channel, as conditions and targets read it.

    Attributes:
        participant_order: participant ids, in the order of a round robin.
        expected_next_speaker: the participant whose turn is next; `None` closes the channel.
        last_speaker_id: the participant who took the last turn.
        last_envelope_id: the envelope of the last turn.
        turn_count: the number of turns taken.
        pending_close_reason: the graph's reason to close the channel; empty while it is open.
        creator_id: the participant who opened the channel.
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
        """The state as JSON values; `graph=False` omits the graph, its largest part."""
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
        """The state that `to_dict` wrote; `graph_data` restores an omitted graph."""
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
        """A deep copy."""
        return WorkflowState.from_dict(self.to_dict())


_FIELDS = tuple(item.name for item in fields(WorkflowState))
