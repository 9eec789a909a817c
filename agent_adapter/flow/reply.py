"""`Reply`: the result of one round of a participant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_adapter.flow.routing import RoundCall


@dataclass(frozen=True, slots=True)
class Reply:
    """A round's text, and its tool calls in the model's order.

    A round without a text and without a routing call is silent: it takes no turn.
    """

    body: str = ""
    calls: Sequence[RoundCall] = ()
