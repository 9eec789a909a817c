"""Contenders are timed in turns and compared by their medians."""

from __future__ import annotations

import pytest

from benchmarks.measure import WARM_UP_ROUNDS, Sample, in_turns
from benchmarks.row import Row

pytestmark = pytest.mark.anyio


async def test_contenders_take_turns_and_warm_up_is_dropped() -> None:
    """Each round runs every contender once, and the first rounds are not kept."""
    seen: list[str] = []

    def contender(name: str, seconds: float):  # type: ignore[no-untyped-def]  # a local factory
        async def batch(calls: int) -> float:
            seen.append(name)
            return seconds * calls

        return batch

    samples = await in_turns(
        {"a": contender("a", 1.0), "b": contender("b", 2.0)}, rounds=2, calls=5
    )
    assert [sample.seconds for sample in samples] == [(1.0, 1.0), (2.0, 2.0)]
    assert seen[:4] == ["a", "b", "b", "a"]
    assert len(seen) == 2 * (2 + WARM_UP_ROUNDS)


def _row(ours: float, against: float, **goal: float) -> Row:
    return Row(
        id="P0",
        what="a test",
        ours=Sample(name="ours", seconds=(ours,)),
        against=Sample(name="against", seconds=(against,)),
        per_second="floor" in goal,
        **goal,  # type: ignore[arg-type]  # floats by name
    )


def test_row_is_met_at_its_limit() -> None:
    """A goal of a ratio is met at the limit and missed above it."""
    assert _row(4.0, 1.0, limit=4).verdict == "met"
    assert _row(4.1, 1.0, limit=4).verdict == "missed"


def test_rate_row_compares_calls_per_second() -> None:
    """A row of calls per second has the ratio of the rates, and a floor."""
    row = _row(1.0, 2.0, floor=2)
    assert (row.ratio, row.verdict) == (2.0, "met")


def test_row_without_a_goal_is_information() -> None:
    """A row without a goal has no verdict."""
    assert _row(1.0, 2.0).verdict == "info"
