"""Times contenders in turns, so that what disturbs the machine disturbs all of them."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

__all__ = ["Batch", "Sample", "in_turns"]

Batch = Callable[[int], Awaitable[float]]
"""Makes `n` calls and gives the seconds they took; what prepares them is not timed."""

WARM_UP_ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Seconds per call, one value per batch."""

    name: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle batch."""
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The spread: a quarter of the batches lies below the first, a quarter above the second."""
        if len(self.seconds) < 2:
            return self.median, self.median
        first, _, third = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return first, third


async def in_turns(contenders: Mapping[str, Batch], *, rounds: int, calls: int) -> list[Sample]:
    """`rounds` batches of `calls` calls of each contender, one contender after the other.

    The order turns by one place each round; the first rounds warm up and are not kept.
    """
    names = list(contenders)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    for round_number in range(rounds + WARM_UP_ROUNDS):
        shift = round_number % len(names)
        for name in names[shift:] + names[:shift]:
            spent = await contenders[name](calls)
            if round_number >= WARM_UP_ROUNDS:
                seconds[name].append(spent / calls)
    return [Sample(name=name, seconds=tuple(seconds[name])) for name in names]
