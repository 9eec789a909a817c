"""One line of the report: what was measured, against what, and whether the goal is met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.measure import Sample

__all__ = ["Row", "Skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`ratio` is ours over theirs; a goal is met at or below `limit`, or at or above `floor`.

    A row with neither is information. `per_second` rows show calls per second, not time per call.
    """

    id: str
    what: str
    ours: Sample
    against: Sample
    limit: float | None = None
    floor: float | None = None
    per_second: bool = False
    note: str = ""

    @property
    def ratio(self) -> float:
        """Ours over theirs, in the unit that is shown."""
        ratio = self.ours.median / self.against.median
        return 1 / ratio if self.per_second else ratio

    @property
    def goal(self) -> str:
        """The goal as a person reads it."""
        if self.limit is not None:
            return f"≤ {self.limit:g}x"
        if self.floor is not None:
            return f"≥ {self.floor:g}x"
        return "-"

    @property
    def verdict(self) -> str:
        """`met`, `missed`, or `info` where there is no goal."""
        if self.limit is not None:
            return "met" if self.ratio <= self.limit else "missed"
        if self.floor is not None:
            return "met" if self.ratio >= self.floor else "missed"
        return "info"

    def to_json(self) -> dict[str, Any]:
        """The row as JSON values, times in seconds per call."""
        return {
            "id": self.id,
            "what": self.what,
            "ours": _sample_json(self.ours),
            "against": _sample_json(self.against),
            "ratio": self.ratio,
            "goal": self.goal,
            "verdict": self.verdict,
            "per_second": self.per_second,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A benchmark that did not run, and why."""

    id: str
    what: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        return {"id": self.id, "what": self.what, "verdict": "skipped", "reason": self.reason}


def _sample_json(sample: Sample) -> dict[str, Any]:
    low, high = sample.quartiles
    return {
        "name": sample.name,
        "median": sample.median,
        "quartiles": [low, high],
        "batches": list(sample.seconds),
    }
