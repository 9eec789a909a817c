"""Write a tool once, as a plain function; use it, governed, in any agent framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_adapter.core.context import (
        ToolContext,
    )
    from agent_adapter.core.errors import (
        MODEL_VISIBLE_ERRORS,
        AccessDeniedError,
        AgentAdapterError,
        ApprovalDenied,
        ApprovalExpired,
        ApprovalPending,
        AuthError,
        GuardrailBlocked,
        InboxFull,
        IntegrationError,
        MissingDependency,
        NetworkError,
        NotFoundError,
        ProtocolError,
        RunLimitExceeded,
        StaleTurn,
        StoreError,
        ToolArgsInvalid,
        ToolBusy,
        ToolDefinitionError,
        ToolError,
        ToolFailed,
        ToolInDoubt,
        ToolInFlight,
        ToolNotFound,
        ToolTimeout,
        WorkflowGraphError,
        model_visible_error,
    )
    from agent_adapter.core.inject import (
        Depends,
        Secret,
    )
    from agent_adapter.core.ports import (
        ApprovalPort,
    )
    from agent_adapter.core.registry import (
        ToolRegistry,
        default_registry,
        tool,
    )
    from agent_adapter.core.routing import (
        ChannelInject,
        ChannelStateInject,
        Finish,
        Handoff,
    )
    from agent_adapter.core.tool import (
        ToolSpec,
        spec_of,
    )
    from agent_adapter.core.types import (
        ApprovalDecision,
        ApprovalRequest,
        CachePolicy,
        RetryPolicy,
        RunLimits,
    )
    from agent_adapter.exec.approval.inbox import (
        Inbox,
    )
    from agent_adapter.exec.approval.ports.callback import (
        CallbackApproval,
    )
    from agent_adapter.exec.approval.ports.deferred import (
        DeferredApproval,
    )
    from agent_adapter.exec.approval.ports.policy import (
        PolicyApproval,
        PolicyRule,
    )
    from agent_adapter.exec.approval.ports.quorum import (
        QuorumApproval,
    )
    from agent_adapter.exec.approval.ports.terminal import (
        TerminalApproval,
    )
    from agent_adapter.exec.executor import (
        Executor,
    )
    from agent_adapter.exec.sync import (
        acall,
        call,
    )
    from agent_adapter.integrations.discovery import (
        available_integrations,
        get_integration,
    )
    from agent_adapter.store.base import (
        Store,
    )
    from agent_adapter.store.opening import (
        open_store,
    )

    __version__: str

# Names are looked up when they are first used, so that importing the package stays cheap.
_HOMES = {
    "AccessDeniedError": "agent_adapter.core.errors",
    "AgentAdapterError": "agent_adapter.core.errors",
    "ApprovalDecision": "agent_adapter.core.types",
    "ApprovalDenied": "agent_adapter.core.errors",
    "ApprovalExpired": "agent_adapter.core.errors",
    "ApprovalPending": "agent_adapter.core.errors",
    "ApprovalPort": "agent_adapter.core.ports",
    "ApprovalRequest": "agent_adapter.core.types",
    "AuthError": "agent_adapter.core.errors",
    "CachePolicy": "agent_adapter.core.types",
    "CallbackApproval": "agent_adapter.exec.approval.ports.callback",
    "ChannelInject": "agent_adapter.core.routing",
    "ChannelStateInject": "agent_adapter.core.routing",
    "DeferredApproval": "agent_adapter.exec.approval.ports.deferred",
    "Depends": "agent_adapter.core.inject",
    "Executor": "agent_adapter.exec.executor",
    "Finish": "agent_adapter.core.routing",
    "GuardrailBlocked": "agent_adapter.core.errors",
    "Handoff": "agent_adapter.core.routing",
    "Inbox": "agent_adapter.exec.approval.inbox",
    "InboxFull": "agent_adapter.core.errors",
    "IntegrationError": "agent_adapter.core.errors",
    "MODEL_VISIBLE_ERRORS": "agent_adapter.core.errors",
    "MissingDependency": "agent_adapter.core.errors",
    "NetworkError": "agent_adapter.core.errors",
    "NotFoundError": "agent_adapter.core.errors",
    "PolicyApproval": "agent_adapter.exec.approval.ports.policy",
    "PolicyRule": "agent_adapter.exec.approval.ports.policy",
    "ProtocolError": "agent_adapter.core.errors",
    "QuorumApproval": "agent_adapter.exec.approval.ports.quorum",
    "RetryPolicy": "agent_adapter.core.types",
    "RunLimitExceeded": "agent_adapter.core.errors",
    "RunLimits": "agent_adapter.core.types",
    "Secret": "agent_adapter.core.inject",
    "StaleTurn": "agent_adapter.core.errors",
    "Store": "agent_adapter.store.base",
    "StoreError": "agent_adapter.core.errors",
    "TerminalApproval": "agent_adapter.exec.approval.ports.terminal",
    "ToolArgsInvalid": "agent_adapter.core.errors",
    "ToolBusy": "agent_adapter.core.errors",
    "ToolContext": "agent_adapter.core.context",
    "ToolDefinitionError": "agent_adapter.core.errors",
    "ToolError": "agent_adapter.core.errors",
    "ToolFailed": "agent_adapter.core.errors",
    "ToolInDoubt": "agent_adapter.core.errors",
    "ToolInFlight": "agent_adapter.core.errors",
    "ToolNotFound": "agent_adapter.core.errors",
    "ToolRegistry": "agent_adapter.core.registry",
    "ToolSpec": "agent_adapter.core.tool",
    "ToolTimeout": "agent_adapter.core.errors",
    "WorkflowGraphError": "agent_adapter.core.errors",
    "acall": "agent_adapter.exec.sync",
    "available_integrations": "agent_adapter.integrations.discovery",
    "call": "agent_adapter.exec.sync",
    "default_registry": "agent_adapter.core.registry",
    "get_integration": "agent_adapter.integrations.discovery",
    "model_visible_error": "agent_adapter.core.errors",
    "open_store": "agent_adapter.store.opening",
    "spec_of": "agent_adapter.core.tool",
    "tool": "agent_adapter.core.registry",
}

__all__ = [
    "MODEL_VISIBLE_ERRORS",
    "AccessDeniedError",
    "AgentAdapterError",
    "ApprovalDecision",
    "ApprovalDenied",
    "ApprovalExpired",
    "ApprovalPending",
    "ApprovalPort",
    "ApprovalRequest",
    "AuthError",
    "CachePolicy",
    "CallbackApproval",
    "ChannelInject",
    "ChannelStateInject",
    "DeferredApproval",
    "Depends",
    "Executor",
    "Finish",
    "GuardrailBlocked",
    "Handoff",
    "Inbox",
    "InboxFull",
    "IntegrationError",
    "MissingDependency",
    "NetworkError",
    "NotFoundError",
    "PolicyApproval",
    "PolicyRule",
    "ProtocolError",
    "QuorumApproval",
    "RetryPolicy",
    "RunLimitExceeded",
    "RunLimits",
    "Secret",
    "StaleTurn",
    "Store",
    "StoreError",
    "TerminalApproval",
    "ToolArgsInvalid",
    "ToolBusy",
    "ToolContext",
    "ToolDefinitionError",
    "ToolError",
    "ToolFailed",
    "ToolInDoubt",
    "ToolInFlight",
    "ToolNotFound",
    "ToolRegistry",
    "ToolSpec",
    "ToolTimeout",
    "WorkflowGraphError",
    "__version__",
    "acall",
    "available_integrations",
    "call",
    "default_registry",
    "get_integration",
    "model_visible_error",
    "open_store",
    "spec_of",
    "tool",
]


# Hidden from type checkers, which would take every name for one of ours.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is not None:
            from importlib import import_module

            value = getattr(import_module(home), name)
        elif name == "__version__":
            from importlib.metadata import version

            value = version("agent-adapter")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
