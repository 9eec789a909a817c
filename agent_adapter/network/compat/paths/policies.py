"""The names of `ag2.network.policies`."""

from agent_adapter.network import (
    AGENT_CLIENT_DEP as AGENT_CLIENT_DEP,
)
from agent_adapter.network import (
    CHANNEL_DEP as CHANNEL_DEP,
)
from agent_adapter.network import (
    CHANNEL_STATE_DEP as CHANNEL_STATE_DEP,
)
from agent_adapter.network import (
    HUB_DEP as HUB_DEP,
)
from agent_adapter.network import (
    TASK_DEP as TASK_DEP,
)
