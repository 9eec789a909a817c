"""The handlers of the JSON API; their docstrings are the summaries in the OpenAPI document."""

from __future__ import annotations

from agent_adapter.console import actions, approvals, channels, health, in_doubt, runs, tools
from agent_adapter.console.api import requests, responses
from agent_adapter.console.api.operation import ApiRequest
from agent_adapter.console.problems import Problem
from agent_adapter.exec import ledger
from agent_adapter.exec.approval.inbox import ApprovalRecord
from agent_adapter.network.channels.reports import ChannelReport
from agent_adapter.store.approvals import Seen
from agent_adapter.store.queries import RunLine


async def me(asked: ApiRequest) -> responses.Me:
    """Show the holder of the token."""
    person = asked.person
    return responses.Me(
        name=person.name,
        role=person.role,
        reviewer=person.reviewer,
        tenant=person.tenant,
        tenants=list(person.tenants),
    )


async def list_approvals(
    asked: ApiRequest, query: requests.ApprovalsQuery
) -> responses.ApprovalPage:
    """List approvals, oldest first."""
    records, more = await approvals.approval_page(
        asked.console, query.state, limit=query.limit, after=query.start
    )
    return responses.ApprovalPage(approvals=records, next=more)


async def show_approval(asked: ApiRequest) -> ApprovalRecord:
    """Show one approval."""
    return await actions.approval_record(asked.console.settings, asked.path("id"))


async def approve(asked: ApiRequest, body: requests.Decision) -> ApprovalRecord:
    """Approve a call; it runs once."""
    return await _decide(asked, "approved", body)


async def deny(asked: ApiRequest, body: requests.Decision) -> ApprovalRecord:
    """Deny a call."""
    if body.arguments is not None:
        raise Problem(422, "arguments", "arguments: a denial takes none")
    return await _decide(asked, "denied", body)


async def respond(asked: ApiRequest, body: requests.AnswerInPlace) -> ApprovalRecord:
    """Answer in place of a call: it is not run, and the answer is its result."""
    return await actions.decide(
        asked.console.settings,
        asked.person,
        asked.path("id"),
        "answered",
        seen=Seen(digest=body.digest, version=body.version),
        reason=body.reason,
        answer=body.answer,
    )


async def withdraw(asked: ApiRequest, body: requests.Withdrawal) -> ApprovalRecord:
    """Withdraw a request, or an approval that no call has used."""
    settings = asked.console.settings
    return await actions.withdraw(settings, asked.person, asked.path("id"), body.reason)


async def decide_several(asked: ApiRequest, body: requests.BulkDecision) -> responses.BulkResult:
    """Decide several identical requests at once."""
    decided, failed = await actions.decide_several(
        asked.console.settings,
        asked.person,
        [(each.id, Seen(digest=each.digest, version=each.version)) for each in body.records],
        body.verdict,
        reason=body.reason,
    )
    return responses.BulkResult(decided=[record.id for record in decided], failed=failed)


async def list_runs(asked: ApiRequest, query: requests.RunsQuery) -> responses.RunPage:
    """List runs, newest first."""
    lines, more = await runs.run_page(
        asked.console,
        limit=query.limit,
        start=query.start,
        tool=query.tool,
        principal=query.principal,
        ending=query.ending,
    )
    return responses.RunPage(runs=lines, next=more)


async def show_run(asked: ApiRequest) -> RunLine:
    """Show one run."""
    return await runs.run_line(asked.console, asked.path("id"))


async def list_calls(asked: ApiRequest, query: requests.CallsQuery) -> responses.CallPage:
    """List the calls of a run, in order."""
    await runs.run_line(asked.console, asked.path("id"))
    steps, more = await runs.steps(asked.console, asked.path("id"), query.start, query.limit)
    return responses.CallPage(calls=steps, next=more)


async def verify_run(asked: ApiRequest) -> ledger.Report:
    """Verify the ledger chain of a run."""
    await runs.run_line(asked.console, asked.path("id"))
    return await ledger.verify(asked.console.store, asked.path("id"))


