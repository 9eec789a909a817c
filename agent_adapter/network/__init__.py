"""Durable channels whose turns a hub governs: who takes part, whose turn it is, what was said.

Names are looked up when they are first used: a program that only builds graphs loads no hub.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_adapter.core.errors import (
        AccessDeniedError,
        AuthError,
        InboxFull,
        NetworkError,
        NotFoundError,
        ProtocolError,
        StaleTurn,
        WorkflowGraphError,
    )
    from agent_adapter.core.routing import (
        Finish,
        Handoff,
    )
    from agent_adapter.flow.envelope import (
        EV_CHANNEL_CLOSED,
        EV_CHANNEL_EXPIRED,
        EV_CHANNEL_INVITE,
        EV_CHANNEL_INVITE_ACK,
        EV_CHANNEL_INVITE_REJECT,
        EV_CHANNEL_OPENED,
        EV_CONTEXT_SET,
        EV_EXPECTATION_VIOLATED,
        EV_PACKET,
        EV_TASK_CANCEL_REQUEST,
        EV_TASK_CANCELLED,
        EV_TEXT,
        Envelope,
        Priority,
        visible_to,
    )
    from agent_adapter.flow.findings import (
        ChannelFacts,
        Finding,
    )
    from agent_adapter.flow.graph import (
        AgentTarget,
        AllOf,
        Always,
        AnyOf,
        ContextEquals,
        ContextMatches,
        FromSpeaker,
        Not,
        RevertToInitiatorTarget,
        RoundRobinTarget,
        StayTarget,
        TerminateTarget,
        ToolCalled,
        Transition,
        TransitionCondition,
        TransitionDecision,
        TransitionGraph,
        TransitionRegistry,
        TransitionTarget,
        TurnCountAtLeast,
        register_condition,
        register_target,
    )
    from agent_adapter.flow.reply import (
        Reply,
    )
    from agent_adapter.flow.routing import (
        RoundCall,
    )
    from agent_adapter.flow.state import (
        WorkflowState,
    )
    from agent_adapter.network.adapters.base import (
        AdapterResult,
        AdapterState,
        ChannelAdapter,
        ExpectedTurn,
    )
    from agent_adapter.network.adapters.consulting import (
        CONSULTING_TYPE,
        ConsultingAdapter,
        ConsultingState,
    )
    from agent_adapter.network.adapters.conversation import (
        CONVERSATION_TYPE,
        ConversationAdapter,
        ConversationState,
    )
    from agent_adapter.network.adapters.discussion import (
        DISCUSSION_TYPE,
        ORDERING_ROUND_ROBIN,
        DiscussionAdapter,
        DiscussionState,
    )
    from agent_adapter.network.adapters.workflow import (
        WORKFLOW_TYPE,
        WorkflowAdapter,
    )
    from agent_adapter.network.admission import (
        Allow,
        Arbiter,
        Decision,
        Deny,
        Identity,
        RuleBasedArbiter,
    )
    from agent_adapter.network.audit import (
        AuditLog,
    )
    from agent_adapter.network.auth import (
        Authenticator,
        TokenAuth,
    )
    from agent_adapter.network.channel import (
        ChannelManifest,
        ChannelMetadata,
        ChannelState,
        Expectation,
        Participant,
        ParticipantRole,
        ParticipantSchema,
    )
    from agent_adapter.network.claims import (
        PendingTurn,
        StartedTurn,
        TurnRef,
    )
    from agent_adapter.network.clients.agent_client import (
        AgentClient,
    )
    from agent_adapter.network.clients.channel import (
        Channel,
    )
    from agent_adapter.network.clients.hub_client import (
        HubClient,
    )
    from agent_adapter.network.clients.human_client import (
        HumanClient,
    )
    from agent_adapter.network.hub import (
        Hub,
    )
    from agent_adapter.network.identity import (
        PASSPORT_KINDS,
        AuthBlock,
        CostProfile,
        ObservedStat,
        Passport,
        PassportKind,
        Resume,
        ResumeExample,
    )
    from agent_adapter.network.inject import (
        ChannelInject,
        ChannelStateInject,
    )
    from agent_adapter.network.links.local import (
        LocalLink,
    )
    from agent_adapter.network.links.server import (
        WebSocketServer,
        serve,
    )
    from agent_adapter.network.links.websocket import (
        WebSocketLink,
    )
    from agent_adapter.network.plugin import (
        NetworkPlugin,
    )
    from agent_adapter.network.rules import (
        AccessBlock,
        ChannelTypeAccess,
        InboxBlock,
        LimitsBlock,
        RateBlock,
        Rule,
        parse_duration,
    )
    from agent_adapter.network.turn import (
        Turn,
    )
    from agent_adapter.network.views import (
        FullTranscript,
        NamedTranscript,
        NamedWindowedSummary,
        ViewMessage,
        ViewPolicy,
        WindowedSummary,
    )

_HOMES = {
    "AccessBlock": "agent_adapter.network.rules",
    "AccessDeniedError": "agent_adapter.core.errors",
    "AdapterResult": "agent_adapter.network.adapters.base",
    "AdapterState": "agent_adapter.network.adapters.base",
    "AgentClient": "agent_adapter.network.clients.agent_client",
    "AgentTarget": "agent_adapter.flow.graph",
    "AllOf": "agent_adapter.flow.graph",
    "Allow": "agent_adapter.network.admission",
    "Always": "agent_adapter.flow.graph",
    "AnyOf": "agent_adapter.flow.graph",
    "Arbiter": "agent_adapter.network.admission",
    "AuditLog": "agent_adapter.network.audit",
    "AuthBlock": "agent_adapter.network.identity",
    "AuthError": "agent_adapter.core.errors",
    "Authenticator": "agent_adapter.network.auth",
    "CONSULTING_TYPE": "agent_adapter.network.adapters.consulting",
    "CONVERSATION_TYPE": "agent_adapter.network.adapters.conversation",
    "Channel": "agent_adapter.network.clients.channel",
    "ChannelAdapter": "agent_adapter.network.adapters.base",
    "ChannelFacts": "agent_adapter.flow.findings",
    "ChannelInject": "agent_adapter.network.inject",
    "ChannelManifest": "agent_adapter.network.channel",
    "ChannelMetadata": "agent_adapter.network.channel",
    "ChannelState": "agent_adapter.network.channel",
    "ChannelStateInject": "agent_adapter.network.inject",
    "ChannelTypeAccess": "agent_adapter.network.rules",
    "ConsultingAdapter": "agent_adapter.network.adapters.consulting",
    "ConsultingState": "agent_adapter.network.adapters.consulting",
    "ContextEquals": "agent_adapter.flow.graph",
    "ContextMatches": "agent_adapter.flow.graph",
    "ConversationAdapter": "agent_adapter.network.adapters.conversation",
    "ConversationState": "agent_adapter.network.adapters.conversation",
    "CostProfile": "agent_adapter.network.identity",
    "DISCUSSION_TYPE": "agent_adapter.network.adapters.discussion",
    "Decision": "agent_adapter.network.admission",
    "Deny": "agent_adapter.network.admission",
    "DiscussionAdapter": "agent_adapter.network.adapters.discussion",
    "DiscussionState": "agent_adapter.network.adapters.discussion",
    "EV_CHANNEL_CLOSED": "agent_adapter.flow.envelope",
    "EV_CHANNEL_EXPIRED": "agent_adapter.flow.envelope",
    "EV_CHANNEL_INVITE": "agent_adapter.flow.envelope",
    "EV_CHANNEL_INVITE_ACK": "agent_adapter.flow.envelope",
    "EV_CHANNEL_INVITE_REJECT": "agent_adapter.flow.envelope",
    "EV_CHANNEL_OPENED": "agent_adapter.flow.envelope",
    "EV_CONTEXT_SET": "agent_adapter.flow.envelope",
    "EV_EXPECTATION_VIOLATED": "agent_adapter.flow.envelope",
    "EV_PACKET": "agent_adapter.flow.envelope",
    "EV_TASK_CANCELLED": "agent_adapter.flow.envelope",
    "EV_TASK_CANCEL_REQUEST": "agent_adapter.flow.envelope",
    "EV_TEXT": "agent_adapter.flow.envelope",
    "Envelope": "agent_adapter.flow.envelope",
    "Expectation": "agent_adapter.network.channel",
    "ExpectedTurn": "agent_adapter.network.adapters.base",
    "Finding": "agent_adapter.flow.findings",
    "Finish": "agent_adapter.core.routing",
    "FromSpeaker": "agent_adapter.flow.graph",
    "FullTranscript": "agent_adapter.network.views",
    "Handoff": "agent_adapter.core.routing",
    "Hub": "agent_adapter.network.hub",
    "HubClient": "agent_adapter.network.clients.hub_client",
    "HumanClient": "agent_adapter.network.clients.human_client",
    "Identity": "agent_adapter.network.admission",
    "InboxBlock": "agent_adapter.network.rules",
    "InboxFull": "agent_adapter.core.errors",
    "LimitsBlock": "agent_adapter.network.rules",
    "LocalLink": "agent_adapter.network.links.local",
    "NamedTranscript": "agent_adapter.network.views",
    "NamedWindowedSummary": "agent_adapter.network.views",
    "NetworkError": "agent_adapter.core.errors",
    "NetworkPlugin": "agent_adapter.network.plugin",
    "Not": "agent_adapter.flow.graph",
    "NotFoundError": "agent_adapter.core.errors",
    "ORDERING_ROUND_ROBIN": "agent_adapter.network.adapters.discussion",
    "ObservedStat": "agent_adapter.network.identity",
    "PASSPORT_KINDS": "agent_adapter.network.identity",
    "Participant": "agent_adapter.network.channel",
    "ParticipantRole": "agent_adapter.network.channel",
    "ParticipantSchema": "agent_adapter.network.channel",
    "Passport": "agent_adapter.network.identity",
    "PassportKind": "agent_adapter.network.identity",
    "PendingTurn": "agent_adapter.network.claims",
    "Priority": "agent_adapter.flow.envelope",
    "ProtocolError": "agent_adapter.core.errors",
    "RateBlock": "agent_adapter.network.rules",
    "Reply": "agent_adapter.flow.reply",
    "Resume": "agent_adapter.network.identity",
    "ResumeExample": "agent_adapter.network.identity",
    "RevertToInitiatorTarget": "agent_adapter.flow.graph",
    "RoundCall": "agent_adapter.flow.routing",
    "RoundRobinTarget": "agent_adapter.flow.graph",
    "Rule": "agent_adapter.network.rules",
    "RuleBasedArbiter": "agent_adapter.network.admission",
    "StaleTurn": "agent_adapter.core.errors",
    "StartedTurn": "agent_adapter.network.claims",
    "StayTarget": "agent_adapter.flow.graph",
    "TerminateTarget": "agent_adapter.flow.graph",
    "TokenAuth": "agent_adapter.network.auth",
    "ToolCalled": "agent_adapter.flow.graph",
    "Transition": "agent_adapter.flow.graph",
    "TransitionCondition": "agent_adapter.flow.graph",
    "TransitionDecision": "agent_adapter.flow.graph",
    "TransitionGraph": "agent_adapter.flow.graph",
    "TransitionRegistry": "agent_adapter.flow.graph",
    "TransitionTarget": "agent_adapter.flow.graph",
    "Turn": "agent_adapter.network.turn",
    "TurnCountAtLeast": "agent_adapter.flow.graph",
    "TurnRef": "agent_adapter.network.claims",
    "ViewMessage": "agent_adapter.network.views",
    "ViewPolicy": "agent_adapter.network.views",
    "WORKFLOW_TYPE": "agent_adapter.network.adapters.workflow",
    "WebSocketLink": "agent_adapter.network.links.websocket",
    "WebSocketServer": "agent_adapter.network.links.server",
    "WindowedSummary": "agent_adapter.network.views",
    "WorkflowAdapter": "agent_adapter.network.adapters.workflow",
    "WorkflowGraphError": "agent_adapter.core.errors",
    "WorkflowState": "agent_adapter.flow.state",
    "parse_duration": "agent_adapter.network.rules",
    "register_condition": "agent_adapter.flow.graph",
    "register_target": "agent_adapter.flow.graph",
    "serve": "agent_adapter.network.links.server",
    "visible_to": "agent_adapter.flow.envelope",
}

__all__ = [
    "CONSULTING_TYPE",
    "CONVERSATION_TYPE",
    "DISCUSSION_TYPE",
    "EV_CHANNEL_CLOSED",
    "EV_CHANNEL_EXPIRED",
    "EV_CHANNEL_INVITE",
    "EV_CHANNEL_INVITE_ACK",
    "EV_CHANNEL_INVITE_REJECT",
    "EV_CHANNEL_OPENED",
    "EV_CONTEXT_SET",
    "EV_EXPECTATION_VIOLATED",
    "EV_PACKET",
    "EV_TASK_CANCELLED",
    "EV_TASK_CANCEL_REQUEST",
    "EV_TEXT",
    "ORDERING_ROUND_ROBIN",
    "PASSPORT_KINDS",
    "WORKFLOW_TYPE",
    "AccessBlock",
    "AccessDeniedError",
    "AdapterResult",
    "AdapterState",
    "AgentClient",
    "AgentTarget",
    "AllOf",
    "Allow",
    "Always",
    "AnyOf",
    "Arbiter",
    "AuditLog",
    "AuthBlock",
    "AuthError",
    "Authenticator",
    "Channel",
    "ChannelAdapter",
    "ChannelFacts",
    "ChannelInject",
    "ChannelManifest",
    "ChannelMetadata",
    "ChannelState",
    "ChannelStateInject",
    "ChannelTypeAccess",
    "ConsultingAdapter",
    "ConsultingState",
    "ContextEquals",
    "ContextMatches",
    "ConversationAdapter",
    "ConversationState",
    "CostProfile",
    "Decision",
    "Deny",
    "DiscussionAdapter",
    "DiscussionState",
    "Envelope",
    "Expectation",
    "ExpectedTurn",
    "Finding",
    "Finish",
    "FromSpeaker",
    "FullTranscript",
    "Handoff",
    "Hub",
    "HubClient",
    "HumanClient",
    "Identity",
    "InboxBlock",
    "InboxFull",
    "LimitsBlock",
    "LocalLink",
    "NamedTranscript",
    "NamedWindowedSummary",
    "NetworkError",
    "NetworkPlugin",
    "Not",
    "NotFoundError",
    "ObservedStat",
    "Participant",
    "ParticipantRole",
    "ParticipantSchema",
    "Passport",
    "PassportKind",
    "PendingTurn",
    "Priority",
    "ProtocolError",
    "RateBlock",
    "Reply",
    "Resume",
    "ResumeExample",
    "RevertToInitiatorTarget",
    "RoundCall",
    "RoundRobinTarget",
    "Rule",
    "RuleBasedArbiter",
    "StaleTurn",
    "StartedTurn",
    "StayTarget",
    "TerminateTarget",
    "TokenAuth",
    "ToolCalled",
    "Transition",
    "TransitionCondition",
    "TransitionDecision",
    "TransitionGraph",
    "TransitionRegistry",
    "TransitionTarget",
    "Turn",
    "TurnCountAtLeast",
    "TurnRef",
    "ViewMessage",
    "ViewPolicy",
    "WebSocketLink",
    "WebSocketServer",
    "WindowedSummary",
    "WorkflowAdapter",
    "WorkflowGraphError",
    "WorkflowState",
    "parse_duration",
    "register_condition",
    "register_target",
    "serve",
    "visible_to",
]


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
