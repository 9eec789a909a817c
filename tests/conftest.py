"""What every test shares: coroutine tests run on asyncio alone."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The library is written for asyncio."""
    return "asyncio"
