"""The names of `ag2.network.transport.frames`."""

from agent_adapter.network import (
    ErrorFrame as ErrorFrame,
)
from agent_adapter.network import (
    Frame as Frame,
)
from agent_adapter.network import (
    HelloFrame as HelloFrame,
)
from agent_adapter.network import (
    NotifyFrame as NotifyFrame,
)
from agent_adapter.network import (
    PingFrame as PingFrame,
)
from agent_adapter.network import (
    PongFrame as PongFrame,
)
from agent_adapter.network import (
    ReceiptFrame as ReceiptFrame,
)
from agent_adapter.network import (
    RequestFrame as RequestFrame,
)
from agent_adapter.network import (
    ResponseFrame as ResponseFrame,
)
from agent_adapter.network import (
    WelcomeFrame as WelcomeFrame,
)
from agent_adapter.network import (
    decode_frame as decode_frame,
)
from agent_adapter.network import (
    encode_frame as encode_frame,
)
