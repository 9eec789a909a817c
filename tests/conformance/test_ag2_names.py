"""Every public name of `ag2.network`, and the module paths it is imported from."""

from __future__ import annotations

import importlib
import pkgutil

import ag2.network
import pytest

import agent_adapter.network

NOT_HERE = {
    "hub._envelope_tracing": "private to AG2",
    "hub.telemetry": "its listener is not public in AG2",
    "hub.sweepers": "private to AG2; use Hub.register_sweeper",
    "testing": "a store for AG2's own tests",
}
"""Modules of AG2 that have no counterpart, and why."""


PUBLIC = sorted(set(ag2.network.__all__))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_name_can_be_imported(name: str) -> None:
    """`from agent_adapter.network import …` has every public name of the installed AG2."""
    assert getattr(agent_adapter.network, name) is not None


def _modules() -> list[str]:
    found = pkgutil.walk_packages(ag2.network.__path__, "ag2.network.")
    paths = (item.name.removeprefix("ag2.network.") for item in found)
    return sorted(path for path in paths if path not in NOT_HERE)


@pytest.mark.parametrize("path", _modules())
def test_a_module_path_has_its_public_names(path: str) -> None:
    """What AG2's module exports, the module of the same path exports here."""
    theirs = importlib.import_module(f"ag2.network.{path}")
    ours = importlib.import_module(f"agent_adapter.network.{path}")
    assert [name for name in theirs.__all__ if name in PUBLIC and not hasattr(ours, name)] == []
