"""The answers of the JSON API; the OpenAPI document takes its schemas from these types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agent_adapter.console.row_types import CallInDoubt, CallRow
from agent_adapter.console.runs import Step
from agent_adapter.exec.approval.inbox import ApprovalRecord
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.channels.reports import ChannelLine
from agent_adapter.store.queries import RunLine, ToolUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """The holder of the token; `reviewer` is how decisions are attributed.

    `tenant` is the one whose records this request sees; the header `agent-adapter-tenant` names
    another of `tenants`.
    """

    name: str
    role: str
    reviewer: str
    tenant: str
    tenants: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPage:
    """One page of approvals; `next` is the `start` of the next page."""

    approvals: list[ApprovalRecord]
    next: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkResult:
    """The ids of the decided records, and one message for each that was not decided."""

    decided: list[str]
    failed: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """One page of runs; `next` is the `start` of the next page."""

    runs: list[RunLine]
    next: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPage:
    """One page of a run's calls; `next` is the `start` of the next page."""

    calls: list[Step]
    next: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDetails:
    """One call with its stored arguments and result, and the id of its approval."""

    call: CallRow
    arguments: str | None
    result: str | None
    approval: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InDoubtPage:
    """The oldest writes with unknown outcome, and how many there are."""

    calls: list[CallInDoubt]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedCall:
    """The ending that a person gave a call with unknown outcome."""

    call_key: str
    ending: Literal["ok", "aborted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPage:
    """The newest channels."""

    channels: list[ChannelLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry(Envelope):
    """An envelope with its number in the log and its sender's name."""

    seq: int
    sender: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntries:
    """Entries of a channel's log, oldest first."""

    entries: list[LogEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedCommand:
    """The id of a command that waits for the channel's hub."""

    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPage:
    """One page of tools; `next` is the `after` of the next page."""

    tools: list[ToolUse]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """A stable `kind`, and a message that names the thing, the reason and the fix."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorAnswer:
    """The answer to a request that failed."""

    error: ErrorBody
