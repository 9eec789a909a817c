"""The names of `ag2.network.hub.arbiter`."""

from agent_adapter.network import (
    Allow as Allow,
)
from agent_adapter.network import (
    BaseHubArbiter as BaseHubArbiter,
)
from agent_adapter.network import (
    Decision as Decision,
)
from agent_adapter.network import (
    Deny as Deny,
)
from agent_adapter.network import (
    HubArbiter as HubArbiter,
)
from agent_adapter.network import (
    RuleBasedArbiter as RuleBasedArbiter,
)
