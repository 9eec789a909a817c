"""What the memory store forgets, so that a long-lived process stays small."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from agent_adapter.store import ledger
from agent_adapter.store.base import Transaction
from agent_adapter.store.memory.table import MemoryTable
from agent_adapter.store.pruning import OF_A_RUN
from agent_adapter.store.witness import CANCELLED, UPKEEP, is_run

_EVERY = 256
_AT_ONCE = 512
_CACHE_SECONDS = 60.0
_SMALL = 1024


class IdleRuns:
    """Which runs are idle; forgets them beyond `most` and after `seconds`.

    A run with an open call, or with an approval that waits or may still be used, is kept whatever
    its age. Labels of threads are kept: a thread outlives its runs. A run with a write is never
    forgotten, since the write must not happen again: it is only made smaller.
    """

    __slots__ = (
        "_cache_swept_at",
        "_last",
        "_most",
        "_newest",
        "_seconds",
        "_since_sweep",
        "_tables",
    )

    def __init__(self, tables: Mapping[str, MemoryTable], *, most: int, seconds: float) -> None:
        self._tables = tables
        self._most = most
        self._seconds = seconds
        self._last: OrderedDict[str, float] = OrderedDict()
        self._newest = ""
        self._since_sweep = 0
        self._cache_swept_at = 0.0

    def touch(self, run_id: str, now: float) -> None:
        """Note that the run was used just now."""
        if run_id != self._newest:
            self._last.pop(run_id, None)
            self._newest = run_id
        self._last[run_id] = now

    def tick(self, now: float) -> list[str]:
        """Count one operation; every 256th looks for runs to forget, and gives those to shrink."""
        self._since_sweep += 1
        if self._since_sweep < _EVERY:
            return []
        self._since_sweep = 0
        return self.sweep(now)

    def sweep(self, now: float) -> list[str]:
        """Forget idle runs, a bounded number at a time, and cached results out of date.

        Gives the idle runs that hold writes: `shrink` is for them.
        """
        written = []
        for _ in range(min(_AT_ONCE, len(self._last))):
            run_id, used = next(iter(self._last.items()))
            if len(self._last) <= self._most and now - used <= self._seconds:
                break
            if self._is_held(run_id):
                self._last.move_to_end(run_id)
                continue
            del self._last[run_id]
            if self._has_writes(run_id):
                written.append(run_id)
            else:
                self._forget(run_id)
        if abs(now - self._cache_swept_at) > _CACHE_SECONDS:
            self._cache_swept_at = now
            _drop(self._tables["cache"], {"expires_at <": now})
        return written

    def _has_writes(self, run_id: str) -> bool:
        calls = self._tables["calls"].find({"run_id": run_id})
        return any(row["effects"] == "write" or row["once_key"] is not None for _, row in calls)

    def _is_held(self, run_id: str) -> bool:
        # What is vouched for there outlives every run.
        if (
            not is_run(run_id)
            or run_id == UPKEEP
            or self._tables["meta"].rows.get(CANCELLED + run_id)
        ):
            return True
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


def shrink(tx: Transaction, run_id: str) -> None:
    """Drop the arguments of an idle run, and its results but for small ones; its chain says so."""
    large = [
        row["id"]
        for row in tx.select("payloads", {"run_id": run_id, "data !=": None})
        if row["id"].endswith(".arguments") or len(row["data"]) > _SMALL
    ]
    if large:
        tx.update("payloads", {"id in": large}, {"data": None})
        ledger.append(tx, run_id, "erased", None, {"payloads": len(large), "why": "idle"})


def _drop(table: MemoryTable, where: dict[str, object]) -> None:
    if table.rows:
        for key, _ in table.find(where):
            table.remove(key)
