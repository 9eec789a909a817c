"""The lease of a store: only its holder, one hub, accepts envelopes and starts turns."""

from __future__ import annotations

import weakref
from typing import Any

from agent_adapter.core.errors import NetworkError
from agent_adapter.store.base import Row, Transaction

_NAME = "hub"
_alive: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


class HubReplaced(NetworkError):
    """Another hub serves the store now; this one may not write any more."""

    kind = "hub-replaced"


def take(tx: Transaction, holder: str, hub: Any, *, where: str) -> float | None:
    """Take the store's lease; returns the seconds without a hub, `None` if it is held already.

    Raises `NetworkError` with the holder's name while the holder's process is alive.
    """
    row = tx.get("leases", _NAME)
    mine: Row = {"owner_id": tx.owner_id, "holder": holder, "at": tx.now}
    if row is None:
        tx.insert("leases", {"name": _NAME} | mine)
        _alive[holder] = hub
        return 0.0
    if row["holder"] == holder and row["owner_id"] == tx.owner_id:
        return None
    if _is_served(tx, row):
        raise NetworkError(
            f"{where} is served by another hub ({_who(tx, row)}); close that one, talk to it "
            "through its link, or queue commands in the store"
        )
    tx.update("leases", {"name": _NAME}, mine)
    _alive[holder] = hub
    return max(0.0, tx.now - row["at"]) if row["at"] is not None else 0.0


def check(tx: Transaction, holder: str) -> None:
    """Raises `HubReplaced` if `holder` no longer holds the lease."""
    row = tx.get("leases", _NAME)
    if row is None or row["holder"] != holder or row["owner_id"] != tx.owner_id:
        raise HubReplaced(
            "this hub does not serve its store any more"
            + ("" if row is None else f": {_who(tx, row)} does")
            + "; open a new one"
        )


def beat(tx: Transaction, holder: str) -> bool:
    """Renew the lease; `False` if another hub has taken it."""
    where = {"name": _NAME, "holder": holder, "owner_id": tx.owner_id}
    return bool(tx.update("leases", where, {"at": tx.now}))


def release(tx: Transaction, holder: str) -> None:
    """Release the lease; its row keeps the time, from which the next hub counts the downtime."""
    where = {"name": _NAME, "holder": holder, "owner_id": tx.owner_id}
    tx.update("leases", where, {"holder": None, "owner_id": None, "at": tx.now})
    _alive.pop(holder, None)


def _is_served(tx: Transaction, row: Row) -> bool:
    # Liveness of the process decides, not the age of the row: a hub that was suspended for an hour
    # still holds its lease, and one that was killed a second ago does not.
    if row["owner_id"] is None or not tx.is_live(row["owner_id"]):
        return False
    if row["owner_id"] != tx.owner_id:
        return True
    # Two hubs of one process share its owner id, so the object and its event loop decide.
    other = _alive.get(row["holder"])
    return other is not None and not other.is_abandoned


def _who(tx: Transaction, row: Row) -> str:
    process = tx.get("owners", row["owner_id"]) if row["owner_id"] is not None else None
    if process is None:
        return f"hub {row['holder']} of this process"
    return f"hub {row['holder']} of process {process['pid']} on {process['host']}"
