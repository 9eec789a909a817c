"""The settings of a console."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.exec.approval.signing import ReviewerKey
from agent_adapter.store.base import Store
from agent_adapter.store.people import ROLES

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The host names of the same machine."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedProxy:
    """A proxy in front of the console that authenticates people, or only forwards requests.

    Attempts to sign in are counted for the address that it puts at the end of `X-Forwarded-For`.

    Attributes:
        peers: the addresses of the proxy; its headers are ignored from any other address.
        header: the header with the person's name.
        roles: the role of each name.
        role: the role of every other name; `None` refuses them.
    """

    peers: Collection[str]
    header: str = "X-Forwarded-User"
    roles: Mapping[str, str] = field(default_factory=dict)
    role: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.peers, str) or not self.peers:
            raise AgentAdapterError(
                "TrustedProxy.peers needs the proxy's addresses, such as ['127.0.0.1']: the header"
                " from any other address could be forged"
            )
        for role in (*self.roles.values(), *([self.role] if self.role is not None else [])):
            if role not in ROLES:
                raise AgentAdapterError(f"no role {role!r}; there are {', '.join(ROLES)}")

    def role_of(self, name: str) -> str | None:
        """The role of that name; `None` if it may not sign in."""
        return self.roles.get(name, self.role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """See `create_app`; `only` is the one tenant that is shown, `tenant` that of a request."""

    store: Store
    registry: ToolRegistry | None
    only: str | None
    hosts: frozenset[str]
    proxy: TrustedProxy | None
    keys: Path | None
    https: bool | None
    per_minute: int
    undo_window: float = 5.0
    tenant: str = ""

    def key_of(self, name: str) -> ReviewerKey | None:
        """The signing key of that reviewer; `None` if there is none."""
        if self.keys is None or not is_name(name):
            return None
        file = self.keys / f"{name}.key"
        return ReviewerKey.read(file) if file.is_file() else None


def is_name(text: str) -> bool:
    """Whether `text` is a valid name of a person."""
    return _NAME.fullmatch(text) is not None
