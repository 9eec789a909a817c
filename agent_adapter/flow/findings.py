"""`Finding`: a mistake in a graph; `ChannelFacts`: the channel that the graph is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
"""`error`: no channel opens with it; `warning`: probably a mistake; `info`: worth knowing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A mistake, or likely mistake, in a graph.

    Attributes:
        code: the kind of mistake, kebab-case, stable.
        severity: see `Severity`.
        message: its consequence.
        where: the place, as `transitions[2].then`.
        fix: how to correct it.
    """

    code: str
    severity: Severity
    message: str
    where: str
    fix: str

    def __str__(self) -> str:
        return f"{self.severity} {self.code} at {self.where}: {self.message}. Fix: {self.fix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFacts:
    """Facts about the channel of a graph; checks that need a missing fact are skipped.

    Attributes:
        participants: their ids, in the channel's order.
        names: the name of each id.
        opener: the id of the participant who opens the channel and sends first.
        people: ids of participants without a model.
        privileged: ids of participants that not everybody may give a turn to.
        context_acl: key patterns and the names that may change matching keys.
        context_vars: the initial variables.
        unbounded: whether the opener says that the channel may run for ever.
    """

    participants: Sequence[str] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    opener: str | None = None
    people: frozenset[str] = frozenset()
    privileged: frozenset[str] = frozenset()
    context_acl: Mapping[str, Sequence[str]] = field(default_factory=dict)
    context_vars: Mapping[str, Any] = field(default_factory=dict)
    unbounded: bool = False
