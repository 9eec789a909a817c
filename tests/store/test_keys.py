"""Stored keys and seals: what is written quickly is what was always written."""

from __future__ import annotations

import hmac
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent_adapter.store.keys import _encoded
from agent_adapter.store.ledger import head_mac

TEXTS = st.text() | st.text(st.characters(codec=None)) | st.text(st.characters(max_codepoint=130))
PARTS = st.lists(TEXTS | st.integers() | st.none() | st.lists(TEXTS | st.integers()), max_size=5)


@given(PARTS)
def test_parts_of_a_key_are_encoded_as_ascii_json(parts: list[Any]) -> None:
    """Keys of older stores are found again, whatever is in them."""
    expected = json.dumps(parts, separators=(",", ":")).encode()
    assert _encoded(tuple(parts)) == expected


@given(st.binary(max_size=80), TEXTS, st.integers(0, 2**40), st.binary(min_size=32, max_size=32))
def test_a_seal_is_an_hmac(key: bytes, run_id: str, seq: int, link: bytes) -> None:
    """The copied states give HMAC-SHA-256, so that seals of older stores hold."""
    text = f"{run_id}\x00{seq}\x00".encode("utf-8", "surrogatepass")
    assert head_mac(key, run_id, seq, link) == hmac.digest(key, text + link, "sha256")
