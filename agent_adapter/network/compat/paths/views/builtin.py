"""The names of `ag2.network.views.builtin`."""

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
    WindowedSummary as WindowedSummary,
)
