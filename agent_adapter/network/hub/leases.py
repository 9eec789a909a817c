"""The one hub that dispatches a store's turns: its lease, renewed while it runs."""

from __future__ import annotations

import weakref
from typing import Any

from agent_adapter.core.errors import NetworkError
from agent_adapter.store.base import Row, Transaction

_NAME = "hub"
_alive: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


class HubReplaced(NetworkError):
    """Another hub serves the store now: what this one accepts would not count."""

    kind = "hub-replaced"


def take(tx: Transaction, holder: str, hub: Any, *, where: str) -> float | None:
    """Become the store's hub; the seconds during which it had none, `None` if it is it already.

    `NetworkError` says who holds it while that process is alive.
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
    """`HubReplaced` when `holder` does not hold the lease any more."""
    row = tx.get("leases", _NAME)
    if row is None or row["holder"] != holder or row["owner_id"] != tx.owner_id:
        raise HubReplaced(
            "this hub does not serve its store any more"
            + ("" if row is None else f": {_who(tx, row)} does")
            + "; open a new one"
        )


def beat(tx: Transaction, holder: str) -> bool:
    """Say that the hub still runs; `False` if another one has taken its place."""
    where = {"name": _NAME, "holder": holder, "owner_id": tx.owner_id}
    return bool(tx.update("leases", where, {"at": tx.now}))


def release(tx: Transaction, holder: str) -> None:
    """Leave the store to whoever opens it next; when it was left stays known."""
    where = {"name": _NAME, "holder": holder, "owner_id": tx.owner_id}
    tx.update("leases", where, {"holder": None, "owner_id": None, "at": tx.now})
    _alive.pop(holder, None)


def _is_served(tx: Transaction, row: Row) -> bool:
    if row["owner_id"] is None or not tx.is_live(row["owner_id"]):
        return False
    if row["owner_id"] != tx.owner_id:
        return True
    # The same opened store: its other hub counts while the object and its loop are there.
    other = _alive.get(row["holder"])
    return other is not None and not other.is_abandoned


def _who(tx: Transaction, row: Row) -> str:
    process = tx.get("owners", row["owner_id"]) if row["owner_id"] is not None else None
    if process is None:
        return f"hub {row['holder']} of this process"
    return f"hub {row['holder']} of process {process['pid']} on {process['host']}"
