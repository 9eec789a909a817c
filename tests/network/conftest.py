"""Runs the tests that play a scene over every kind of store."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.network import _scene


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that opens a scene on a store of its own accord is run over each kind."""
    if getattr(metafunc.module, "scene", None) is not _scene.scene:
        return
    if (
        "scene()" in inspect.getsource(metafunc.function)
        and "anyio_backend" in metafunc.fixturenames
    ):
        metafunc.fixturenames.append("scene_store")
        metafunc.parametrize("scene_store", ["memory", "sqlite", "postgres"], indirect=True)


@pytest.fixture
def scene_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """The kind of store that `scene()` opens in this test."""
    before = _scene.KIND
    _scene.KIND = (request.param, tmp_path)
    yield
    _scene.KIND = before
