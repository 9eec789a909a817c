"""The names of `ag2.network.client.handlers`."""

from agent_adapter.network import (
    default_handler as default_handler,
)
from agent_adapter.network import (
    read_wal_until as read_wal_until,
)
from agent_adapter.network import (
    resolve_view_policy as resolve_view_policy,
)
from agent_adapter.network import (
    stamp_dependencies as stamp_dependencies,
)
