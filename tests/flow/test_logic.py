"""What follows from a condition, told without running it."""

from __future__ import annotations

import pytest

from agent_adapter.flow import (
    AllOf,
    Always,
    AnyOf,
    ContextEquals,
    FromSpeaker,
    Not,
    ToolCalled,
    TransitionCondition,
    TurnCountAtLeast,
)
from agent_adapter.flow.logic import covered, disjoint, implies

A, B, T = FromSpeaker("a"), FromSpeaker("b"), ToolCalled("t")
K1, K2, OTHER = ContextEquals("k", 1), ContextEquals("k", 2), ContextEquals("l", 2)


@pytest.mark.parametrize(
    ("one", "other", "follows"),
    [
        (A, Always(), True),
        (Always(), A, False),
        (A, A, True),
        (AllOf([A, T]), T, True),
        (T, AllOf([A, T]), False),
        (A, AnyOf([B, A]), True),
        (AnyOf([A, B]), A, False),
        (AnyOf([AllOf([A, T]), AllOf([B, T])]), T, True),
        (A, Not(B), True),
        (Not(B), A, False),
        (AllOf([A, T]), AllOf([T, A]), True),
        (TurnCountAtLeast(3), TurnCountAtLeast(2), True),
        (TurnCountAtLeast(2), TurnCountAtLeast(3), False),
        (Not(TurnCountAtLeast(2)), Not(TurnCountAtLeast(3)), True),
    ],
)
def test_what_follows(one: TransitionCondition, other: TransitionCondition, follows: bool) -> None:
    """`implies` says yes where the other fires on each turn on which the first does."""
    assert implies(one, other) is follows


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        (A, B, True),
        (A, T, False),
        (T, ToolCalled("u"), True),
        (K1, K2, True),
        (K1, OTHER, False),
        (A, Not(A), True),
        (AllOf([A, T]), B, True),
        (B, AllOf([A, T]), True),
        (AnyOf([A, T]), B, False),
        (AnyOf([AllOf([A, T]), A]), B, True),
    ],
)
def test_what_excludes(one: TransitionCondition, other: TransitionCondition, apart: bool) -> None:
    """`disjoint` says yes where the two never fire on one turn."""
    assert disjoint(one, other) is apart


def test_all_speakers_together_cover_every_turn() -> None:
    """A rule for each possible speaker leaves nothing; one missing leaves something."""
    assert covered(Always(), [A, B], ["a", "b"])
    assert not covered(Always(), [A, B], ["a", "b", "c"])
    assert not covered(Always(), [A, B], None)
    assert covered(AllOf([A, T]), [A], None)
