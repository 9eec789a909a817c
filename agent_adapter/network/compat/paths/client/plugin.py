"""The names of `ag2.network.client.plugin`."""

from agent_adapter.network import (
    NetworkContextPolicy as NetworkContextPolicy,
)
from agent_adapter.network import (
    NetworkPlugin as NetworkPlugin,
)
