"""The names of `ag2.network.views`."""

from agent_adapter.network import (
    EnvelopeRenderer as EnvelopeRenderer,
)
from agent_adapter.network import (
    FullTranscript as FullTranscript,
)
from agent_adapter.network import (
    NamedTranscript as NamedTranscript,
)
from agent_adapter.network import (
    NamedWindowedSummary as NamedWindowedSummary,
)
from agent_adapter.network import (
    NameResolver as NameResolver,
)
from agent_adapter.network import (
    ViewPolicy as ViewPolicy,
)
from agent_adapter.network import (
    WindowedSummary as WindowedSummary,
)
from agent_adapter.network import (
    default_name_resolver as default_name_resolver,
)
