"""The text gate: every text can be stored, in every column, and comes back as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from agent_adapter.store import MemoryStore
from agent_adapter.store.sqlite import SqliteStore
from agent_adapter.store.text import MARK, escape, escaped, json_bytes, unescape

pytestmark = pytest.mark.anyio

TEXTS = ("\ud800", "a\x00b", "\udcff\udc80", MARK, f"{MARK}0000", "plain", "ümläut", "")


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    """A fresh store of each kind."""
    made: Any = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "state.db")
    yield made
    await made.aclose()


@given(st.text(st.characters(codec=None)))
def test_escaping_is_undone(text: str) -> None:
    """For every text, and what is stored is valid UTF-8 without NUL."""
    kept = escape(text)
    assert unescape(kept) == text and "\x00" not in kept
    kept.encode()


def test_a_plain_text_is_kept_as_it_is() -> None:
    """Nothing is copied where nothing has to be escaped."""
    assert escape("plain") == "plain" and unescape("plain") == "plain"


def test_json_of_any_text_can_be_made() -> None:
    """A lone surrogate in a key or a value is escaped, and the rest stays."""
    value = {"a\ud800": ["b\udfff", 1, None], "c": "d"}
    assert from_json(json_bytes(value)) == escaped(value)
    assert json_bytes({"c": "d"}) == b'{"c":"d"}'


@pytest.mark.parametrize("text", TEXTS)
async def test_i16_every_column_takes_every_text(store: Any, text: str) -> None:
    """I16: As a key, a value and a condition; it is found again under the same text."""
    row = {"name": f"n{text}", "value": text}
    assert await store.write(lambda tx: tx.insert("meta", row)) is True
    assert await store.read(lambda tx: tx.get("meta", f"n{text}")) == row
    found = await store.read(lambda tx: tx.select("meta", {"value in": [text]}, limit=5))
    assert found == [row]
    changed = await store.write(lambda tx: tx.update("meta", {"value": text}, {"value": text * 2}))
    assert (
        changed == 1 and await store.write(lambda tx: tx.delete("meta", {"value": text * 2})) == 1
    )
