"""Identity records of participants: `Passport` (who it is) and `Resume` (what it can do)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from agent_adapter.core.errors import ProtocolError
from agent_adapter.core.records import Record

PassportKind = Literal["agent", "human", "remote_agent"]
"""The kind of a participant: an agent, a person, or a participant of another hub."""

PASSPORT_KINDS: tuple[str, ...] = get_args(PassportKind)
"""All values of `PassportKind`."""

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class CostProfile(Record):
    """What a participant costs: information for choosing among several, not a limit."""

    input_per_mtok: float | None = None
    output_per_mtok: float | None = None
    latency_tier: str | None = None


@dataclass(frozen=True, slots=True)
class AuthBlock(Record):
    """How a participant proves who it is: `claim` is checked by the hub's adapter of `scheme`.

    `claim` is never stored. The scheme is: whoever registers the name again needs the same one. For
    a `remote_agent` the scheme names the `RemoteAgentProxy` that delivers to it.
    """

    scheme: str = "none"
    issuer: str | None = None
    audience: str | None = None
    key_fingerprint: str | None = None
    claim: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Passport(Record):
    """The immutable identity record of a participant, unique by `name` within a hub.

    Attributes:
        name: its address for people, models and `Handoff.target`.
        owner: who is responsible for it.
        provider: the provider of its model.
        model: its model.
        cost: its prices.
        region: where it runs.
        auth: see `AuthBlock`.
        kind: see `PassportKind`; `None` means `"agent"`.
        hub_id: the hub it belongs to; a hub registers only `None`, which means itself.
        version: the version of the record.
        agent_id: its id, assigned by the hub at registration.
        created_at: ISO 8601 in UTC, set by the hub.
    """

    name: str
    owner: str = ""
    provider: str | None = None
    model: str | None = None
    cost: CostProfile | None = None
    region: str | None = None
    auth: AuthBlock = field(default_factory=AuthBlock)
    kind: PassportKind | None = None
    hub_id: str | None = None
    version: int = 1
    agent_id: str | None = None
    created_at: str = ""

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.kind is not None and self.kind not in PASSPORT_KINDS:
            known = ", ".join(map(repr, PASSPORT_KINDS))
            raise ValueError(f"Passport.kind must be one of {known} or None, not {self.kind!r}")

    @property
    def effective_kind(self) -> PassportKind:
        """`kind`, with `None` read as `"agent"`."""
        return self.kind or "agent"

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON, without what `auth.claim` holds."""
        data = Record.to_dict(self)  # a slotted dataclass has no super() without arguments
        data["auth"]["claim"] = {}
        return data


@dataclass(frozen=True, slots=True)
class ResumeExample(Record):
    """An example of completed work."""

    title: str
    outcome: str = ""
    task_id: str | None = None
    channel_id: str | None = None
    when: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class ObservedStat(Record):
    """A hub's record of one capability: the number of tasks and how they ended."""

    n: int = 0
    completed: int = 0
    failed: int = 0
    expired: int = 0
    p50_latency_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Resume(Record):
    """What a participant claims to do, and the hub's record of it.

    Attributes:
        claimed_capabilities: names of its capabilities.
        domains: its subject areas.
        summary: one line, searched by `peers(action="find")`.
        examples: completed work.
        observed: the hub's record per capability.
        version: incremented by every change.
        last_updated: ISO 8601 in UTC, set by the hub.
    """

    claimed_capabilities: list[str] = field(default_factory=list)
    domains: list[str] = field(default_factory=list)
    summary: str = ""
    examples: list[ResumeExample] = field(default_factory=list)
    observed: dict[str, ObservedStat] = field(default_factory=dict)
    version: int = 1
    last_updated: str = ""


@dataclass(slots=True)
class AgentRuntime:
    """Where a participant is reached; kept for programs that store such records themselves."""

    agent_id: str
    binding: str
    target: str
    reachable: bool
    last_heartbeat: str


def check_enforced(passport: Passport) -> None:
    """Raises `ProtocolError` for a Passport that asks for what no hub does."""
    if passport.hub_id is not None and passport.effective_kind != "remote_agent":
        raise ProtocolError(
            f"{passport.name} belongs to the hub {passport.hub_id!r:.80}, and hubs are not "
            "connected to each other; leave out Passport.hub_id, or register it there"
        )


def check_name(name: str) -> None:
    """Raises `ValueError` for a name that is empty, too long, or has unprintable characters."""
    if not name or name != name.strip():
        raise ValueError(f"Passport.name is text without blanks around it, not {name!r:.80}")
    if len(name) > _LONGEST_NAME:
        raise ValueError(f"Passport.name has {len(name)} characters, the limit is {_LONGEST_NAME}")
    if not name.isprintable():
        raise ValueError(f"Passport.name {name!r:.80} has a character that cannot be shown")