async def show_call(asked: ApiRequest) -> responses.CallDetails:
    """Show one call."""
    report = await runs.call_report(asked.console, asked.path("key"))
    return responses.CallDetails(
        call=report.row,
        arguments=_text(report.arguments),
        result=_text(report.result),
        approval=None if report.approval is None else report.approval["id"],
    )


async def list_in_doubt(asked: ApiRequest) -> responses.InDoubtPage:
    """List the writes with unknown outcome."""
    calls, total = await in_doubt.list_in_doubt(asked.console)
    return responses.InDoubtPage(calls=calls, total=total)


async def resolve(asked: ApiRequest, body: requests.Resolution) -> responses.ResolvedCall:
    """Record whether a write with unknown outcome happened."""
    if body.result is not None and not body.happened:
        raise Problem(422, "result", "result: a call that did not happen has none")
    row = await actions.resolve(
        asked.console.settings,
        asked.person,
        asked.path("key"),
        happened=body.happened,
        result=body.result,
        reason=body.reason,
    )
    return responses.ResolvedCall(call_key=row["call_key"], ending=row["ending"])


async def list_channels(asked: ApiRequest, query: requests.ChannelsQuery) -> responses.ChannelPage:
    """List channels, newest first."""
    lines = await channels.channel_lines(asked.console, query.state, query.limit)
    return responses.ChannelPage(channels=lines)


async def show_channel(asked: ApiRequest) -> ChannelReport:
    """Show one channel, without its log."""
    return await channels.channel_report(asked.console, asked.path("id"))


async def read_log(asked: ApiRequest, query: requests.LogQuery) -> responses.LogEntries:
    """List the entries of a channel's log after `since`."""
    await channels.channel_report(asked.console, asked.path("id"))
    lines = await channels.log_page(asked.console, asked.path("id"), since=query.since)
    return responses.LogEntries(
        entries=[
            responses.LogEntry(seq=line.seq, sender=line.sender, **line.envelope.to_dict())
            for line in lines
        ]
    )


async def speak(asked: ApiRequest, body: requests.Speech) -> responses.QueuedCommand:
    """Send a message as a person of the channel."""
    command = await actions.speak(
        asked.console.settings,
        asked.person,
        asked.path("id"),
        sender=body.sender,
        text=body.text,
        key=body.key,
    )
    return responses.QueuedCommand(command=command)


async def fork(asked: ApiRequest, body: requests.ForkRequest) -> responses.QueuedCommand:
    """Fork a channel at a message; the fork is paused."""
    command = await actions.fork(asked.console.settings, asked.person, asked.path("id"), at=body.at)
    return responses.QueuedCommand(command=command)


async def resume_fork(asked: ApiRequest) -> responses.QueuedCommand:
    """Resume a paused fork."""
    command = await actions.resume_fork(asked.console.settings, asked.person, asked.path("id"))
    return responses.QueuedCommand(command=command)


async def show_command(asked: ApiRequest) -> actions.CommandResult:
    """Show the result of a command to a hub."""
    return await actions.command_result(asked.console.settings, asked.path("id"))


async def list_tools(asked: ApiRequest, query: requests.ToolsQuery) -> responses.ToolPage:
    """List tools and their use, by name."""
    uses, more = await tools.tool_uses(asked.console, query.after, query.limit)
    return responses.ToolPage(tools=uses, next=more)


async def show_health(asked: ApiRequest) -> health.HealthReport:
    """Show the state of the store and of the integrations."""
    return await health.health_report(asked.console)


async def _decide(
    asked: ApiRequest, verdict: actions.Verdict, body: requests.Decision
) -> ApprovalRecord:
    return await actions.decide(
        asked.console.settings,
        asked.person,
        asked.path("id"),
        verdict,
        seen=Seen(digest=body.digest, version=body.version),
        reason=body.reason,
        arguments=body.arguments,
    )


def _text(stored: bytes | None) -> str | None:
    return None if stored is None else stored.decode("utf-8", "replace")
