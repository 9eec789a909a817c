"""How often somebody may ask: a bucket of tokens each, refilled over time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["Rates"]

_MOST = 10_000


class Rates:
    """At most `burst` at once and `per_minute` over time, for each key; new keys are kept."""

    def __init__(
        self, *, burst: int, per_minute: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._burst = float(burst)
        self._per_second = per_minute / 60.0
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, key: str) -> float:
        """Take one; 0 where it was there, else the seconds until there is one again."""
        now = self._clock()
        left, at = self._left.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_second)
        seconds = 0.0 if left >= 1 else (1 - left) / self._per_second
        self._left[key] = (left - 1 if left >= 1 else left, now)
        while len(self._left) > _MOST:
            self._left.popitem(last=False)
        return seconds

    def forget(self, key: str) -> None:
        """Begin anew for this key."""
        self._left.pop(key, None)
