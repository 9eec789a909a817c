"""What a console is set up with."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.exec.approval.signing import ReviewerKey
from agent_adapter.store.access import ROLES

if TYPE_CHECKING:
    from agent_adapter.core.registry import ToolRegistry
    from agent_adapter.store.base import Store

__all__ = ["LOOPBACK", "Settings", "TrustedProxy", "is_name"]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The names under which a browser on the same machine reaches the console."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedProxy:
    """A proxy in front of the console that has already asked people who they are.

    Attributes:
        peers: the addresses that the proxy connects from; from any other the header is ignored.
        header: the header in which it puts the name.
        roles: the role of each name.
        role: the role of every other name; `None` lets nobody else in.
    """

    peers: Collection[str]
    header: str = "X-Forwarded-User"
    roles: Mapping[str, str] = field(default_factory=dict)
    role: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.peers, str) or not self.peers:
            raise AgentAdapterError(
                "TrustedProxy.peers lists the proxy's addresses, such as ['127.0.0.1']: whoever"
                " else sends the header must not be believed"
            )
        for role in (*self.roles.values(), *([self.role] if self.role is not None else [])):
            if role not in ROLES:
                raise AgentAdapterError(f"no role {role!r}; there are {', '.join(ROLES)}")

    def role_of(self, name: str) -> str | None:
        """What somebody of that name may do; `None` for nothing."""
        return self.roles.get(name, self.role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """See `create_app`."""

    store: Store
    registry: ToolRegistry | None
    tenant: str
    hosts: frozenset[str]
    proxy: TrustedProxy | None
    keys: Path | None
    https: bool | None
    per_minute: int

    def key_of(self, name: str) -> ReviewerKey | None:
        """The key that signs for the reviewer of that name; `None` where there is none."""
        if self.keys is None or not is_name(name):
            return None
        file = self.keys / f"{name}.key"
        return ReviewerKey.read(file) if file.is_file() else None


def is_name(text: str) -> bool:
    """Whether it can be the name of a person here."""
    return _NAME.fullmatch(text) is not None
