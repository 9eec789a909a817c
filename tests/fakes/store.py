"""A store that fails at a chosen moment, for crash tests."""

from __future__ import annotations

from typing import Any, TypeVar

from agent_adapter.core.errors import StoreError
from agent_adapter.store.base import Operation, Store

T = TypeVar("T")


class FaultyStore:
    """Raises `StoreError` at the n-th write or post, counted from one.

    `applied=False` fails before the operation, `True` after it, as a process does that dies between
    a commit and its answer. `lasting=True` fails at every later write and post, too. `count` says
    how many there were, so a run without a fault tells how many `fail_at` to try.
    """

    def __init__(
        self,
        inner: Store,
        *,
        fail_at: int | None = None,
        applied: bool = False,
        lasting: bool = False,
    ) -> None:
        self.inner = inner
        self.count = 0
        self._fail_at = fail_at
        self._applied = applied
        self._lasting = lasting

    @property
    def url(self) -> str:
        """Where the inner store is."""
        return self.inner.url

    @property
    def durable(self) -> bool:
        """As the inner store."""
        return self.inner.durable

    @property
    def key(self) -> bytes:
        """As the inner store."""
        return self.inner.key

    @property
    def owner_id(self) -> str:
        """As the inner store."""
        return self.inner.owner_id

    async def write(self, op: Operation[T]) -> T:
        """Run `op`, or fail."""
        if not self._is_due():
            return await self.inner.write(op)
        if self._applied:
            await self.inner.write(op)
        raise StoreError(f"{self.url}: a fault was asked for at write or post {self.count}")

    def post(self, op: Operation[Any]) -> None:
        """Queue `op`, or fail."""
        if not self._is_due():
            self.inner.post(op)
            return
        if self._applied:
            self.inner.post(op)
        raise StoreError(f"{self.url}: a fault was asked for at write or post {self.count}")

    async def read(self, op: Operation[T]) -> T:
        """As the inner store."""
        return await self.inner.read(op)

    async def flush(self) -> None:
        """As the inner store."""
        await self.inner.flush()

    async def aclose(self) -> None:
        """As the inner store."""
        await self.inner.aclose()

    def _is_due(self) -> bool:
        self.count += 1
        if self._fail_at is None:
            return False
        return self.count >= self._fail_at if self._lasting else self.count == self._fail_at
