"""The names of `ag2.network.client.tools`."""

from agent_adapter.network.compat.tools import (
    make_channels_tool as make_channels_tool,
)
from agent_adapter.network.compat.tools import (
    make_context_tool as make_context_tool,
)
from agent_adapter.network.compat.tools import (
    make_delegate_tool as make_delegate_tool,
)
from agent_adapter.network.compat.tools import (
    make_peers_tool as make_peers_tool,
)
from agent_adapter.network.compat.tools import (
    make_say_tool as make_say_tool,
)
from agent_adapter.network.compat.tools import (
    make_tasks_tool as make_tasks_tool,
)
