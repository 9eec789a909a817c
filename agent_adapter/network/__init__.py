"""Durable channels whose turns a hub governs: who takes part, whose turn it is, what was said.

Names are looked up when they are first used: a program that only builds graphs loads no hub. Their
types are in the stub beside this file.
"""

from __future__ import annotations

from typing import Any

_NAMES = {
    "agent_adapter.core.errors": (
        "AccessDeniedError AuthError InboxFull NetworkError NotFoundError ProtocolError "
        "StaleTurn WorkflowGraphError"
    ),
    "agent_adapter.core.routing": "Finish Handoff",
    "agent_adapter.flow.envelope": (
        "EV_CHANNEL_CLOSED EV_CHANNEL_EXPIRED EV_CHANNEL_INVITE EV_CHANNEL_INVITE_ACK "
        "EV_CHANNEL_INVITE_REJECT EV_CHANNEL_OPENED EV_CONTEXT_SET EV_EXPECTATION_VIOLATED "
        "EV_PACKET EV_TASK_CANCELLED EV_TASK_CANCEL_REQUEST EV_TEXT Envelope Priority "
        "visible_to"
    ),
    "agent_adapter.flow.findings": "ChannelFacts Finding",
    "agent_adapter.flow.graph": (
        "AgentTarget AllOf Always AnyOf ContextEquals ContextMatches FromSpeaker Not "
        "RevertToInitiatorTarget RoundRobinTarget StayTarget TerminateTarget ToolCalled "
        "Transition TransitionCondition TransitionDecision TransitionGraph TransitionRegistry "
        "TransitionTarget TurnCountAtLeast register_condition register_target"
    ),
    "agent_adapter.flow.reply": "Reply",
    "agent_adapter.flow.routing": "RoundCall",
    "agent_adapter.flow.state": "WorkflowState",
    "agent_adapter.network.adapters.base": (
        "AdapterResult AdapterState ChannelAdapter ExpectedTurn"
    ),
    "agent_adapter.network.adapters.consulting": (
        "CONSULTING_TYPE ConsultingAdapter ConsultingState"
    ),
    "agent_adapter.network.adapters.conversation": (
        "CONVERSATION_TYPE ConversationAdapter ConversationState"
    ),
    "agent_adapter.network.adapters.discussion": (
        "DISCUSSION_TYPE DiscussionAdapter DiscussionState ORDERING_ROUND_ROBIN"
    ),
    "agent_adapter.network.adapters.workflow": "WORKFLOW_TYPE WorkflowAdapter",
    "agent_adapter.network.hub.admission": "Allow Arbiter Decision Deny Identity RuleBasedArbiter",
    "agent_adapter.network.hub.audit": "AuditLog",
    "agent_adapter.network.auth": "Authenticator TokenAuth",
    "agent_adapter.network.channels.metadata": (
        "ChannelManifest ChannelMetadata ChannelState Expectation Participant ParticipantRole "
        "ParticipantSchema"
    ),
    "agent_adapter.network.turns.turn_types": "PendingTurn StartedTurn TurnRef",
    "agent_adapter.network.clients.agent_client": "AgentClient",
    "agent_adapter.network.clients.channel": "Channel",
    "agent_adapter.network.clients.hub_client": "HubClient",
    "agent_adapter.network.clients.human_client": "HumanClient",
    "agent_adapter.network.hub.hub": "Hub",
    "agent_adapter.network.identity": (
        "AuthBlock CostProfile ObservedStat PASSPORT_KINDS Passport PassportKind Resume "
        "ResumeExample"
    ),
    "agent_adapter.network.inject": "ChannelInject ChannelStateInject",
    "agent_adapter.network.links.local": "LocalLink",
    "agent_adapter.network.links.server": "WebSocketServer serve",
    "agent_adapter.network.links.websocket": "WebSocketLink",
    "agent_adapter.network.plugin": "NetworkPlugin",
    "agent_adapter.network.rules": (
        "AccessBlock ChannelTypeAccess InboxBlock LimitsBlock RateBlock Rule parse_duration"
    ),
    "agent_adapter.network.turns.turn": "Turn",
    "agent_adapter.network.channels.views": (
        "FullTranscript NamedTranscript NamedWindowedSummary ViewMessage ViewPolicy WindowedSummary"
    ),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOMES)  # the stub has it as a list


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
