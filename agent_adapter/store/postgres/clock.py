"""The server's time, which all machines share."""

from __future__ import annotations

import time
from collections.abc import Callable

from agent_adapter.core.ports import Clock


class ServerClock:
    """This machine's clock, set by the server's; a clock of the program's own is left as it is."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = 0.0
        self.is_own = clock is not time.time

    def __call__(self) -> float:
        """Seconds since the epoch."""
        return self._clock() + self._ahead

    def set(self, server: float) -> None:
        """The server has just said what time it is."""
        if not self.is_own:
            self._ahead = server - self._clock()

    @property
    def base(self) -> Callable[[], float]:
        """The clock as it was given."""
        return self._clock
