"""The names of `ag2.network.client.inject`."""

from agent_adapter.network import (
    AgentClientInject as AgentClientInject,
)
from agent_adapter.network import (
    ChannelInject as ChannelInject,
)
from agent_adapter.network import (
    ChannelStateInject as ChannelStateInject,
)
from agent_adapter.network import (
    HubInject as HubInject,
)
from agent_adapter.network import (
    TaskInject as TaskInject,
)
