"""`TokenBucket`: limits the rate of events per key."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

_MOST_KEYS = 10_000


class TokenBucket:
    """One bucket of tokens per key: at most `burst` at once, refilled with `per_minute` over time.

    `clock` gives seconds and never goes back. A new key starts with a full bucket. Beyond 10,000
    keys the least recently used one is evicted; its bucket is the most likely to be full.
    """

    def __init__(
        self,
        *,
        burst: float = 1,
        per_minute: float = 60,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._burst = burst
        self._per_minute = per_minute
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(
        self, key: str, *, burst: float | None = None, per_minute: float | None = None
    ) -> float:
        """Take a token; returns 0, or the seconds until there is one.

        `burst` and `per_minute` replace the bucket's own for this key and call.
        """
        now, most = self._clock(), float(self._burst if burst is None else burst)
        per_second = (self._per_minute if per_minute is None else per_minute) / 60
        left, at = self._left.pop(key, (most, now))
        left = min(most, left + (now - at) * per_second)
        taken = left >= 1
        self._left[key] = (left - 1 if taken else left, now)
        if len(self._left) > _MOST_KEYS:
            self._left.popitem(last=False)
        return 0.0 if taken else (1 - left) / per_second

    def forget(self, key: str) -> None:
        """Give this key a full bucket again."""
        self._left.pop(key, None)
