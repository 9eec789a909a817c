"""The names of `ag2.network.transport`."""

from agent_adapter.network import (
    LocalLink as LocalLink,
)
