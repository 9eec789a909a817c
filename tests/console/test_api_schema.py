"""Whatever is sent to the API, as its own document describes it or against it, it never fails."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

schemathesis = pytest.importorskip("schemathesis")

from agent_adapter.console.api.openapi import openapi_document  # noqa: E402  # as above
from agent_adapter.console.api.operations import OPERATIONS  # noqa: E402  # after the package
from agent_adapter.store.memory import MemoryStore  # noqa: E402  # as above
from tests.console._shop import ShopConsole  # noqa: E402  # as above

EXAMPLES = 20


class Scene:
    """A console with something in it, and an admin's token."""

    def __init__(self) -> None:
        self.shop = ShopConsole(MemoryStore(), requests_per_minute=10**9)
        self.token, self.ids = asyncio.run(self._filled())

    async def _filled(self) -> tuple[str, list[str]]:
        ids = [await self.shop.ask(), await self.shop.doubt(), "run_1"]
        return await self.shop.token("bot", "admin"), ids


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """One for all cases: what they do to it is part of the test."""
    return Scene()


def _schema() -> Any:
    return schemathesis.openapi.from_dict(openapi_document(OPERATIONS))


schema = _schema()


@pytest.mark.filterwarnings("ignore")
@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_makes_it_fail(case: Any, scene: Scene) -> None:
    """No 5xx, and no status or type that the document does not name."""
    names = case.path_parameters or {}
    if names and len(str(names)) % 2:
        case.path_parameters = {name: scene.ids[len(str(names)) % 3] for name in names}
    headers = {"authorization": f"Bearer {scene.token}", "host": "localhost"}
    answer = case.call(app=scene.shop.app, headers=headers, base_url="http://localhost/api/v1")
    case.validate_response(
        answer,
        checks=(
            schemathesis.checks.not_a_server_error,
            schemathesis.checks.CHECKS.get_one("status_code_conformance"),
        ),
    )
