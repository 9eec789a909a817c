"""`Identity`: identifies a call by the facts that its framework gives."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Position = tuple[str | int, ...]
"""A place in a run, from the outside in: a model message's id and the index of the call in it."""


class Reentry(StrEnum):
    """Why a position may occur again."""

    NEW = "new"
    """It does not occur again: each call is made once."""

    RESUMED = "resumed"
    """A pause, an interrupt, a node's retry or a crash: the same position occurs again."""

    REPLAYED = "replayed"
    """The whole run is repeated as attempt n; this needs positive evidence."""

    RETRIED = "retried"
    """The tool's own retry of the same call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The only key for calls, approvals, labels, limits, cache and runs.

    An integration makes it from facts of its framework; a fact that the framework does not give is
    `None`, never invented.

    Attributes:
        run: one task, from a user's message to the agent's answer, pauses included. Limits,
            denials, cancellation and the ledger's chain belong to it.
        conversation: the dialogue with a user; it has many runs, and labels belong to it.
        tenant: whose data this is; part of every stored key.
        position: where in the run the model asked; `None` if the order of arrival counts.
        anchor: the scope of `position` if it is not the run, such as a provider with response ids
            of its own: the position is then the same in every run.
        reentry: why the position may occur again.
        attempt: the number of this execution of the run, from 1; above 1 only with `REPLAYED`.
    """

    run: str | None = None
    conversation: str | None = None
    tenant: str = ""
    position: Position | None = None
    anchor: str | None = None
    reentry: Reentry = Reentry.NEW
    attempt: int = 1
