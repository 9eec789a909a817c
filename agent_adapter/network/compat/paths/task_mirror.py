"""The names of `ag2.network.task_mirror`."""

from agent_adapter.network import (
    TaskMirror as TaskMirror,
)
