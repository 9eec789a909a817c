"""What an executor refuses to be made of."""

from __future__ import annotations

from typing import Any

import pytest

import agent_adapter as aa


def reviewer(request: aa.ApprovalRequest) -> bool:
    """A reviewer, which is no port."""
    return True


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"approval": reviewer},
            "approval must be an ApprovalPort, not function; "
            "wrap a reviewer function in CallbackApproval(...)",
        ),
        (
            {"store": "sqlite:///state.db"},
            "store must be a Store, not str; open one with open_store(url)",
        ),
        (
            {"limits": {"max_calls": 5}},
            "limits must be RunLimits, not dict; write RunLimits(max_calls=...)",
        ),
        (
            {"registry": [reviewer]},
            "registry must be a ToolRegistry, not list; put the tools into one",
        ),
        (
            {"hooks": [reviewer]},
            "hooks must be objects with before(call) or after(call, result), not function",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_part_of_another_kind_is_refused_at_once(parts: dict[str, Any], said: str) -> None:
    """The error names the part, what it must be, what it is and the fix."""
    with pytest.raises(TypeError) as caught:
        aa.Executor(**parts)
    assert str(caught.value) == f"Executor: {said}"
