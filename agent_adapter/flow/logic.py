"""Static implication and exclusion between conditions.

The answers are conservative: `True` is certain, `False` means unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_adapter.flow.conditions import (
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


def implies(one: TransitionCondition, other: TransitionCondition) -> bool:
    """Whether `other` fires on every turn on which `one` does."""
    if one == other or isinstance(other, Always):
        return True
    if isinstance(other, AllOf):
        return all(implies(one, part) for part in other.conditions)
    if isinstance(one, AnyOf):
        return all(implies(part, other) for part in one.conditions)
    if isinstance(one, AllOf) and any(implies(part, other) for part in one.conditions):
        return True
    if isinstance(other, AnyOf):
        return any(implies(one, part) for part in other.conditions)
    if isinstance(other, Not):
        return disjoint(one, other.condition)
    if isinstance(one, TurnCountAtLeast) and isinstance(other, TurnCountAtLeast):
        return one.turns >= other.turns
    return False


def disjoint(one: TransitionCondition, other: TransitionCondition) -> bool:
    """Whether the two never fire on the same turn."""
    for here, there in ((one, other), (other, one)):
        if isinstance(here, Not) and implies(there, here.condition):
            return True
        if isinstance(here, AllOf) and any(disjoint(part, there) for part in here.conditions):
            return True
        if isinstance(here, AnyOf) and all(disjoint(part, there) for part in here.conditions):
            return True
    if isinstance(one, FromSpeaker) and isinstance(other, FromSpeaker):
        return one.agent_id != other.agent_id
    if isinstance(one, ToolCalled) and isinstance(other, ToolCalled):
        return one.tool_name != other.tool_name
    if isinstance(one, ContextEquals) and isinstance(other, ContextEquals):
        return one.key == other.key and one.value != other.value
    return False


def covered(
    condition: TransitionCondition,
    earlier: Sequence[TransitionCondition],
    speakers: Iterable[str] | None,
) -> bool:
    """Whether one of `earlier` always fires when `condition` does.

    If all possible `speakers` are known, a different one may fire for each speaker.
    """
    if any(implies(condition, other) for other in earlier):
        return True
    if speakers is None:
        return False
    cases = [FromSpeaker(speaker) for speaker in speakers]
    possible = [case for case in cases if not disjoint(case, condition)]
    return bool(possible) and all(
        any(implies(AllOf([case, condition]), other) for other in earlier) for case in possible
    )
