from agent_adapter.core.errors import (
    AccessDeniedError as AccessDeniedError,
)
from agent_adapter.core.errors import (
    AuthError as AuthError,
)
from agent_adapter.core.errors import (
    InboxFull as InboxFull,
)
from agent_adapter.core.errors import (
    NetworkError as NetworkError,
)
from agent_adapter.core.errors import (
    NotFoundError as NotFoundError,
)
from agent_adapter.core.errors import (
    ProtocolError as ProtocolError,
)
from agent_adapter.core.errors import (
    StaleTurn as StaleTurn,
)
from agent_adapter.core.errors import (
    WorkflowGraphError as WorkflowGraphError,
)
from agent_adapter.core.routing import (
    Finish as Finish,
)
from agent_adapter.core.routing import (
    Handoff as Handoff,
)
from agent_adapter.flow.envelope import (
    EV_CHANNEL_CLOSED as EV_CHANNEL_CLOSED,
)
from agent_adapter.flow.envelope import (
    EV_CHANNEL_EXPIRED as EV_CHANNEL_EXPIRED,
)
from agent_adapter.flow.envelope import (
    EV_CHANNEL_INVITE as EV_CHANNEL_INVITE,
)
from agent_adapter.flow.envelope import (
    EV_CHANNEL_INVITE_ACK as EV_CHANNEL_INVITE_ACK,
)
from agent_adapter.flow.envelope import (
    EV_CHANNEL_INVITE_REJECT as EV_CHANNEL_INVITE_REJECT,
)
from agent_adapter.flow.envelope import (
    EV_CHANNEL_OPENED as EV_CHANNEL_OPENED,
)
from agent_adapter.flow.envelope import (
    EV_CONTEXT_SET as EV_CONTEXT_SET,
)
from agent_adapter.flow.envelope import (
    EV_EXPECTATION_VIOLATED as EV_EXPECTATION_VIOLATED,
)
from agent_adapter.flow.envelope import (
    EV_PACKET as EV_PACKET,
)
from agent_adapter.flow.envelope import (
    EV_TASK_CANCEL_REQUEST as EV_TASK_CANCEL_REQUEST,
)
from agent_adapter.flow.envelope import (
    EV_TASK_CANCELLED as EV_TASK_CANCELLED,
)
from agent_adapter.flow.envelope import (
    EV_TEXT as EV_TEXT,
)
from agent_adapter.flow.envelope import (
    Envelope as Envelope,
)
from agent_adapter.flow.envelope import (
    Priority as Priority,
)
from agent_adapter.flow.envelope import (
    visible_to as visible_to,
)
from agent_adapter.flow.findings import (
    ChannelFacts as ChannelFacts,
)
from agent_adapter.flow.findings import (
    Finding as Finding,
)
from agent_adapter.flow.graph import (
    AgentTarget as AgentTarget,
)
from agent_adapter.flow.graph import (
    AllOf as AllOf,
)
from agent_adapter.flow.graph import (
    Always as Always,
)
from agent_adapter.flow.graph import (
    AnyOf as AnyOf,
)
from agent_adapter.flow.graph import (
    ContextEquals as ContextEquals,
)
from agent_adapter.flow.graph import (
    ContextMatches as ContextMatches,
)
from agent_adapter.flow.graph import (
    FromSpeaker as FromSpeaker,
)
from agent_adapter.flow.graph import (
    Not as Not,
)
from agent_adapter.flow.graph import (
    RevertToInitiatorTarget as RevertToInitiatorTarget,
)
from agent_adapter.flow.graph import (
    RoundRobinTarget as RoundRobinTarget,
)
from agent_adapter.flow.graph import (
    StayTarget as StayTarget,
)
from agent_adapter.flow.graph import (
    TerminateTarget as TerminateTarget,
)
from agent_adapter.flow.graph import (
    ToolCalled as ToolCalled,
)
from agent_adapter.flow.graph import (
    Transition as Transition,
)
from agent_adapter.flow.graph import (
    TransitionCondition as TransitionCondition,
)
from agent_adapter.flow.graph import (
    TransitionDecision as TransitionDecision,
)
from agent_adapter.flow.graph import (
    TransitionGraph as TransitionGraph,
)
from agent_adapter.flow.graph import (
    TransitionRegistry as TransitionRegistry,
)
from agent_adapter.flow.graph import (
    TransitionTarget as TransitionTarget,
)
from agent_adapter.flow.graph import (
    TurnCountAtLeast as TurnCountAtLeast,
)
from agent_adapter.flow.graph import (
    register_condition as register_condition,
)
from agent_adapter.flow.graph import (
    register_target as register_target,
)
from agent_adapter.flow.reply import (
    Reply as Reply,
)
from agent_adapter.flow.routing import (
    RoundCall as RoundCall,
)
from agent_adapter.flow.state import (
    WorkflowState as WorkflowState,
)
from agent_adapter.network.adapters.base import (
    AdapterResult as AdapterResult,
)
from agent_adapter.network.adapters.base import (
    AdapterState as AdapterState,
)
from agent_adapter.network.adapters.base import (
    ChannelAdapter as ChannelAdapter,
)
from agent_adapter.network.adapters.base import (
    ExpectedTurn as ExpectedTurn,
)
from agent_adapter.network.adapters.consulting import (
    CONSULTING_TYPE as CONSULTING_TYPE,
)
from agent_adapter.network.adapters.consulting import (
    ConsultingAdapter as ConsultingAdapter,
)
from agent_adapter.network.adapters.consulting import (
    ConsultingState as ConsultingState,
)
from agent_adapter.network.adapters.conversation import (
    CONVERSATION_TYPE as CONVERSATION_TYPE,
)
from agent_adapter.network.adapters.conversation import (
    ConversationAdapter as ConversationAdapter,
)
from agent_adapter.network.adapters.conversation import (
    ConversationState as ConversationState,
)
from agent_adapter.network.adapters.discussion import (
    DISCUSSION_TYPE as DISCUSSION_TYPE,
)
from agent_adapter.network.adapters.discussion import (
    ORDERING_ROUND_ROBIN as ORDERING_ROUND_ROBIN,
)
from agent_adapter.network.adapters.discussion import (
    DiscussionAdapter as DiscussionAdapter,
)
from agent_adapter.network.adapters.discussion import (
    DiscussionState as DiscussionState,
)
from agent_adapter.network.adapters.workflow import (
    WORKFLOW_TYPE as WORKFLOW_TYPE,
)
from agent_adapter.network.adapters.workflow import (
    WorkflowAdapter as WorkflowAdapter,
)
from agent_adapter.network.auth import (
    Authenticator as Authenticator,
)
from agent_adapter.network.auth import (
    TokenAuth as TokenAuth,
)
from agent_adapter.network.channels.metadata import (
    ChannelManifest as ChannelManifest,
)
from agent_adapter.network.channels.metadata import (
    ChannelMetadata as ChannelMetadata,
)
from agent_adapter.network.channels.metadata import (
    ChannelState as ChannelState,
)
from agent_adapter.network.channels.metadata import (
    Expectation as Expectation,
)
from agent_adapter.network.channels.metadata import (
    Participant as Participant,
)
from agent_adapter.network.channels.metadata import (
    ParticipantRole as ParticipantRole,
)
from agent_adapter.network.channels.metadata import (
    ParticipantSchema as ParticipantSchema,
)
from agent_adapter.network.channels.views import (
    FullTranscript as FullTranscript,
)
from agent_adapter.network.channels.views import (
    NamedTranscript as NamedTranscript,
)
from agent_adapter.network.channels.views import (
    NamedWindowedSummary as NamedWindowedSummary,
)
from agent_adapter.network.channels.views import (
    ViewMessage as ViewMessage,
)
from agent_adapter.network.channels.views import (
    ViewPolicy as ViewPolicy,
)
from agent_adapter.network.channels.views import (
    WindowedSummary as WindowedSummary,
)
from agent_adapter.network.clients.agent_client import (
    AgentClient as AgentClient,
)
from agent_adapter.network.clients.channel import (
    Channel as Channel,
)
from agent_adapter.network.clients.hub_client import (
    HubClient as HubClient,
)
from agent_adapter.network.clients.human_client import (
    HumanClient as HumanClient,
)
from agent_adapter.network.hub.admission import (
    Allow as Allow,
)
from agent_adapter.network.hub.admission import (
    Arbiter as Arbiter,
)
from agent_adapter.network.hub.admission import (
    Decision as Decision,
)
from agent_adapter.network.hub.admission import (
    Deny as Deny,
)
from agent_adapter.network.hub.admission import (
    Identity as Identity,
)
from agent_adapter.network.hub.admission import (
    RuleBasedArbiter as RuleBasedArbiter,
)
from agent_adapter.network.hub.audit import (
    AuditLog as AuditLog,
)
from agent_adapter.network.hub.hub import (
    Hub as Hub,
)
from agent_adapter.network.identity import (
    PASSPORT_KINDS as PASSPORT_KINDS,
)
from agent_adapter.network.identity import (
    AuthBlock as AuthBlock,
)
from agent_adapter.network.identity import (
    CostProfile as CostProfile,
)
from agent_adapter.network.identity import (
    ObservedStat as ObservedStat,
)
from agent_adapter.network.identity import (
    Passport as Passport,
)
from agent_adapter.network.identity import (
    PassportKind as PassportKind,
)
from agent_adapter.network.identity import (
    Resume as Resume,
)
from agent_adapter.network.identity import (
    ResumeExample as ResumeExample,
)
from agent_adapter.network.inject import (
    ChannelInject as ChannelInject,
)
from agent_adapter.network.inject import (
    ChannelStateInject as ChannelStateInject,
)
from agent_adapter.network.links.local import (
    LocalLink as LocalLink,
)
from agent_adapter.network.links.server import (
    WebSocketServer as WebSocketServer,
)
from agent_adapter.network.links.server import (
    serve as serve,
)
from agent_adapter.network.links.websocket import (
    WebSocketLink as WebSocketLink,
)
from agent_adapter.network.plugin import (
    NetworkPlugin as NetworkPlugin,
)
from agent_adapter.network.rules import (
    AccessBlock as AccessBlock,
)
from agent_adapter.network.rules import (
    ChannelTypeAccess as ChannelTypeAccess,
)
from agent_adapter.network.rules import (
    InboxBlock as InboxBlock,
)
from agent_adapter.network.rules import (
    LimitsBlock as LimitsBlock,
)
from agent_adapter.network.rules import (
    RateBlock as RateBlock,
)
from agent_adapter.network.rules import (
    Rule as Rule,
)
from agent_adapter.network.rules import (
    parse_duration as parse_duration,
)
from agent_adapter.network.turns.turn import (
    Turn as Turn,
)
from agent_adapter.network.turns.turn_types import (
    PendingTurn as PendingTurn,
)
from agent_adapter.network.turns.turn_types import (
    StartedTurn as StartedTurn,
)
from agent_adapter.network.turns.turn_types import (
    TurnRef as TurnRef,
)

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
