"""Durable channels whose turns a hub governs: who takes part, whose turn it is, what was said.

Names are imported on first use: a program that only builds graphs loads no hub.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_adapter.core.errors import (
        AccessDeniedError as AccessDeniedError,
        AuthError as AuthError,
        InboxFull as InboxFull,
        NetworkError as NetworkError,
        NotConnected as NotConnected,
        NotFoundError as NotFoundError,
        ProtocolError as ProtocolError,
        StaleTurn as StaleTurn,
        WorkflowGraphError as WorkflowGraphError,
    )
    from agent_adapter.core.routing import (
        Finish as Finish,
        Handoff as Handoff,
    )
    from agent_adapter.flow.envelope import (
        EV_CHANNEL_CLOSED as EV_CHANNEL_CLOSED,
        EV_CHANNEL_EXPIRED as EV_CHANNEL_EXPIRED,
        EV_CHANNEL_INVITE as EV_CHANNEL_INVITE,
        EV_CHANNEL_INVITE_ACK as EV_CHANNEL_INVITE_ACK,
        EV_CHANNEL_INVITE_REJECT as EV_CHANNEL_INVITE_REJECT,
        EV_CHANNEL_OPENED as EV_CHANNEL_OPENED,
        EV_CONTEXT_SET as EV_CONTEXT_SET,
        EV_EXPECTATION_VIOLATED as EV_EXPECTATION_VIOLATED,
        EV_PACKET as EV_PACKET,
        EV_TASK_CANCEL_REQUEST as EV_TASK_CANCEL_REQUEST,
        EV_TASK_CANCELLED as EV_TASK_CANCELLED,
        EV_TEXT as EV_TEXT,
        Envelope as Envelope,
        Priority as Priority,
        visible_to as visible_to,
    )
    from agent_adapter.flow.findings import (
        ChannelFacts as ChannelFacts,
        Finding as Finding,
    )
    from agent_adapter.flow.graph import (
        AgentTarget as AgentTarget,
        AllOf as AllOf,
        Always as Always,
        AnyOf as AnyOf,
        ContextEquals as ContextEquals,
        ContextMatches as ContextMatches,
        FromSpeaker as FromSpeaker,
        Not as Not,
        RevertToInitiatorTarget as RevertToInitiatorTarget,
        RoundRobinTarget as RoundRobinTarget,
        StayTarget as StayTarget,
        TerminateTarget as TerminateTarget,
        ToolCalled as ToolCalled,
        Transition as Transition,
        TransitionCondition as TransitionCondition,
        TransitionDecision as TransitionDecision,
        TransitionGraph as TransitionGraph,
        TransitionRegistry as TransitionRegistry,
        TransitionTarget as TransitionTarget,
        TurnCountAtLeast as TurnCountAtLeast,
        register_condition as register_condition,
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
        AdapterState as AdapterState,
        ChannelAdapter as ChannelAdapter,
        ExpectedTurn as ExpectedTurn,
    )
    from agent_adapter.network.adapters.consulting import (
        CONSULTING_TYPE as CONSULTING_TYPE,
        ConsultingAdapter as ConsultingAdapter,
        ConsultingState as ConsultingState,
    )
    from agent_adapter.network.adapters.conversation import (
        CONVERSATION_TYPE as CONVERSATION_TYPE,
        ConversationAdapter as ConversationAdapter,
        ConversationState as ConversationState,
    )
    from agent_adapter.network.adapters.discussion import (
        DISCUSSION_TYPE as DISCUSSION_TYPE,
        ORDERING_ROUND_ROBIN as ORDERING_ROUND_ROBIN,
        DiscussionAdapter as DiscussionAdapter,
        DiscussionState as DiscussionState,
    )
    from agent_adapter.network.adapters.workflow import (
        WORKFLOW_TYPE as WORKFLOW_TYPE,
        WorkflowAdapter as WorkflowAdapter,
    )
    from agent_adapter.network.auth import (
        ApiKeyAuth as ApiKeyAuth,
        AuthAdapter as AuthAdapter,
        AuthRegistry as AuthRegistry,
        Authenticator as Authenticator,
        NoAuth as NoAuth,
        TokenAuth as TokenAuth,
    )
    from agent_adapter.network.channels.evaluators import (
        AcksWithinEvaluator as AcksWithinEvaluator,
        MaxSilenceEvaluator as MaxSilenceEvaluator,
        ReplyWithinEvaluator as ReplyWithinEvaluator,
        default_evaluators as default_evaluators,
    )
    from agent_adapter.network.channels.metadata import (
        ChannelManifest as ChannelManifest,
        ChannelMetadata as ChannelMetadata,
        ChannelState as ChannelState,
        Expectation as Expectation,
        Participant as Participant,
        ParticipantRole as ParticipantRole,
        ParticipantSchema as ParticipantSchema,
    )
    from agent_adapter.network.channels.violations import (
        ExpectationContext as ExpectationContext,
        ExpectationEvaluator as ExpectationEvaluator,
        Violation as Violation,
        ViolationHandler as ViolationHandler,
    )
    from agent_adapter.network.channels.views import (
        FullTranscript as FullTranscript,
        NameResolver as NameResolver,
        NamedTranscript as NamedTranscript,
        NamedWindowedSummary as NamedWindowedSummary,
        ViewMessage as ViewMessage,
        ViewPolicy as ViewPolicy,
        WindowedSummary as WindowedSummary,
    )
    from agent_adapter.network.clients.agent_client import (
        AgentClient as AgentClient,
    )
    from agent_adapter.network.clients.checkpoint import (
        HubBackedCheckpointStore as HubBackedCheckpointStore,
    )
    from agent_adapter.network.clients.client_task import (
        ClientTask as ClientTask,
    )
    from agent_adapter.network.clients.participant import (
        Channel as Channel,
    )
    from agent_adapter.network.clients.task_mirror import (
        TaskMirror as TaskMirror,
    )
    from agent_adapter.network.clients.hub_client import (
        HubClient as HubClient,
    )
    from agent_adapter.network.clients.human_client import (
        HumanClient as HumanClient,
    )
    from agent_adapter.network.events.event import (
        EVENT_KINDS as EVENT_KINDS,
        HubEvent as HubEvent,
    )
    from agent_adapter.network.events.feed import (
        Subscription as Subscription,
    )
    from agent_adapter.network.events.listeners import (
        BaseHubListener as BaseHubListener,
        HubListener as HubListener,
    )
    from agent_adapter.network.hub.admission import (
        Arbiter as Arbiter,
        Registration as Registration,
        RuleBasedArbiter as RuleBasedArbiter,
    )
    from agent_adapter.network.hub.arbiters import (
        Allow as Allow,
        BaseHubArbiter as BaseHubArbiter,
        Decision as Decision,
        Deny as Deny,
        HubArbiter as HubArbiter,
    )
    from agent_adapter.network.hub.audit import (
        AUDIT_KIND_AGENT_REGISTERED as AUDIT_KIND_AGENT_REGISTERED,
        AUDIT_KIND_AGENT_UNREGISTERED as AUDIT_KIND_AGENT_UNREGISTERED,
        AUDIT_KIND_CHANNEL_CLOSED as AUDIT_KIND_CHANNEL_CLOSED,
        AUDIT_KIND_CHANNEL_CREATED as AUDIT_KIND_CHANNEL_CREATED,
        AUDIT_KIND_CHANNEL_EXPIRED as AUDIT_KIND_CHANNEL_EXPIRED,
        AUDIT_KIND_EXPECTATION_VIOLATED as AUDIT_KIND_EXPECTATION_VIOLATED,
        AUDIT_KIND_RESUME_SET as AUDIT_KIND_RESUME_SET,
        AUDIT_KIND_RULE_SET as AUDIT_KIND_RULE_SET,
        AUDIT_KIND_SKILL_SET as AUDIT_KIND_SKILL_SET,
        AUDIT_KIND_TASK_TERMINATED as AUDIT_KIND_TASK_TERMINATED,
        AUDIT_KIND_TURN_FAILED as AUDIT_KIND_TURN_FAILED,
        RESUME_SOURCE_OBSERVED as RESUME_SOURCE_OBSERVED,
        RESUME_SOURCE_TENANT as RESUME_SOURCE_TENANT,
        AuditLog as AuditLog,
        AuditSubscriber as AuditSubscriber,
    )
    from agent_adapter.network.hub.hub import (
        Hub as Hub,
    )
    from agent_adapter.network.hub.violation_handlers import (
        AuditHandler as AuditHandler,
        AutoCloseHandler as AutoCloseHandler,
        NotifyChannelHandler as NotifyChannelHandler,
        default_handlers as default_handlers,
    )
    from agent_adapter.network.hub.task_records import (
        TERMINAL_TASK_STATES as TERMINAL_TASK_STATES,
        TaskMetadata as TaskMetadata,
        TaskSpec as TaskSpec,
        TaskState as TaskState,
    )
    from agent_adapter.network.identity import (
        PASSPORT_KINDS as PASSPORT_KINDS,
        AgentRuntime as AgentRuntime,
        AuthBlock as AuthBlock,
        CostProfile as CostProfile,
        ObservedStat as ObservedStat,
        Passport as Passport,
        PassportKind as PassportKind,
        Resume as Resume,
        ResumeExample as ResumeExample,
    )
    from agent_adapter.network.inject import (
        AgentClientInject as AgentClientInject,
        ChannelInject as ChannelInject,
        ChannelStateInject as ChannelStateInject,
        HubInject as HubInject,
        TaskInject as TaskInject,
    )
    from agent_adapter.network.links.local import (
        LocalLink as LocalLink,
    )
    from agent_adapter.network.links.server import (
        WebSocketServer as WebSocketServer,
        serve as serve,
    )
    from agent_adapter.network.links.websocket import (
        WebSocketLink as WebSocketLink,
    )
    from agent_adapter.network.plugin import (
        NetworkContextPolicy as NetworkContextPolicy,
        NetworkPlugin as NetworkPlugin,
    )
    from agent_adapter.network.rules import (
        AccessBlock as AccessBlock,
        ChannelTypeAccess as ChannelTypeAccess,
        InboxBlock as InboxBlock,
        LimitsBlock as LimitsBlock,
        RateBlock as RateBlock,
        Rule as Rule,
        parse_duration as parse_duration,
    )
    from agent_adapter.network.turns.causes import (
        Retries as Retries,
    )
    from agent_adapter.network.turns.turn import (
        Turn as Turn,
    )
    from agent_adapter.network.turns.turn_types import (
        PendingTurn as PendingTurn,
        StartedTurn as StartedTurn,
        TurnRef as TurnRef,
    )
    from agent_adapter.network.adapters.defaults import (
        default_build_packet_envelope as default_build_packet_envelope,
        default_build_text_envelope as default_build_text_envelope,
        default_expected_next as default_expected_next,
        default_tools_for as default_tools_for,
    )
    from agent_adapter.network.compat.dependencies import (
        AGENT_CLIENT_DEP as AGENT_CLIENT_DEP,
        CHANNEL_DEP as CHANNEL_DEP,
        CHANNEL_STATE_DEP as CHANNEL_STATE_DEP,
        HUB_DEP as HUB_DEP,
        TASK_DEP as TASK_DEP,
    )
    from agent_adapter.network.compat.ids import (
        make_id as make_id,
        parse_hub_urn as parse_hub_urn,
    )
    from agent_adapter.network.compat.protocols import (
        EnvelopeRenderer as EnvelopeRenderer,
        NetworkClient as NetworkClient,
        default_name_resolver as default_name_resolver,
    )
    from agent_adapter.network.compat.ag2_parts import (
        Rendered as Rendered,
        default_build_round_envelope as default_build_round_envelope,
        default_extract_turn_input as default_extract_turn_input,
        default_render_envelope as default_render_envelope,
        ensure_parts as ensure_parts,
    )
    from agent_adapter.network.tools.skills import (
        ParsedSkill as ParsedSkill,
        parse_skill_frontmatter as parse_skill_frontmatter,
        render_fallback_skill as render_fallback_skill,
    )
    from agent_adapter.network.compat.handlers import (
        default_handler as default_handler,
        read_wal_until as read_wal_until,
        resolve_view_policy as resolve_view_policy,
        stamp_dependencies as stamp_dependencies,
    )
    from agent_adapter.network.compat.endpoints import (
        LinkClient as LinkClient,
        LinkEndpoint as LinkEndpoint,
        LinkFactory as LinkFactory,
        LocalLinkClient as LocalLinkClient,
        LocalLinkEndpoint as LocalLinkEndpoint,
    )
    from agent_adapter.network.compat.frames import (
        ErrorFrame as ErrorFrame,
        Frame as Frame,
        HelloFrame as HelloFrame,
        NotifyFrame as NotifyFrame,
        PingFrame as PingFrame,
        PongFrame as PongFrame,
        ReceiptFrame as ReceiptFrame,
        RequestFrame as RequestFrame,
        ResponseFrame as ResponseFrame,
        WelcomeFrame as WelcomeFrame,
        decode_frame as decode_frame,
        encode_frame as encode_frame,
    )
    from agent_adapter.network.compat.ws import (
        WsLink as WsLink,
        WsLinkClient as WsLinkClient,
        WsLinkEndpoint as WsLinkEndpoint,
        serve_ws as serve_ws,
    )
    from agent_adapter.network.hub.endpoints import (
        RemoteAgentProxy as RemoteAgentProxy,
    )
else:
    from agent_adapter.core.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)

    # AG2's own module paths that have no module here, as `network.client.inject`.
    __path__.append(f"{__path__[0]}/compat/paths")
