"""Every error the library raises, in one tree.

    AgentAdapterError
    ├── ToolDefinitionError      a tool cannot be defined as written
    ├── ToolNotFound             no tool of that name
    ├── ToolArgsInvalid      *   the arguments do not fit the schema
    │   └── ToolArgsIncomplete * the model was stopped before it had sent all arguments
    ├── ToolError            *   raised by a tool's author for the model to read: nothing happened
    │   ├── ToolFailed       *   any other exception of the tool; the original is `__cause__`
    │   ├── ToolTimeout      *   the tool did not end in its time
    │   ├── ToolInDoubt      *   a write may or may not have happened: a person decides
    │   ├── ToolInFlight     *   another live process is running this call
    │   └── ToolBusy         *   no worker thread is free
    ├── ApprovalDenied       *   a person or a rule denied the call, or there is neither
    │   ├── ApprovalExpired  *   the decision or its use came too late
    │   └── ApprovalWithdrawn *  the request was withdrawn, or its process has ended
    ├── ApprovalPending          a person has not decided yet
    ├── GuardrailBlocked     *   a guard stopped the call or withheld its result
    ├── RunLimitExceeded     *   the run used up one of its limits
    ├── CallConflict             a `call_id` names another call of the run already
    ├── StoreError               a store cannot be opened, read or written
    ├── NetworkError             something about channels and their participants
    │   ├── NotConnected         a client was closed, or a participant is disconnected
    │   ├── ProtocolError        a message or channel breaks the channel's rules: nothing written
    │   │   └── StaleTurn        an answer came for a turn that has passed
    │   ├── AccessDeniedError    a rule does not permit it: nothing written
    │   ├── AuthError            a connection could not prove its identity
    │   ├── InboxFull            a receiver has too much waiting: nothing written
    │   ├── NotFoundError        no such participant, channel or task
    │   └── WorkflowGraphError   a transition graph cannot be built, loaded or evaluated
    └── IntegrationError         a framework or plug-in does not fit the integration
        └── MissingDependency    an optional package is not installed

Those marked `*` are shown to the model (`MODEL_VISIBLE_ERRORS`); the others are for the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


class AgentAdapterError(Exception):
    """Base of every error of this library; `kind` is stable and kebab-case."""

    kind: ClassVar[str] = "agent-adapter-error"

    edited: dict[str, Any] | None = None
    """The arguments that a person set instead, with secrets masked."""


class ToolDefinitionError(AgentAdapterError):
    """A tool cannot be defined as written; the message names the parameter and the reason."""

    kind = "tool-definition-error"


class ToolNotFound(AgentAdapterError):
    """No tool of that name; the message lists near matches."""

    kind = "tool-not-found"


class ToolArgsInvalid(AgentAdapterError):
    """The arguments do not fit the tool's schema.

    `problems` holds one line per field: path, problem, what was expected.
    """

    kind = "tool-args-invalid"

    def __init__(self, tool: str, problems: Sequence[str]) -> None:
        super().__init__(tool, tuple(problems))
        self.tool = tool
        self.problems = tuple(problems)

    def __str__(self) -> str:
        lines = "\n".join(f"- {problem}" for problem in self.problems)
        return f"invalid arguments for {self.tool}:\n{lines}"


class ToolArgsIncomplete(ToolArgsInvalid):
    """The model was stopped while it wrote the call, so arguments may be missing; nothing ran.

    `reason` is the provider's word for why it stopped, such as `length` or `max_tokens`.
    """

    kind = "tool-args-incomplete"

    def __init__(self, tool: str, reason: str) -> None:
        lines = [f"(arguments): may be cut off, the answer ended with {reason!r} (send all again)"]
        super().__init__(tool, lines)
        self.args = (tool, reason)  # the arguments that copy and pickle pass to the class
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.tool} was not run: your answer ended with {self.reason!r} before the call was "
            "complete; send the whole call again, with shorter arguments if there is a limit"
        )


class ToolError(AgentAdapterError):
    """Raised by a tool's author for the model to read; a promise that nothing happened.

    `raised_in` is the tool whose call ended with it: a tool that passes on the error of another
    call has not promised that it did nothing itself.
    """

    kind = "tool-error"
    raised_in: str | None = None


class ToolFailed(ToolError):
    """A tool raised an exception of its own; its class is named, the original is `__cause__`."""

    kind = "tool-failed"


class ToolTimeout(ToolError):
    """A tool did not end within its `timeout`."""

    kind = "tool-timeout"


class ToolInDoubt(ToolError):
    """A write may or may not have happened and is not repeated; a person resolves it.

    `call_key` names the call for `agent-adapter ledger resolve`. `value` is what the tool returned
    when only the recording failed; it is for the developer and never reaches a model.
    """

    kind = "tool-in-doubt"

    def __init__(self, message: str, *, call_key: str | None = None, value: Any = None) -> None:
        super().__init__(message)
        self.call_key = call_key
        self.value = value


class ToolInFlight(ToolError):
    """Another live process is running this very call; wait and ask again."""

    kind = "tool-in-flight"


class ToolBusy(ToolError):
    """Too many worker threads are held by tools that timed out."""

    kind = "tool-busy"


class ApprovalDenied(AgentAdapterError):
    """The call may not run: a person or a rule denied the call, or there is neither."""

    kind = "approval-denied"


class ApprovalExpired(ApprovalDenied):
    """An approval was not decided, or not used, in its time."""

    kind = "approval-expired"


class ApprovalWithdrawn(ApprovalDenied):
    """The request was withdrawn before a decision, or its process has ended."""

    kind = "approval-withdrawn"


class ApprovalPending(AgentAdapterError):
    """A person has not decided yet.

    `id` is the record (`apr_…`), or the first of `ids` where several calls wait; `expires_at` is
    seconds since the epoch, by the store's clock.
    """

    kind = "approval-pending"

    def __init__(
        self, id: str, expires_at: float | None = None, *, ids: Sequence[str] | None = None
    ) -> None:
        super().__init__(id, expires_at)
        self.id = id
        self.expires_at = expires_at
        self.ids = tuple(ids) if ids is not None else (id,)

    def __str__(self) -> str:
        # Some frameworks show this text to a model unchanged.
        return f"approval required: {', '.join(self.ids)} (a person is asked; nothing has run)"


class GuardrailBlocked(AgentAdapterError):
    """A guard stopped the call, or withheld the result of one that was done."""

    kind = "guardrail-blocked"


class RunLimitExceeded(AgentAdapterError):
    """The run used up a limit; `limit` is the field of `RunLimits`."""

    kind = "run-limit-exceeded"

    def __init__(self, message: str, *, limit: str | None = None) -> None:
        super().__init__(message)
        self.limit = limit


class RunUnknown(RunLimitExceeded):
    """A rule applies per run, and the run of the call is unknown.

    Surround the call with `executor.run_scope(...)`, or give its context a `run_id`.
    """

    kind = "run-unknown"


class CallConflict(AgentAdapterError):
    """A `call_id` given to `Executor.run` names another call of its run already; nothing ran."""

    kind = "call-conflict"


class StoreError(AgentAdapterError):
    """A store cannot be opened, read or written; the message names the place and the fix."""

    kind = "store-error"


class NetworkError(AgentAdapterError):
    """Base of the errors about channels and their participants."""

    kind = "network-error"


class NotConnected(NetworkError, RuntimeError):
    """A client was closed, or a participant is disconnected: register again.

    Also a `RuntimeError`, which is what AG2 raises.
    """

    kind = "not-connected"


class ProtocolError(NetworkError):
    """A message or a channel breaks the channel's rules; nothing was written."""

    kind = "protocol-error"


