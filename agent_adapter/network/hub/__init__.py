"""The hub of a store. `Hub` is imported on first use: importing one of its parts loads no hub."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_adapter.network.channels.evaluators import (
        AcksWithinEvaluator as AcksWithinEvaluator,
    )
    from agent_adapter.network.channels.evaluators import (
        MaxSilenceEvaluator as MaxSilenceEvaluator,
    )
    from agent_adapter.network.channels.evaluators import (
        ReplyWithinEvaluator as ReplyWithinEvaluator,
    )
    from agent_adapter.network.channels.evaluators import (
        default_evaluators as default_evaluators,
    )
    from agent_adapter.network.channels.violations import (
        ExpectationContext as ExpectationContext,
    )
    from agent_adapter.network.channels.violations import (
        ExpectationEvaluator as ExpectationEvaluator,
    )
    from agent_adapter.network.channels.violations import (
        Violation as Violation,
    )
    from agent_adapter.network.channels.violations import (
        ViolationHandler as ViolationHandler,
    )
    from agent_adapter.network.events.listeners import (
        BaseHubListener as BaseHubListener,
    )
    from agent_adapter.network.events.listeners import (
        HubListener as HubListener,
    )
    from agent_adapter.network.hub.admission import RuleBasedArbiter as RuleBasedArbiter
    from agent_adapter.network.hub.arbiters import (
        Allow as Allow,
    )
    from agent_adapter.network.hub.arbiters import (
        BaseHubArbiter as BaseHubArbiter,
    )
    from agent_adapter.network.hub.arbiters import (
        Decision as Decision,
    )
    from agent_adapter.network.hub.arbiters import (
        Deny as Deny,
    )
    from agent_adapter.network.hub.arbiters import (
        HubArbiter as HubArbiter,
    )
    from agent_adapter.network.hub.audit import (
        AUDIT_KIND_AGENT_REGISTERED as AUDIT_KIND_AGENT_REGISTERED,
    )
    from agent_adapter.network.hub.audit import (
        AUDIT_KIND_AGENT_UNREGISTERED as AUDIT_KIND_AGENT_UNREGISTERED,
    )
    from agent_adapter.network.hub.audit import (
        AUDIT_KIND_CHANNEL_CLOSED as AUDIT_KIND_CHANNEL_CLOSED,
    )
    from agent_adapter.network.hub.audit import (
        AUDIT_KIND_CHANNEL_CREATED as AUDIT_KIND_CHANNEL_CREATED,
    )
    from agent_adapter.network.hub.audit import (
        AUDIT_KIND_CHANNEL_EXPIRED as AUDIT_KIND_CHANNEL_EXPIRED,
    )
    from agent_adapter.network.hub.audit import (
        AUDIT_KIND_EXPECTATION_VIOLATED as AUDIT_KIND_EXPECTATION_VIOLATED,
    )
    from agent_adapter.network.hub.audit import (
        AUDIT_KIND_RESUME_SET as AUDIT_KIND_RESUME_SET,
    )
    from agent_adapter.network.hub.audit import (
        AUDIT_KIND_RULE_SET as AUDIT_KIND_RULE_SET,
    )
    from agent_adapter.network.hub.audit import (
        AUDIT_KIND_SKILL_SET as AUDIT_KIND_SKILL_SET,
    )
    from agent_adapter.network.hub.audit import (
        AUDIT_KIND_TASK_TERMINATED as AUDIT_KIND_TASK_TERMINATED,
    )
    from agent_adapter.network.hub.audit import (
        AUDIT_KIND_TURN_FAILED as AUDIT_KIND_TURN_FAILED,
    )
    from agent_adapter.network.hub.audit import (
        RESUME_SOURCE_OBSERVED as RESUME_SOURCE_OBSERVED,
    )
    from agent_adapter.network.hub.audit import (
        RESUME_SOURCE_TENANT as RESUME_SOURCE_TENANT,
    )
    from agent_adapter.network.hub.audit import (
        AuditLog as AuditLog,
    )
    from agent_adapter.network.hub.audit import (
        AuditSubscriber as AuditSubscriber,
    )
    from agent_adapter.network.hub.hub import (
        Hub as Hub,
    )
    from agent_adapter.network.hub.violation_handlers import (
        AuditHandler as AuditHandler,
    )
    from agent_adapter.network.hub.violation_handlers import (
        AutoCloseHandler as AutoCloseHandler,
    )
    from agent_adapter.network.hub.violation_handlers import (
        NotifyChannelHandler as NotifyChannelHandler,
    )
    from agent_adapter.network.hub.violation_handlers import (
        default_handlers as default_handlers,
    )
    from agent_adapter.network.turns.turn_types import (
        PendingTurn as PendingTurn,
    )
else:
    from agent_adapter.core.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)

    # AG2's own module paths that have no module here, as `network.hub.listener`.
    __path__.append(f"{__path__[0]}/../compat/paths/hub")
