"""What one round of a participant gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_adapter.flow.routing import RoundCall


@dataclass(frozen=True, slots=True)
class Reply:
    """A round's text, and its tool calls in the model's order.

    Without a text and without a call that routes the round is silent: it uses up no turn.
    """

    body: str = ""
    calls: Sequence[RoundCall] = ()
