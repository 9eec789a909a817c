"""Write a tool once, as a plain function; use it, governed, in any agent framework."""

from __future__ import annotations

# Assigned, not imported: type checkers know the name, and `typing` alone costs as much as the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    # The public names, stated here and nowhere else; each is loaded when it is first used.
    from agent_adapter.core.answers import model_visible_error as model_visible_error
    from agent_adapter.core.content import (
        Audio as Audio,
        File as File,
        Image as Image,
        Json as Json,
        Text as Text,
    )
    from agent_adapter.core.context import ToolContext as ToolContext
    from agent_adapter.core.errors import (
        MODEL_VISIBLE_ERRORS as MODEL_VISIBLE_ERRORS,
        AccessDeniedError as AccessDeniedError,
        AgentAdapterError as AgentAdapterError,
        ApprovalDenied as ApprovalDenied,
        ApprovalExpired as ApprovalExpired,
        ApprovalPending as ApprovalPending,
        ApprovalWithdrawn as ApprovalWithdrawn,
        AuthError as AuthError,
        CallConflict as CallConflict,
        GuardrailBlocked as GuardrailBlocked,
        InboxFull as InboxFull,
        IntegrationError as IntegrationError,
        MissingDependency as MissingDependency,
        NetworkError as NetworkError,
        NotConnected as NotConnected,
        NotFoundError as NotFoundError,
        ProtocolError as ProtocolError,
        RunLimitExceeded as RunLimitExceeded,
        RunUnknown as RunUnknown,
        StaleTurn as StaleTurn,
        StoreError as StoreError,
        ToolArgsIncomplete as ToolArgsIncomplete,
        ToolArgsInvalid as ToolArgsInvalid,
        ToolBusy as ToolBusy,
        ToolDefinitionError as ToolDefinitionError,
        ToolError as ToolError,
        ToolFailed as ToolFailed,
        ToolInDoubt as ToolInDoubt,
        ToolInFlight as ToolInFlight,
        ToolNotFound as ToolNotFound,
        ToolTimeout as ToolTimeout,
        WorkflowGraphError as WorkflowGraphError,
    )
    from agent_adapter.core.inject import (
        Depends as Depends,
        Secret as Secret,
        Sink as Sink,
    )
    from agent_adapter.core.native import Policy as Policy
    from agent_adapter.core.ports import ApprovalPort as ApprovalPort
    from agent_adapter.core.registry import (
        ToolRegistry as ToolRegistry,
        default_registry as default_registry,
        tool as tool,
    )
    from agent_adapter.core.routing import (
        ChannelInject as ChannelInject,
        ChannelStateInject as ChannelStateInject,
        Finish as Finish,
        Handoff as Handoff,
    )
    from agent_adapter.core.tool import (
        ToolSpec as ToolSpec,
        spec_of as spec_of,
    )
    from agent_adapter.core.types import (
        ApprovalDecision as ApprovalDecision,
        ApprovalRequest as ApprovalRequest,
        CachePolicy as CachePolicy,
        RetryPolicy as RetryPolicy,
        RunLimits as RunLimits,
    )
    from agent_adapter.core.version import __version__ as __version__
    from agent_adapter.exec.approval.inbox import Inbox as Inbox
    from agent_adapter.exec.approval.ports.callback import CallbackApproval as CallbackApproval
    from agent_adapter.exec.approval.ports.deferred import DeferredApproval as DeferredApproval
    from agent_adapter.exec.approval.ports.policy import (
        PolicyApproval as PolicyApproval,
        PolicyRule as PolicyRule,
    )
    from agent_adapter.exec.approval.ports.quorum import QuorumApproval as QuorumApproval
    from agent_adapter.exec.approval.ports.terminal import TerminalApproval as TerminalApproval
    from agent_adapter.exec.executor import Executor as Executor
    from agent_adapter.exec.sync import (
        acall as acall,
        call as call,
    )
    from agent_adapter.integrations.discovery import (
        available_integrations as available_integrations,
        get_integration as get_integration,
    )
    from agent_adapter.store.base import Store as Store
    from agent_adapter.store.opening import open_store as open_store
else:
    from agent_adapter.core.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
