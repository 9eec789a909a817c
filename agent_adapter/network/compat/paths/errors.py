"""The names of `ag2.network.errors`."""

from agent_adapter.network import (
    AccessDeniedError as AccessDeniedError,
)
from agent_adapter.network import (
    AuthError as AuthError,
)
from agent_adapter.network import (
    InboxFull as InboxFull,
)
from agent_adapter.network import (
    NetworkError as NetworkError,
)
from agent_adapter.network import (
    NotFoundError as NotFoundError,
)
from agent_adapter.network import (
    ProtocolError as ProtocolError,
)
