"""Any foreign name is kept apart from every other, in letters that every provider accepts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_adapter.core.names import NAME_PATTERN, aliases, fitting_name, fitting_names


@pytest.mark.parametrize(
    ("name", "fitting"),
    [("look", "look"), ("files.read", "files_read"), ("1st", "_1st"), ("a b", "a_b")],
)
def test_name_keeps_its_letters(name: str, fitting: str) -> None:
    """Marks that a provider refuses become `_`."""
    assert fitting_name(name) == fitting


def test_s8_names_equal_in_their_first_64_letters_stay_apart() -> None:
    """So do names in another script, of which no letter would be left."""
    long = "x" * 64
    found = fitting_names([long + "a", long + "b", "文件读取", "文件写入", "a.b", "a-b", "A_B"])
    assert len({name.replace("-", "_").lower() for name in found.values()}) == 7 - 1
    assert found["a.b"] != found["a-b"] == "a-b"


def test_order_of_the_names_changes_nothing() -> None:
    """A server that lists its tools in another order has the same tools."""
    names = ["a.b", "a b", "é", "ab"]
    assert fitting_names(names) == fitting_names(reversed(names))


@given(st.lists(st.text(min_size=1), max_size=8, unique=True))
def test_every_name_has_one_that_fits(names: list[str]) -> None:
    """And parameters too: within the pattern, no two alike."""
    assert all(map(NAME_PATTERN.fullmatch, fitting_names(names).values()))
    shown = [aliases(names).get(name, name) for name in names]
    assert len(set(shown)) == len(names)
