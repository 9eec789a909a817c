"""The names of `ag2.network.rule`."""

from agent_adapter.network import (
    AccessBlock as AccessBlock,
)
from agent_adapter.network import (
    ChannelTypeAccess as ChannelTypeAccess,
)
from agent_adapter.network import (
    InboxBlock as InboxBlock,
)
from agent_adapter.network import (
    LimitsBlock as LimitsBlock,
)
from agent_adapter.network import (
    RateBlock as RateBlock,
)
from agent_adapter.network import (
    Rule as Rule,
)
from agent_adapter.network import (
    parse_duration as parse_duration,
)
