"""The paths of `ag2.network.hub.layout`: where AG2's hubs keep files in their store.

A hub of this package keeps everything in its own tables. `agent-adapter import-ag2` reads these
files, and `HubTelemetryListener` writes its spans at `spans_path()`.
"""

from __future__ import annotations


def agents_root() -> str:
    """The folder of all agents."""
    return "/agents"


def audit_path() -> str:
    """Where the audit log is."""
    return "/audit/audit.jsonl"


def by_capability_path() -> str:
    """Where the ids of capabilities are."""
    return "/registry/by_capability.json"


def by_name_path() -> str:
    """Where the ids of names are."""
    return "/registry/by_name.json"


def channel_metadata_path(channel_id: str) -> str:
    """Where a channel's metadata is."""
    return f"/channels/{channel_id}/metadata.json"


def channel_tasks_index_path(channel_id: str) -> str:
    """Where the ids of a channel's tasks are."""
    return f"/channels/{channel_id}/tasks.json"


def channels_root() -> str:
    """The folder of all channels."""
    return "/channels"


def inbox_cursor_path(agent_id: str) -> str:
    """Where the last acknowledged entry of each channel is."""
    return f"/agents/{agent_id}/inbox.cursors.json"


def inbox_nacks_path(agent_id: str) -> str:
    """Where deliveries that an agent refused are."""
    return f"/agents/{agent_id}/inbox_nacks.jsonl"


def inbox_overflow_path(agent_id: str) -> str:
    """Where messages beyond the inbox are."""
    return f"/agents/{agent_id}/inbox_overflow.jsonl"


def passport_path(agent_id: str) -> str:
    """Where an agent's passport is."""
    return f"/agents/{agent_id}/passport.json"


def registry_root() -> str:
    """The folder of the indexes."""
    return "/registry"


def remote_owners_path(agent_id: str) -> str:
    """Where the owners of a remote agent are."""
    return f"/agents/{agent_id}/owners.json"


def resume_path(agent_id: str) -> str:
    """Where an agent's résumé is."""
    return f"/agents/{agent_id}/resume.json"


def rule_path(agent_id: str) -> str:
    """Where an agent's rule is."""
    return f"/agents/{agent_id}/rule.json"


def runtime_path(agent_id: str) -> str:
    """Where it is noted how an agent is connected."""
    return f"/agents/{agent_id}/runtime.json"


def skill_path(agent_id: str) -> str:
    """Where the page that an agent published is."""
    return f"/agents/{agent_id}/SKILL.md"


def spans_path() -> str:
    """Where `HubTelemetryListener` appends its spans."""
    return "/telemetry/spans.jsonl"


def task_checkpoint_path(task_id: str) -> str:
    """Where a task's checkpoint is."""
    return f"/tasks/{task_id}/checkpoint.json"


def task_checkpoint_writers_path(task_id: str) -> str:
    """Where those who may write a checkpoint are."""
    return f"/tasks/{task_id}/checkpoint_writers.json"


def task_events_path(task_id: str) -> str:
    """Where a task's events are."""
    return f"/tasks/{task_id}/events.jsonl"


def task_metadata_path(task_id: str) -> str:
    """Where a task's metadata is."""
    return f"/tasks/{task_id}/metadata.json"


def tasks_root() -> str:
    """The folder of all tasks."""
    return "/tasks"


def telemetry_root() -> str:
    """The folder of spans."""
    return "/telemetry"


def wal_path(channel_id: str) -> str:
    """Where a channel's log is."""
    return f"/channels/{channel_id}/wal.jsonl"
