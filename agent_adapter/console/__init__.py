"""The web console: people decide approvals, watch runs and resolve failures."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_adapter.console.app import create_app as create_app
    from agent_adapter.console.settings import TrustedProxy as TrustedProxy
else:
    from agent_adapter.core.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
