"""`workflow`: a graph decides who speaks next and when the channel ends."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agent_adapter.core.errors import ProtocolError
from agent_adapter.flow.admission import check_target, opening_state
from agent_adapter.flow.check import graph_errors
from agent_adapter.flow.compiled import CompiledGraph, compile_graph
from agent_adapter.flow.context_vars import check_updates, updates_of
from agent_adapter.flow.endless import endless_parts
from agent_adapter.flow.envelope import EV_PACKET, EV_TEXT, Envelope, is_turn
from agent_adapter.flow.findings import ChannelFacts, Finding
from agent_adapter.flow.fold import close_reason, fold
from agent_adapter.flow.registry import TransitionRegistry
from agent_adapter.flow.routing import RoundCall, packet_data, round_routing
from agent_adapter.flow.state import WorkflowState
from agent_adapter.network.adapters.base import (
    AdapterResult,
    BaseChannelAdapter,
    check_message,
    check_participants,
    text_of,
)
from agent_adapter.network.channels.metadata import (
    ChannelManifest,
    ChannelMetadata,
    ChannelState,
    Expectation,
    ParticipantSchema,
)
from agent_adapter.network.channels.views import NamedWindowedSummary

WORKFLOW_TYPE = "workflow"
"""The name of the type."""

_KEPT_GRAPHS = 1024
_MOST_SHOWN = 10
_ACL: TypeAdapter[dict[str, list[str]] | None] = TypeAdapter(dict[str, list[str]] | None)


class WorkflowAdapter(BaseChannelAdapter):
    """Two or more participants whose turns follow `knobs["graph"]`.

    `knobs["context_vars"]` are the initial variables; `knobs["context_acl"]` restricts which names
    may change which keys; `knobs["unbounded"]` opens a channel whose graph has no end. `registry`
    resolves the graph's conditions and targets.

    If the opener is not the initial speaker, the opener's first text is the brief that the initial
    speaker answers; it takes no turn.
    """

    manifest = ChannelManifest(
        type=WORKFLOW_TYPE,
        participants=ParticipantSchema(min=2),
        knobs_schema={
            "graph": "TransitionGraph",
            "context_vars": "dict",
            "context_acl": "dict",
            "unbounded": "bool",
        },
        default_view_policy=NamedWindowedSummary.name,
        expectations=[
            Expectation("turn_within", "warn", {"seconds": 120}),
            Expectation("turn_within", "auto_close", {"seconds": 600}),
        ],
    )

    def __init__(self, registry: TransitionRegistry | None = None) -> None:
        self._registry = registry if registry is not None else TransitionRegistry.default()
        self._graphs: OrderedDict[int, tuple[int, dict[str, Any], CompiledGraph]] = OrderedDict()

    def validate_create(self, metadata: ChannelMetadata) -> None:
        """Raises `ProtocolError` unless the graph and the variables fit the participants.

        The graph ends, unless the opener says otherwise.
        """
        check_participants(self.manifest, metadata)
        _acl(metadata)
        state = self.initial_state(metadata)
        graph = compile_graph(metadata.knobs["graph"], self._registry).graph
        _refuse(endless_parts(graph, self._facts(metadata)))
        check_updates({"set": state.context_vars}, {}, writer="", acl=None)

    def check_routes(self, metadata: ChannelMetadata, privileged: frozenset[str]) -> None:
        """Raises `ProtocolError` if anybody's variables route to a privileged participant."""
        graph = compile_graph(metadata.knobs["graph"], self._registry).graph
        _refuse(graph_errors(graph, replace(self._facts(metadata), privileged=privileged)))

    def initial_state(self, metadata: ChannelMetadata) -> WorkflowState:
        """The graph's initial speaker is expected; the initial variables are set."""
        state, _ = opening_state(
            metadata.knobs,
            self._facts(metadata),
            creator_id=metadata.creator_id,
            registry=self._registry,
        )
        return state

    def _facts(self, metadata: ChannelMetadata) -> ChannelFacts:
        return ChannelFacts(
            participants=metadata.participant_ids(),
            names={item.agent_id: item.name for item in metadata.participants if item.name},
            opener=metadata.creator_id,
            context_acl=_acl(metadata),
            unbounded=metadata.knobs.get("unbounded", False) is True,
        )

    def validate_send(
        self, metadata: ChannelMetadata, envelope: Envelope, state: WorkflowState
    ) -> None:
        """Raises `ProtocolError` for a turn out of order and for changes that are not allowed."""
        check_message(metadata, envelope)
        speaks = envelope.sender_id == state.expected_next_speaker
        if is_turn(envelope) and not speaks and not is_brief(envelope, state):
            raise ProtocolError(_out_of_turn(metadata, envelope, state))
        check_target(envelope, state)
        updates = updates_of(envelope)
        if updates.get("set") or updates.get("delete"):
            check_updates(
                updates,
                state.context_vars,
                writer=metadata.names()[envelope.sender_id],
                acl=metadata.knobs.get("context_acl"),
            )

    def fold(self, envelope: Envelope, state: WorkflowState) -> WorkflowState:
        """The state after `envelope`, as the graph decides; a brief takes no turn."""
        if is_brief(envelope, state):
            return replace(state, last_envelope_id=envelope.envelope_id)
        return fold(envelope, state, self._graph(state) if is_turn(envelope) else None)

    def on_accepted(
        self, metadata: ChannelMetadata, envelope: Envelope, state: WorkflowState
    ) -> AdapterResult:
        """The channel closes if the graph ends it or `max_turns` is reached."""
        if not is_turn(envelope) or not state.turn_count:
            return AdapterResult()
        reason = close_reason(state, self._graph(state))
        return AdapterResult() if reason is None else AdapterResult(ChannelState.CLOSED, reason)

    def render_envelope(self, envelope: Envelope) -> str | None:
        """A text, or a packet's body, after a line about its handoff."""
        return packet_text(envelope) if envelope.event_type == EV_PACKET else text_of(envelope)

    def build_round_envelope(
        self,
        metadata: ChannelMetadata,
        sender_id: str,
        body: str,
        calls: Iterable[RoundCall],
        state: WorkflowState,
        *,
        causation_id: str | None = None,
    ) -> Envelope | None:
        """The round's packet: its routing and its body; see `flow.round_routing`."""
        tools = self._graph(state).tool_names
        routing = round_routing(calls, tools, metadata.ids_by_name())
        data = packet_data(routing, body)
        if data is None:
            return None
        return Envelope(
            channel_id=metadata.channel_id,
            sender_id=sender_id,
            audience=None,
            event_type=EV_PACKET,
            event_data=data,
            causation_id=causation_id,
        )

    def state_to_dict(self, state: WorkflowState) -> dict[str, Any]:
        """The state without its graph, which the metadata's knobs hold."""
        return state.to_dict(graph=False)

    def state_from_dict(self, metadata: ChannelMetadata, data: Mapping[str, Any]) -> WorkflowState:
        """The state that `state_to_dict` wrote, with the graph of `metadata` in its place."""
        return WorkflowState.from_dict(data, graph_data=metadata.knobs.get("graph", {}))

    def _graph(self, state: WorkflowState) -> CompiledGraph:
        # By id, since hashing a graph costs more than a turn. States of one channel share the
        # object, and the entry keeps it alive: the id cannot be reused for another graph.
        data, version = state.graph_data, self._registry.version
        kept = self._graphs.get(id(data))
        if kept is not None and kept[0] == version:
            return kept[2]
        compiled = compile_graph(data, self._registry)
        self._graphs[id(data)] = (version, data, compiled)
        while len(self._graphs) > _KEPT_GRAPHS:
            self._graphs.popitem(last=False)
        return compiled


