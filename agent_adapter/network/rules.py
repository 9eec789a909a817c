"""`Rule`: the permissions and limits of a participant, enforced by the hub."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_adapter.core.records import Record

_TTL_DEFAULT = "2h"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _everything() -> list[str]:
    return ["*"]


@dataclass(frozen=True, slots=True)
class ChannelTypeAccess(Record):
    """The channel types that a participant may open or be invited to, as globs."""

    initiate: list[str] = field(default_factory=_everything)
    accept: list[str] = field(default_factory=_everything)


@dataclass(frozen=True, slots=True)
class AccessBlock(Record):
    """Whom a participant receives from and sends to, and its channel types, as globs."""

    inbound_from: list[str] = field(default_factory=_everything)
    outbound_to: list[str] = field(default_factory=_everything)
    channel_types: ChannelTypeAccess = field(default_factory=ChannelTypeAccess)


@dataclass(frozen=True, slots=True)
class RateBlock(Record):
    """The messages that a participant may send per minute; 0 is no limit.

    `burst` is the most at once; 0 means `per_minute`. The packet of a turn does not count: the hub
    asked for it.
    """

    per_minute: int = 0
    burst: int = 0


@dataclass(frozen=True, slots=True)
class InboxBlock(Record):
    """The limit of undelivered messages of others; a sender beyond it gets `InboxFull`.

    For people the default is no limit: what they have not read is in the log, and stops nobody. One
    of their own holds while a program of theirs is connected that does not take its messages.

    Attributes:
        max_pending: the most undelivered messages; 0 is no limit.
        overflow: `"reject"`, the only value: an accepted message is never dropped.
        high_water: the number from which the hub reports pressure; `None` is 80 %, 0 is never.
    """

    max_pending: int = 1000
    overflow: str = "reject"
    high_water: int | None = None

    def __post_init__(self) -> None:
        if self.overflow != "reject":
            raise ValueError(
                f"InboxBlock.overflow is 'reject', not {self.overflow!r}: a message that was "
                "accepted is never dropped"
            )

    def pressure_at(self) -> int:
        """The number of waiting messages from which there is pressure; 0 is never."""
        if self.high_water is not None:
            return self.high_water
        return max(1, self.max_pending * 4 // 5) if self.max_pending > 0 else 0


@dataclass(frozen=True, slots=True)
class LimitsBlock(Record):
    """The limits of a participant; 0 is no limit, durations are written as `"2h"`."""

    max_concurrent_channels: int = 0
    max_concurrent_tasks: int = 0
    channel_ttl_default: str | int = _TTL_DEFAULT
    task_ttl_default: str | int = "15m"
    rate: RateBlock = field(default_factory=RateBlock)
    delegation_depth: int = 5
    inbox: InboxBlock = field(default_factory=InboxBlock)

    def __post_init__(self) -> None:
        parse_duration(self.channel_ttl_default)
        parse_duration(self.task_ttl_default)


@dataclass(frozen=True, slots=True)
class Rule(Record):
    """What a participant may do; the default allows everybody and everything, within limits.

    `privileged` marks one whose tools not everybody may set off: a workflow channel with it opens
    only if `knobs["context_acl"]` names the writers of every variable that decides whether it gets
    the turn.
    """

    version: int = 1
    access: AccessBlock = field(default_factory=AccessBlock)
    limits: LimitsBlock = field(default_factory=LimitsBlock)
    privileged: bool = False


def life_span(limits: LimitsBlock, channel_type: str) -> str | int:
    """How long channels of that type live that a participant opens; 0 is for ever.

    A workflow lives for ever unless the rule says something else than the default.
    """
    of_rule = limits.channel_ttl_default
    return 0 if channel_type == "workflow" and of_rule == _TTL_DEFAULT else of_rule


def parse_duration(text: str | int) -> int:
    """Seconds of `"30s"`, `"15m"`, `"2h"`, `"1d"`, `"90"` or a whole number; `""` is 0."""
    if isinstance(text, int) and not isinstance(text, bool):
        seconds, known = text, True
    else:
        seconds, known = _seconds(str(text).strip())
    if not known or seconds < 0:
        raise ValueError(f"a duration is written as 30s, 15m, 2h, 1d or in seconds, not {text!r}")
    return seconds


def _seconds(text: str) -> tuple[int, bool]:
    if not text:
        return 0, True
    unit = _UNITS.get(text[-1])
    number = text if unit is None else text[:-1]
    if not (number.isascii() and number.isdigit()):
        return 0, False
    return int(number) * (unit or 1), True
