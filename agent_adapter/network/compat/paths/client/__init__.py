"""The names of `ag2.network.client`."""

from agent_adapter.network import (
    AgentClient as AgentClient,
)
from agent_adapter.network import (
    AgentClientInject as AgentClientInject,
)
from agent_adapter.network import (
    Channel as Channel,
)
from agent_adapter.network import (
    ChannelInject as ChannelInject,
)
from agent_adapter.network import (
    ChannelStateInject as ChannelStateInject,
)
from agent_adapter.network import (
    ClientTask as ClientTask,
)
from agent_adapter.network import (
    HubBackedCheckpointStore as HubBackedCheckpointStore,
)
from agent_adapter.network import (
    HubClient as HubClient,
)
from agent_adapter.network import (
    HubInject as HubInject,
)
from agent_adapter.network import (
    HumanClient as HumanClient,
)
from agent_adapter.network import (
    NetworkClient as NetworkClient,
)
from agent_adapter.network import (
    NetworkContextPolicy as NetworkContextPolicy,
)
from agent_adapter.network import (
    NetworkPlugin as NetworkPlugin,
)
from agent_adapter.network import (
    ParsedSkill as ParsedSkill,
)
from agent_adapter.network import (
    TaskInject as TaskInject,
)
from agent_adapter.network import (
    default_handler as default_handler,
)
from agent_adapter.network import (
    parse_skill_frontmatter as parse_skill_frontmatter,
)
from agent_adapter.network import (
    read_wal_until as read_wal_until,
)
from agent_adapter.network import (
    render_fallback_skill as render_fallback_skill,
)
from agent_adapter.network import (
    resolve_view_policy as resolve_view_policy,
)
from agent_adapter.network import (
    stamp_dependencies as stamp_dependencies,
)
