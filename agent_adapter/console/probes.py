"""`/healthz` and `/readyz`, for programs that watch the server: without sign-in, nothing secret."""

from __future__ import annotations

import asyncio
import logging
import time

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent_adapter.core.errors import StoreError
from agent_adapter.store.base import Store, Transaction

PATHS = frozenset(("/healthz", "/readyz"))
"""Answered to every host name: a probe asks by address."""

_SECONDS = 5.0
_KEPT_SECONDS = 1.0

log = logging.getLogger(__name__)


class Readiness:
    """Whether the store reads and writes; asked at most once a second, however many ask."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asking = asyncio.Lock()
        self._known: tuple[float, bool] | None = None

    async def ready(self) -> bool:
        """The answer, at most a second old."""
        async with self._asking:
            now = time.monotonic()
            if self._known is None or now - self._known[0] >= _KEPT_SECONDS:
                self._known = (now, await self._ask())
            return self._known[1]

    async def _ask(self) -> bool:
        try:
            async with asyncio.timeout(_SECONDS):
                await self._store.read(_look)
                await self._store.flush()
        except (StoreError, TimeoutError) as exc:
            log.warning("the store is not ready: %s", str(exc) or f"no answer in {_SECONDS:g} s")
            return False
        return True


def _look(tx: Transaction) -> int:
    return tx.count("leases")


async def _alive(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _ready(request: Request) -> Response:
    readiness: Readiness = request.app.state.readiness
    if await readiness.ready():
        return JSONResponse({"status": "ready"})
    return JSONResponse({"status": "not ready"}, status_code=503)


ROUTES: list[Route] = [
    Route("/healthz", _alive, methods=["GET"]),
    Route("/readyz", _ready, methods=["GET"]),
]
