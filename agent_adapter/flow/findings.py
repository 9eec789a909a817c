"""`Finding`: one mistake seen in a graph before it runs; `ChannelFacts`: what else is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
"""`error`: opening a channel refuses the graph; `warning`: rarely meant; `info`: worth knowing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One mistake, or likely mistake, of a graph.

    Attributes:
        code: which mistake, kebab-case, stable.
        severity: see `Severity`.
        message: what happens because of it.
        where: the place, as `transitions[2].then`.
        fix: what to do about it.
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
    """What is known about the channel a graph is for; whatever is left out is not checked.

    Attributes:
        participants: their ids, in the channel's order.
        names: the name of each id.
        opener: the id of the participant that opens the channel and sends first.
        people: ids of those who are no agents: no model is left out when they speak first.
        privileged: ids of participants that not everybody may call upon.
        context_acl: key patterns, and the names that may change such keys.
        context_vars: the variables that the channel opens with.
    """

    participants: Sequence[str] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    opener: str | None = None
    people: frozenset[str] = frozenset()
    privileged: frozenset[str] = frozenset()
    context_acl: Mapping[str, Sequence[str]] = field(default_factory=dict)
    context_vars: Mapping[str, Any] = field(default_factory=dict)
