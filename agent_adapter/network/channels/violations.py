"""What an evaluator of expectations finds, and what is done about it, as a program may add them."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.channels.metadata import ChannelMetadata, Expectation


@dataclass(slots=True)
class Violation:
    """An expectation that is not met.

    Attributes:
        expectation: as the channel type declares it.
        violator_ids: the participants who do not meet it; empty if it is about the whole channel.
        detail: what the evaluator says about it, as JSON values.
    """

    expectation: Expectation
    violator_ids: list[str] = field(default_factory=list)
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ExpectationContext:
    """What an evaluator sees of a channel.

    Attributes:
        metadata: the channel's metadata.
        state: its folded state; read-only.
        wal: its whole log.
        now_iso: the time in ISO 8601.
        now_seconds: the time in seconds since the epoch.
    """

    metadata: ChannelMetadata
    state: Any
    wal: Sequence[Envelope]
    now_iso: str
    now_seconds: float


class ExpectationEvaluator(Protocol):
    """Says whether a channel meets the expectations of one `name`, which manifests declare."""

    name: str

    def evaluate(
        self, expectation: Expectation, context: ExpectationContext
    ) -> Violation | Awaitable[Violation | None] | None:
        """The violation that there is now, else `None`; may be a coroutine function.

        Asked at each sweep of expectations, so that its answer must follow from what it is given.
        """
        ...


class ViolationHandler(Protocol):
    """Acts on violations of expectations whose `on_violation` is its `name`."""

    name: str

    def handle(self, hub: Any, channel_id: str, violation: Violation) -> Awaitable[None] | None:
        """Act; may be a coroutine function.

        Called after the violation is recorded. A hub that dies before it returns calls it again,
        so it may see a violation twice, and misses none.
        """
        ...
