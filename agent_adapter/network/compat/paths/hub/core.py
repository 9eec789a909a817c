"""The names of `ag2.network.hub.core`."""

from agent_adapter.network import (
    Hub as Hub,
)
from agent_adapter.network import (
    PendingTurn as PendingTurn,
)
