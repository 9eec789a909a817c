"""The names of `ag2.network.transport.local`."""

from agent_adapter.network import (
    LocalLink as LocalLink,
)
