"""The hub of a store. `Hub` is imported on first use: importing one of its parts loads no hub."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_adapter.network.hub.admission import (
        Allow as Allow,
    )
    from agent_adapter.network.hub.admission import (
        Decision as Decision,
    )
    from agent_adapter.network.hub.admission import (
        Deny as Deny,
    )
    from agent_adapter.network.hub.admission import (
        RuleBasedArbiter as RuleBasedArbiter,
    )
    from agent_adapter.network.hub.audit import AuditLog as AuditLog
    from agent_adapter.network.hub.hub import Hub as Hub
    from agent_adapter.network.turns.turn_types import PendingTurn as PendingTurn
else:
    from agent_adapter.core.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
