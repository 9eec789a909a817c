"""The names of `ag2.network.channel`."""

from agent_adapter.network import (
    ChannelManifest as ChannelManifest,
)
from agent_adapter.network import (
    ChannelMetadata as ChannelMetadata,
)
from agent_adapter.network import (
    ChannelState as ChannelState,
)
from agent_adapter.network import (
    Expectation as Expectation,
)
from agent_adapter.network import (
    Participant as Participant,
)
from agent_adapter.network import (
    ParticipantRole as ParticipantRole,
)
from agent_adapter.network import (
    ParticipantSchema as ParticipantSchema,
)
