"""What a model reads of each ending."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.answers import answer_data, answer_text, told
from agent_adapter.core.result_parts import parts_of


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            aa.ApprovalDenied("pay was denied by ann: too much"),
            ("denied by ann", "too much", "did not run", "do not ask for it again in this run"),
        ),
        (
            aa.ApprovalExpired("approval apr_1 of pay expired"),
            ("expired", "did not run", "do not ask for it again in this run"),
        ),
        (
            aa.ApprovalWithdrawn("the question about pay was withdrawn: the tab was closed"),
            ("withdrawn", "the tab was closed", "do not ask for it again in this run"),
        ),
        (aa.ApprovalPending("apr_1"), ("approval required: apr_1", "person is asked", "nothing")),
        (aa.ToolInDoubt("pay timed out"), ("may have happened", "do not repeat it")),
        (aa.ToolArgsIncomplete("pay", "length"), ("was not run", "send the whole call again")),
    ],
)
def test_each_ending_is_told(error: Any, said: tuple[str, ...]) -> None:
    """C15: the message says how the call ended and what follows for the model."""
    found = answer_data(error=error)["error"]
    assert found["kind"] == error.kind
    assert [part for part in said if part not in found["message"]] == []
    assert json.loads(answer_text(error=error)) == {"error": found}
    assert aa.model_visible_error(error) == {"error": found}


def test_an_error_for_the_program_shows_its_class() -> None:
    """Its text may hold what a model must not see."""
    for error in (aa.StoreError("/secret/path"), ValueError("secret")):
        assert answer_data(error=error)["error"]["message"] == type(error).__name__


def test_edits_come_with_the_result() -> None:
    """The arguments that ran, that a person changed them, then the result."""
    found = answer_data(told("paid", {"amount": 1}))
    assert "a person changed the arguments" in found["note"]
    assert (found["arguments"], found["result"]) == ({"amount": 1}, "paid")
    assert list(found) == ["note", "arguments", "result"]


def test_edits_come_before_parts() -> None:
    """A result with images keeps them, behind a line that says the same."""
    image = aa.Image(b"png", media_type="image/png")
    note, *rest = parts_of(told(image, {"amount": 1}))
    assert isinstance(note, aa.Text) and 'it ran with {"amount": 1}' in note.text
    assert rest == [image]


def test_without_edits_a_result_is_itself() -> None:
    """Nothing is added, and a routing value routes whatever was changed."""
    value, end = {"a": 1}, aa.Finish("done")
    assert told(value, None) is value
    assert told(end, {"amount": 1}) is end


def test_an_error_after_edits_tells_of_them() -> None:
    """The message names the arguments that ran; the error survives pickling."""
    error = aa.ToolFailed("pay failed: OSError")
    error.edited = {"amount": 1}
    again = pickle.loads(pickle.dumps(error))
    assert 'it was made with {"amount": 1}' in answer_data(error=again)["error"]["message"]
