"""Names of people in the form in which they are compared."""

from __future__ import annotations

import pytest

from agent_adapter.core.logins import bare, folded


@pytest.mark.parametrize(
    "login",
    [
        "kim",
        "os:kim",
        "token:kim",
        "cli:Kim ",
        "cli:os:kim",
        "KIM",
        " kim\t",
        "k\u200bim",
        "\u202ekim",
        "\uff4b\uff49\uff4d",
        "cli\uff1akim",
        "kim\ufe0f",
        "kim:",
        "\u3164kim\u2800",
    ],
)
def test_names_that_look_the_same_are_the_same(login: str) -> None:
    """T3: case, width, space, invisible characters and the source of the name do not count."""
    assert bare(login) == "kim"


@pytest.mark.parametrize(
    "login", ["", " ", "\u200b", "\u3164", "cli:\u200b", "\u2800 \ufe0f", None]
)
def test_a_name_that_cannot_be_seen_is_none(login: str | None) -> None:
    """Nothing, space and characters that draw nothing."""
    assert bare(login) in ("", "cli")
    assert login is None or login.startswith("cli") or folded(login) == ""


@pytest.mark.parametrize("login", ["kimm", "k.im", "os:lee", "ki m", "kïm"])
def test_other_names_are_others(login: str) -> None:
    """Only what cannot be told apart by eye is folded."""
    assert bare(login) != "kim"
