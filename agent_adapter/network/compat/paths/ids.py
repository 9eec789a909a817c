"""The names of `ag2.network.ids`."""

from agent_adapter.network import (
    make_id as make_id,
)
from agent_adapter.network import (
    parse_hub_urn as parse_hub_urn,
)
