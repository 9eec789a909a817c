"""The size of a large suite: a fixed sample by default, all of it where `FULL` is set."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

FULL = bool(os.environ.get("FULL"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How much of a suite runs."""

    module: str
    suite: str
    taken: int
    full: int

    def __str__(self) -> str:
        return f"{self.module}: {self.taken:,} of {self.full:,} {self.suite}"


SAMPLES: list[Sample] = []


def sample(suite: str, *, quick: int, full: int) -> int:
    """How many of `suite` the calling test module runs; printed at the end of the run.

    `quick` is what `make test` runs, `full` what `make test-all` runs.
    """
    module = sys._getframe(1).f_globals["__name__"]
    SAMPLES.append(Sample(module=module, suite=suite, taken=full if FULL else quick, full=full))
    return SAMPLES[-1].taken
