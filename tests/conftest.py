"""What every test shares: coroutine tests run on asyncio alone, properties have no deadline."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.sampling import FULL, SAMPLES

# A busy machine is no failure of the code under test.
settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The library is written for asyncio."""
    return "asyncio"


_printed: set[str] = set()
_ONE_IN = 8
"""Of the tests that run over every store, how many run over PostgreSQL by default."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out most repetitions over databases, always the same, but those of the store's own."""
    if FULL:
        return
    left_out = [item for item in items if _is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
        _printed.add(f"tests over PostgreSQL: 1 in {_ONE_IN} of those that run over every store")


def _is_left_out(item: pytest.Item) -> bool:
    names = getattr(getattr(item, "callspec", None), "id", "").split("-")
    repeated = {"postgres"} if item.path.parent.name != "network" else {"postgres", "sqlite"}
    if not repeated.intersection(names) or item.path.parent.name == "store":
        return False
    return zlib.crc32(item.nodeid.encode()) % _ONE_IN != 0


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what was sampled in the modules that ran; a worker hands it to the process above."""
    ran = {item.module.__name__ for item in session.items if isinstance(item, pytest.Function)}
    found = [str(made) for made in SAMPLES if made.module in ran]
    handed: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if handed is None:
        _printed.update(found)
    else:
        handed["samples"] = found


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker sampled."""
    _printed.update(getattr(node, "workeroutput", {}).get("samples", ()))


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Print how much of each large suite ran."""
    yield
    for line in sorted(_printed):
        terminalreporter.write_line(f"sample: {line}")
