"""Stores of plug-ins, found by the entry point that is named after their scheme."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_adapter.core.errors import MissingDependency, StoreError
from agent_adapter.store import MemoryStore, SqliteStore, backends, open_store

pytestmark = pytest.mark.anyio

Install = Callable[..., None]

MODULE = """
from agent_adapter.store import MemoryStore

def open_plugged(url, *, clock, key):
    store = MemoryStore(clock=clock, key=key)
    store.url = url
    return store

number = 7
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a distribution on the path whose entry points are the given lines."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(backends, "_reported", set())

    def installed(*lines: str, name: str = "plugged") -> None:
        (tmp_path / f"{name}_module.py").write_text(MODULE)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("\n".join([f"[{backends.GROUP}]", *lines, ""]))
        monkeypatch.delitem(sys.modules, f"{name}_module", raising=False)

    return installed


def test_a_plug_in_opens_the_urls_of_its_scheme(install: Install) -> None:
    """Its function is given the whole URL, the clock and the key."""
    install("plug = plugged_module:open_plugged")
    store = open_store("plug://somewhere/else", key=bytes(32))
    assert (store.url, store.key) == ("plug://somewhere/else", bytes(32))
    assert backends.schemes() == ["memory", "plug", "postgres", "postgresql", "sqlite"]


async def test_a_plug_in_cannot_take_a_built_in_scheme(
    install: Install, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`sqlite` and `memory` stay what they are; the entry is one warning."""
    install("sqlite = plugged_module:open_plugged", "memory = plugged_module:open_plugged")
    assert type(open_store("memory://")) is MemoryStore
    store = open_store(tmp_path / "state.db")
    assert type(store) is SqliteStore
    await store.aclose()
    for _ in range(2):
        with pytest.raises(StoreError):
            open_store("unknown://x")
    told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(told) == 2 and all("belongs to a built-in store" in text for text in told)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("plugged_module:number", r"is no function \(but int\)"),
        ("plugged_module:absent", "AttributeError"),
        ("no_such_module:x", "ModuleNotFoundError"),
    ],
)
def test_an_entry_that_cannot_be_used_is_one_warning(
    install: Install, caplog: pytest.LogCaptureFixture, value: str, why: str
) -> None:
    """The error and the warning say why; other schemes are not touched."""
    install(f"bad = {value}", "good = plugged_module:open_plugged")
    for _ in range(2):
        with pytest.raises(StoreError, match=r"bad:// cannot be opened: .*" + why):
            open_store("bad://x")
    told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(told) == 1 and re.search(why, told[0]) and "of plugged" in told[0]
    assert open_store("good://x").url == "good://x"


def test_of_two_plug_ins_with_one_scheme_the_same_one_opens(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    """The first distribution by name has it; the other is a warning."""
    install("two = zebra_module:open_plugged", name="zebra")
    install("two = apple_module:number", name="apple")
    with pytest.raises(StoreError, match="apple_module:number"):
        open_store("two://x")
    assert "zebra_module:open_plugged of zebra): its scheme is already taken" in caplog.text


def test_a_missing_extra_is_told_with_the_pip_command(install: Install) -> None:
    """An unknown scheme and a known one whose packages are missing are different errors."""
    install("far = no_such_driver:open [fardb]")
    with pytest.raises(MissingDependency, match=r'run: pip install "plugged\[fardb\]"') as error:
        open_store("far://me:s3cret@host/db")
    assert "far:// needs no_such_driver" in str(error.value)
    with pytest.raises(StoreError, match="'near', only far, memory, postgres, postgresql, sqlite"):
        open_store("near://x")


def test_stale_metadata_is_told_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of this library that its installed metadata does not list is no unknown scheme."""
    monkeypatch.setattr(backends, "_built_in", dict)
    with pytest.raises(StoreError, match=r"does not list its store 'memory'; install .* again"):
        open_store("memory://")
