"""The names of `ag2.network.views.base`."""

from agent_adapter.network import (
    EnvelopeRenderer as EnvelopeRenderer,
)
from agent_adapter.network import (
    NameResolver as NameResolver,
)
from agent_adapter.network import (
    ViewPolicy as ViewPolicy,
)
from agent_adapter.network import (
    default_name_resolver as default_name_resolver,
)
