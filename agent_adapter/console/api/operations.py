"""The operations of the JSON API: one entry each, from which routes and document are made."""

from __future__ import annotations

from agent_adapter.console.api import handlers
from agent_adapter.console.api.operation import ApiOperation

OPERATIONS: tuple[ApiOperation, ...] = (
    ApiOperation("GET", "/me", handlers.me),
    ApiOperation("GET", "/approvals", handlers.list_approvals),
    ApiOperation("POST", "/approvals/alike", handlers.decide_several, role="approver"),
    ApiOperation("GET", "/approvals/{id}", handlers.show_approval),
    ApiOperation("POST", "/approvals/{id}/approve", handlers.approve, role="approver"),
    ApiOperation("POST", "/approvals/{id}/deny", handlers.deny, role="approver"),
    ApiOperation("POST", "/approvals/{id}/respond", handlers.respond, role="approver"),
    ApiOperation("POST", "/approvals/{id}/withdraw", handlers.withdraw, role="approver"),
    ApiOperation("GET", "/runs", handlers.list_runs),
    ApiOperation("GET", "/runs/{id}", handlers.show_run),
    ApiOperation("GET", "/runs/{id}/calls", handlers.list_calls),
    ApiOperation("GET", "/runs/{id}/verification", handlers.verify_run),
    ApiOperation("GET", "/calls/{key}", handlers.show_call),
    ApiOperation("GET", "/in-doubt", handlers.list_in_doubt),
    ApiOperation("POST", "/in-doubt/{key}/resolve", handlers.resolve, role="approver"),
    ApiOperation("GET", "/channels", handlers.list_channels),
    ApiOperation("GET", "/channels/{id}", handlers.show_channel),
    ApiOperation("GET", "/channels/{id}/log", handlers.read_log),
    ApiOperation("POST", "/channels/{id}/speak", handlers.speak, role="approver"),
    ApiOperation("POST", "/channels/{id}/fork", handlers.fork, role="admin"),
    ApiOperation("POST", "/channels/{id}/resume", handlers.resume_fork, role="admin"),
    ApiOperation("GET", "/commands/{id}", handlers.show_command),
    ApiOperation("GET", "/tools", handlers.list_tools),
    ApiOperation("GET", "/health", handlers.show_health),
)
