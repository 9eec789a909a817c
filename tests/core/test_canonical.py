"""`canon:1`: no two different values share an encoding, and plain JSON is as RFC 8785 writes it."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from agent_adapter.core.canonical import SecretValue, canon, digest, tagged, untagged

TEXT = st.text()
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**70), max_value=2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
    st.binary(max_size=8),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.datetimes().map(lambda moment: moment.replace(fold=0)),
    st.timedeltas(),
    st.uuids(),
    st.sets(st.integers(-3, 3) | st.text(max_size=2), max_size=3),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXT | st.sampled_from(["$int", "$set", "$a"]), inner, max_size=4)
    ),
    max_leaves=8,
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXT.filter(lambda t: not t.startswith("$")), inner, max_size=4)
    ),
    max_leaves=10,
)


def model(value: Any) -> Any:
    """`value` with its types spelled out: two values are the same when these are equal."""
    if isinstance(value, list):
        return ("list", tuple(map(model, value)))
    if isinstance(value, set):
        return ("set", frozenset(map(model, value)))
    if isinstance(value, dict):
        return ("dict", frozenset((name, model(item)) for name, item in value.items()))
    return (type(value).__name__, repr(value))


@given(VALUES, VALUES)
def test_different_values_have_different_encodings(one: Any, other: Any) -> None:
    """Two encodings are equal exactly when values and types are."""
    assert (canon(one) == canon(other)) == (model(one) == model(other))


@given(VALUES)
def test_tagged_values_come_back(value: Any) -> None:
    """What is written can be read back with its types, through real JSON."""
    assert model(untagged(json.loads(json.dumps(tagged(value))))) == model(value)


@given(PLAIN)
def test_plain_json_is_as_rfc_8785_writes_it(value: Any) -> None:
    """For what JSON carries the encoding is the standard's."""
    assert canon(value) == rfc8785.dumps(value)


def test_look_alikes_differ() -> None:
    """Numbers, truth, text, Decimals, tags written by hand and order are told apart."""
    alike = [1, 1.0, True, "1", Decimal(1), b"1", [1], {1}, {"$int": "1"}, {1: 1}, {"1": 1}]
    alike += [2**53, float(2**53), {"$int": str(2**53)}, -0.0, 0.0, 0, Decimal("1.0")]
    alike += [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), "2020-01-01", None, "", [], {}, set()]
    assert len({canon(value) for value in alike}) == len(alike)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [Decimal("NaN")]], ids=str)
def test_nan_has_no_encoding(value: Any) -> None:
    """What is not equal to itself cannot be bound."""
    with pytest.raises(ValueError, match="has no canonical form"):
        canon(value)


def test_secret_enters_by_keyed_hash() -> None:
    """A secret changes the digest under a key, and is not in the encoding."""
    one, other = SecretValue("hunter2"), SecretValue("hunter3")
    assert digest(one, b"k") != digest(other, b"k")
    assert digest(one, b"k") != digest(one, b"l")
    assert b"hunter2" not in canon(one, b"k")


def test_lone_surrogates_are_told_apart() -> None:
    """Text that UTF-8 cannot write has an encoding of its own."""
    assert len({canon("\ud800"), canon("\ud801"), canon("?"), canon("\ufffd")}) == 4
