"""The keys under which AG2's tools find what a turn offers."""

from __future__ import annotations

CHANNEL_DEP = "ag2.network.channel"
"""The turn's channel."""

CHANNEL_STATE_DEP = "ag2.network.channel_state"
"""The folded state of the turn's channel."""

AGENT_CLIENT_DEP = "ag2.network.agent_client"
"""The participant whose turn it is."""

HUB_DEP = "ag2.network.hub"
"""The `HubClient` that the participant was registered with."""

TASK_DEP = "ag2.task"
"""The running task of `agent.task(...)`; AG2 itself sets it."""
