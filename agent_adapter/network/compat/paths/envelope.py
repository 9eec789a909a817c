"""The names of `ag2.network.envelope`."""

from agent_adapter.network import (
    EV_CHANNEL_CLOSED as EV_CHANNEL_CLOSED,
)
from agent_adapter.network import (
    EV_CHANNEL_EXPIRED as EV_CHANNEL_EXPIRED,
)
from agent_adapter.network import (
    EV_CHANNEL_INVITE as EV_CHANNEL_INVITE,
)
from agent_adapter.network import (
    EV_CHANNEL_INVITE_ACK as EV_CHANNEL_INVITE_ACK,
)
from agent_adapter.network import (
    EV_CHANNEL_INVITE_REJECT as EV_CHANNEL_INVITE_REJECT,
)
from agent_adapter.network import (
    EV_CHANNEL_OPENED as EV_CHANNEL_OPENED,
)
from agent_adapter.network import (
    EV_CONTEXT_SET as EV_CONTEXT_SET,
)
from agent_adapter.network import (
    EV_EXPECTATION_VIOLATED as EV_EXPECTATION_VIOLATED,
)
from agent_adapter.network import (
    EV_PACKET as EV_PACKET,
)
from agent_adapter.network import (
    EV_TASK_CANCEL_REQUEST as EV_TASK_CANCEL_REQUEST,
)
from agent_adapter.network import (
    EV_TASK_CANCELLED as EV_TASK_CANCELLED,
)
from agent_adapter.network import (
    EV_TEXT as EV_TEXT,
)
from agent_adapter.network import (
    Envelope as Envelope,
)
from agent_adapter.network import (
    Priority as Priority,
)
from agent_adapter.network import (
    visible_to as visible_to,
)
