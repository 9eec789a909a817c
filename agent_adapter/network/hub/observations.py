"""What a hub has seen of a participant's capabilities: how often they were used, how that ended."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from agent_adapter.network.channels.snapshot import iso
from agent_adapter.network.hub import audit
from agent_adapter.network.identity import ObservedStat, Resume
from agent_adapter.store.base import Row, Transaction

_SEEN = "observed:"
"""Begins the names of rows of `meta` that say which tasks were counted, and recent latencies."""

_TASKS = 200
_LATENCIES = 101


@dataclass(frozen=True, slots=True)
class Observation:
    """One use of a capability: `outcome` is the state of a task that has ended."""

    capability: str
    outcome: str
    latency_ms: float | None = None
    task_id: str | None = None


def observe(
    tx: Transaction,
    owner_id: str,
    capability: str,
    outcome: str,
    latency_ms: float | None,
    *,
    task_id: str | None = None,
) -> bool:
    """Count one use of a capability; `False` if nothing was counted."""
    return observe_all(tx, owner_id, [Observation(capability, outcome, latency_ms, task_id)])


def observe_all(tx: Transaction, owner_id: str, found: Iterable[Observation]) -> bool:
    """Count several uses with one change of the résumé; `False` if nothing was counted."""
    rows = tx.select("identities", {"agent_id": owner_id}, limit=1)
    if not rows:
        return False
    resume = Resume.from_dict(json.loads(rows[0]["resume"]))
    kept = _kept(tx, owner_id)
    counted = [item for item in found if item.task_id is None or item.task_id not in kept["tasks"]]
    if not counted:
        return False
    observed = dict(resume.observed)
    for item in counted:
        observed[item.capability] = _counted(observed.get(item.capability), item, kept)
    changed = replace(
        resume, observed=observed, version=resume.version + 1, last_updated=iso(tx.now)
    )
    tx.update("identities", {"name": rows[0]["name"]}, {"resume": json.dumps(changed.to_dict())})
    _keep(tx, owner_id, kept)
    facts: dict[str, Any] = {"agent_id": owner_id, "version": changed.version}
    last = counted[-1]
    facts |= {"source": audit.RESUME_SOURCE_OBSERVED, "capability": last.capability}
    audit.write(tx, audit.RESUME_SET, facts | {"outcome": last.outcome, "uses": len(counted)})
    return True


def forget(tx: Transaction, owner_id: str) -> None:
    """Forget which tasks of a participant were counted; it is no longer registered."""
    tx.delete("meta", {"name": _SEEN + owner_id})


def _counted(stat: ObservedStat | None, item: Observation, kept: dict[str, Any]) -> ObservedStat:
    stat = stat or ObservedStat()
    if item.task_id is not None:
        kept["tasks"] = [*kept["tasks"], item.task_id][-_TASKS:]
    p50 = stat.p50_latency_ms
    if item.latency_ms is not None:
        recent = [*kept["ms"].get(item.capability, ()), round(item.latency_ms)][-_LATENCIES:]
        kept["ms"][item.capability] = recent
        p50 = round(median(recent))
    return ObservedStat(
        n=stat.n + 1,
        completed=stat.completed + (item.outcome == "completed"),
        failed=stat.failed + (item.outcome == "failed"),
        expired=stat.expired + (item.outcome == "expired"),
        p50_latency_ms=p50,
    )


def _kept(tx: Transaction, owner_id: str) -> dict[str, Any]:
    row: Row | None = tx.get("meta", _SEEN + owner_id)
    found: dict[str, Any] = {"tasks": [], "ms": {}} if row is None else json.loads(row["value"])
    return found


def _keep(tx: Transaction, owner_id: str, kept: dict[str, Any]) -> None:
    value = {"value": json.dumps(kept)}
    if not tx.update("meta", {"name": _SEEN + owner_id}, value):
        tx.insert("meta", {"name": _SEEN + owner_id} | value)