def is_brief(envelope: Envelope, state: WorkflowState) -> bool:
    """Whether `envelope` is the opener's brief to another participant, who speaks first.

    The first text of an opener who is not the initial speaker takes no turn: it is what the initial
    speaker answers.
    """
    return (
        envelope.event_type == EV_TEXT
        and state.last_envelope_id is None
        and envelope.sender_id == state.creator_id
        and state.expected_next_speaker not in (None, envelope.sender_id)
    )


def packet_text(envelope: Envelope) -> str | None:
    """The text of a packet for a speaker: a line about its handoff, then its body."""
    routing, body = envelope.event_data.get("routing"), envelope.event_data.get("body")
    lines = []
    if isinstance(routing, Mapping) and routing.get("kind") == "handoff":
        tool, reason = routing.get("tool") or "handoff", routing.get("reason")
        lines.append(f"[Handed off via {tool}]" + (f" {reason}" if reason else ""))
    if isinstance(body, str) and body:
        lines.append(body)
    return "\n".join(lines) or None


def _out_of_turn(metadata: ChannelMetadata, envelope: Envelope, state: WorkflowState) -> str:
    names, expected = metadata.names(), state.expected_next_speaker
    if expected is None:
        whose = "has ended and expects no one"
    else:
        whose = f"expects {names.get(expected, expected)} ({expected}) to speak"
    return (
        f"the workflow channel {metadata.channel_id} {whose}, "
        f"not {names[envelope.sender_id]} ({envelope.sender_id})"
    )


def _refuse(found: Sequence[Finding]) -> None:
    if found:
        raise ProtocolError("knobs['graph']: " + "; ".join(map(str, found[:_MOST_SHOWN])))


def _acl(metadata: ChannelMetadata) -> Mapping[str, Sequence[str]]:
    try:
        acl = _ACL.validate_python(metadata.knobs.get("context_acl"), strict=True) or {}
    except ValidationError:
        raise ProtocolError(
            "knobs['context_acl'] is an object of key patterns and lists of names, as "
            '{"approved": ["reviewer"]}'
        ) from None
    known = set(metadata.names().values())
    unknown = sorted({name for names in acl.values() for name in names} - known)
    if unknown:
        raise ProtocolError(
            f"knobs['context_acl'] names {', '.join(unknown)}, who takes no part; the participants "
            f"are {', '.join(sorted(known))}"
        )
    return acl
