"""`/healthz` and `/readyz`: for programs, without sign-in, nothing secret."""

from __future__ import annotations

from typing import Any

import pytest

from agent_adapter.console import probes
from agent_adapter.core.errors import StoreError

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("path", "said"), [("/healthz", "ok"), ("/readyz", "ready")])
async def test_probes_need_no_sign_in(shop: Any, path: str, said: str) -> None:
    """They answer to any host name, with one word and the usual headers."""
    answer = shop.client().get(path, headers={"host": "10.0.0.7:8377"})
    assert (answer.status_code, answer.json()) == (200, {"status": said})
    assert answer.headers["cache-control"] == "no-store"
    assert "set-cookie" not in answer.headers


async def test_other_paths_still_need_a_known_host(shop: Any) -> None:
    """Only the two paths answer to every host name, and only as they are written."""
    for path in ("/approvals", "/healthz/", "/healthz/../approvals", "/static/console.css"):
        assert shop.client().get(path, headers={"host": "10.0.0.7"}).status_code == 421


async def test_a_store_that_fails_is_not_ready(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """503, without the place or the reason, which are logged."""

    async def fail(self: object, op: object) -> object:
        raise StoreError("/secret/place was moved")

    monkeypatch.setattr(type(shop.store), "read", fail)
    answer = shop.client().get("/readyz")
    assert (answer.status_code, answer.json()) == (503, {"status": "not ready"})
    assert shop.client().get("/healthz").status_code == 200


async def test_the_store_is_asked_at_most_once_a_second(shop: Any) -> None:
    """Whoever asks without sign-in cannot keep the store busy."""
    asked = []

    class Counting:
        async def read(self, op: object) -> None:
            asked.append(op)

        async def flush(self) -> None:
            """Nothing to do."""

    readiness = probes.Readiness(Counting())  # type: ignore[arg-type]
    for _ in range(10):
        assert await readiness.ready()
    assert len(asked) <= 3
