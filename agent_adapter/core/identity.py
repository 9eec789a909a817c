"""`Identity`: which call a call is, as far as its framework says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Position = tuple[str | int, ...]
"""A place in a run, from the outside in: a model message's id and the index of the call in it."""


class Reentry(StrEnum):
    """Why a position may come again."""

    NEW = "new"
    """It does not: each call is made once."""

    RESUMED = "resumed"
    """A pause, an interrupt, a node's retry or a crash: the same position comes again."""

    REPLAYED = "replayed"
    """The whole run is made again as attempt n; needs positive evidence, never mere absence."""

    RETRIED = "retried"
    """The tool's own retry: the same call, tried again inside itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The only key for calls, approvals, labels, limits, cache and runs.

    An integration makes it from what its framework really has; what the framework does not give
    is `None`, never invented.

    Attributes:
        run: one task, from a user's message to the agent's answer, pauses included. Limits,
            denials, cancellation and the ledger's chain belong to it.
        conversation: the dialogue with a user; it has many runs, and labels belong to it.
        tenant: whose data this is; part of every stored key.
        position: where in the run the model asked; `None` where calls are told apart by arrival.
        anchor: what `position` is a place in where it says more than the run, such as a provider
            whose response ids are its own: the place is then the same however the run is found.
        reentry: why the position may come again.
        attempt: which making of the run this is, from 1; above 1 only with `REPLAYED`.
    """

    run: str | None = None
    conversation: str | None = None
    tenant: str = ""
    position: Position | None = None
    anchor: str | None = None
    reentry: Reentry = Reentry.NEW
    attempt: int = 1
