"""The names of `ag2.network.handoff`."""

from agent_adapter.network import (
    Finish as Finish,
)
from agent_adapter.network import (
    Handoff as Handoff,
)