class StaleTurn(ProtocolError):
    """An answer came for a turn that has passed, or that another attempt has taken over."""

    kind = "stale-turn"


class AccessDeniedError(NetworkError):
    """The `Rule` of a participant does not permit this; nothing was written."""

    kind = "access-denied"


class AuthError(NetworkError):
    """A connection could not prove its identity, or may not use that name."""

    kind = "auth-error"


class InboxFull(NetworkError):
    """A receiver has as many waiting messages as its `Rule` allows; nothing was written."""

    kind = "inbox-full"


class NotFoundError(NetworkError):
    """There is no such participant, channel or task, or the caller may not see it."""

    kind = "not-found"


class WorkflowGraphError(NetworkError):
    """A transition graph cannot be built, loaded or evaluated; the message names the place."""

    kind = "workflow-graph-error"


class IntegrationError(AgentAdapterError):
    """A framework or a plug-in does not fit the integration."""

    kind = "integration-error"


class MissingDependency(IntegrationError):
    """An optional package is not installed; the message has the command that installs it."""

    kind = "missing-dependency"


MODEL_VISIBLE_ERRORS: tuple[type[AgentAdapterError], ...] = (
    ToolArgsInvalid,
    ToolError,
    ApprovalDenied,
    GuardrailBlocked,
    RunLimitExceeded,
)
"""The errors a model may read; every other exception is for the program."""
