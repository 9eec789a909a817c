"""What every test shares: coroutine tests run on asyncio alone, properties have no deadline."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no failure of the code under test.
settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The library is written for asyncio."""
    return "asyncio"
