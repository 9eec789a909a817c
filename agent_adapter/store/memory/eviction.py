"""What the memory store forgets, so that a long-lived process stays small."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from agent_adapter.store.memory.table import MemoryTable
from agent_adapter.store.pruning import OF_A_RUN

_EVERY = 256
_AT_ONCE = 512
_CACHE_SECONDS = 60.0


class IdleRuns:
    """Which runs are idle; forgets them beyond `most` and after `seconds`.

    A run with an open call, or with an approval that waits or may still be used, is kept whatever
    its age. Labels of threads are kept: a thread outlives its runs.
    """

    __slots__ = ("_cache_swept_at", "_last", "_most", "_seconds", "_since_sweep", "_tables")

    def __init__(self, tables: Mapping[str, MemoryTable], *, most: int, seconds: float) -> None:
        self._tables = tables
        self._most = most
        self._seconds = seconds
        self._last: OrderedDict[str, float] = OrderedDict()
        self._since_sweep = 0
        self._cache_swept_at = 0.0

    def touch(self, run_id: str, now: float) -> None:
        """Note that the run was used just now."""
        self._last[run_id] = now
        self._last.move_to_end(run_id)

    def tick(self, now: float) -> None:
        """Count one operation; every 256th looks for runs to forget."""
        self._since_sweep += 1
        if self._since_sweep >= _EVERY:
            self._since_sweep = 0
            self.sweep(now)

    def sweep(self, now: float) -> None:
        """Forget idle runs, a bounded number at a time, and cached results out of date."""
        for _ in range(min(_AT_ONCE, len(self._last))):
            run_id, used = next(iter(self._last.items()))
            if len(self._last) <= self._most and now - used <= self._seconds:
                break
            if self._is_held(run_id):
                self._last.move_to_end(run_id)
                continue
            del self._last[run_id]
            self._forget(run_id)
        if abs(now - self._cache_swept_at) > _CACHE_SECONDS:
            self._cache_swept_at = now
            _drop(self._tables["cache"], {"expires_at <": now})

    def _is_held(self, run_id: str) -> bool:
        calls = self._tables["calls"].find({"run_id": run_id})
        if any(row["state"] == "open" for _, row in calls):
            return True
        approvals = self._tables["approvals"]
        if not approvals.rows:
            return False
        found = approvals.find({"run_id": run_id})
        return any(row["state"] in ("pending", "approved") for _, row in found)

    def _forget(self, run_id: str) -> None:
        for name in OF_A_RUN:
            _drop(self._tables[name], {"run_id": run_id})
        _drop(self._tables["taints"], {"scope": f"run:{run_id}"})
        for key, _ in self._tables["approvals"].find({"run_id": run_id}):
            _drop(self._tables["votes"], {"approval_id": key})
            self._tables["approvals"].remove(key)


def _drop(table: MemoryTable, where: dict[str, object]) -> None:
    if table.rows:
        for key, _ in table.find(where):
            table.remove(key)
