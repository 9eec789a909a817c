"""The time that deadlines of approvals go by: it neither steps back nor jumps ahead.

The store keeps a mark: the time, and how long the machine had been running then. What has passed
since is known from the machine's running time, whatever happened to its clock. A clock that was set
back changes nothing; one that is ahead of the mark by more than five minutes beyond what has passed
is not believed: until a person confirms the time, no approval is taken, and none expires.

After a restart of the machine its clock is believed, but never below the mark.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from agent_adapter.store import ledger
from agent_adapter.store.base import Transaction
from agent_adapter.store.witness import UPKEEP

MARK = "time-mark"
"""The row of `meta` with the mark."""

JUMP_SECONDS = 300.0
"""How far the clock may run ahead of the machine's running time between two marks."""

_MARK_EVERY = 60.0


@dataclass(frozen=True, slots=True)
class Moment:
    """The time for deadlines, and by how many seconds the clock is ahead of it."""

    now: float
    ahead: float = 0.0


def moment(tx: Transaction) -> Moment:
    """The time as far as it is believed; writes nothing."""
    mark = tx.get("meta", MARK)
    if mark is None:
        return Moment(tx.now)
    at, up, boot = json.loads(mark["value"])
    if boot != tx.uptime.boot or boot == "":
        return Moment(max(tx.now, at))
    passed = at + max(0.0, tx.uptime.seconds() - up)
    if tx.now > passed + JUMP_SECONDS:
        return Moment(passed, tx.now - passed)
    return Moment(max(tx.now, passed))


def now(tx: Transaction) -> float:
    """The time for deadlines."""
    return moment(tx).now


def keep(tx: Transaction) -> Moment:
    """The time for deadlines, marked once a minute where it is believed."""
    found = moment(tx)
    if not found.ahead:
        mark = tx.get("meta", MARK)
        at, _, boot = (found.now, 0, None) if mark is None else json.loads(mark["value"])
        if boot != tx.uptime.boot or found.now >= at + _MARK_EVERY:
            _mark(tx, found.now)
    return found


def why_not(found: Moment) -> str | None:
    """Why no approval is taken at that moment; `None` if the time is believed."""
    if not found.ahead:
        return None
    return (
        f"the clock is {found.ahead:,.0f} s ahead of the time that has passed, so no approval is "
        "used and none expires; set the clock, or confirm its time with "
        "`agent-adapter approvals confirm-time`"
    )


def confirm(tx: Transaction, *, by: str) -> float:
    """A person says that the clock is right; by how many seconds it was ahead."""
    ahead = moment(tx).ahead
    _mark(tx, tx.now)
    ledger.append(tx, UPKEEP, "time-confirmed", None, {"reviewer": by, "ahead": round(ahead, 3)})
    return ahead


def _mark(tx: Transaction, at: float) -> None:
    value = json.dumps([at, tx.uptime.seconds(), tx.uptime.boot])
    if not tx.update("meta", {"name": MARK}, {"value": value}):
        tx.insert("meta", {"name": MARK, "value": value})
