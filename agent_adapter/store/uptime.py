"""How long the machine has been running, which no change of its clock touches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Uptime:
    """How long the machine has been running, and which start of it that was."""

    seconds: Callable[[], float]
    boot: str

    @classmethod
    def beside(cls, clock: Callable[[], float]) -> Uptime:
        """The one that belongs to the clock; a clock of the program's own is its own measure."""
        if clock is not time.time:
            own = getattr(clock, "boot", "the program's own clock")
            return cls(getattr(clock, "uptime", clock), own)
        return cls(_since_boot, _boot_id())


def _since_boot() -> float:
    # A machine that sleeps goes on counting here, where the system says so.
    which = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if which is None else time.clock_gettime(which)


@lru_cache(maxsize=1)
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""  # nothing is known of how long the machine has been running
