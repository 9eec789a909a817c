"""Request bodies and query parameters of the JSON API.

A body with an unknown field is refused: a misspelt `reason` must not be dropped silently.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from agent_adapter.console.actions import MAX_BULK, Verdict
from agent_adapter.console.approvals import ApprovalState
from agent_adapter.console.channels import ChannelStates
from agent_adapter.console.parameters import Count, EntryNumber, Parameters, Start
from agent_adapter.console.runs import Ending
from agent_adapter.core.records import StrictModel

_Id = Annotated[str, Field(min_length=1, max_length=200)]
_Reason = Annotated[str | None, Field(max_length=10_000)]


class Decision(StrictModel):
    """A decision on one approval; `digest` and `version` are those of the record as it was read."""

    digest: _Id
    version: _Id
    reason: _Reason = None
    arguments: Annotated[
        dict[str, JsonValue] | None, Field(description="Run the call with these arguments instead.")
    ] = None


class AnswerInPlace(StrictModel):
    """A person's answer in place of a run; `digest` and `version` as in a decision."""

    digest: _Id
    version: _Id
    answer: Annotated[JsonValue, Field(description="The result that the call gets.")]
    reason: _Reason = None


class Withdrawal(StrictModel):
    """Why a record is withdrawn."""

    reason: Annotated[str, Field(min_length=1, max_length=10_000)]


class SeenRecord(StrictModel):
    """One record of a bulk decision, as it was read."""

    id: _Id
    digest: _Id
    version: _Id


class BulkDecision(StrictModel):
    """One decision on several requests for the same tool with the same arguments."""

    records: Annotated[list[SeenRecord], Field(min_length=1, max_length=MAX_BULK)]
    verdict: Verdict
    reason: _Reason = None


class Resolution(StrictModel):
    """Whether a write with unknown outcome happened, and how the person knows."""

    happened: bool
    reason: Annotated[str, Field(min_length=1, max_length=10_000)]
    result: Annotated[Any, Field(description="The call's result; only if it happened.")] = None


class Speech(StrictModel):
    """A message from a person of the channel; two requests with the same `key` send it once."""

    sender: _Id
    text: Annotated[str, Field(min_length=1, max_length=100_000)]
    key: Annotated[str, Field(max_length=200)] = ""


class ForkRequest(StrictModel):
    """`at` is the id of the last envelope in the new channel's log."""

    at: _Id


class PageQuery(Parameters):
    """One page of a list."""

    limit: Count = 50
    start: Start = None


class CallsQuery(PageQuery):
    """One page of a run's calls."""

    limit: Count = 100


class ApprovalsQuery(PageQuery):
    """One page of approvals."""

    state: Annotated[
        Literal[ApprovalState, "all"], Field(description="The state of the records.")
    ] = "pending"


class RunsQuery(PageQuery):
    """One page of runs."""

    tool: Annotated[str | None, Field(description="Runs that called this tool.")] = None
    ending: Annotated[
        Ending | None, Field(description="Runs with a call that ended like this.")
    ] = None
    principal: Annotated[str | None, Field(description="Runs on behalf of this principal.")] = None


class ChannelsQuery(Parameters):
    """The newest channels."""

    limit: Count = 50
    state: Annotated[ChannelStates, Field(description="The state of the channels.")] = "open"


class LogQuery(Parameters):
    """Entries of a log after the entry `since`."""

    since: EntryNumber = 0


class ToolsQuery(Parameters):
    """One page of tools."""

    limit: Count = 25
    after: Annotated[str, Field(description="`next` of the previous page.")] = ""
