"""Operations on the outbox of notifications and the rules that fill it.

A row of the outbox says that one rule must be told of one event. Its id is made of these two alone,
so that an event which is found again makes no second row, and every attempt carries the same id.

pending ──claim──▶ sending ──▶ sent
   ▲                  │ ├────▶ dropped   no longer true: decided meanwhile, erased
   └─── later ────────┘ └────▶ failed    given up after three days
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_adapter.store import ledger
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.refusal import Refusal
from agent_adapter.store.witness import UPKEEP

GIVE_UP_SECONDS = 3 * 86_400.0
"""How long a notification is tried."""

KEPT_SECONDS = 90 * 86_400.0
"""How long the outbox remembers what it has sent."""

CURSOR = "notifications-cursor"
"""The row of `meta` with the time up to which audit records were looked at."""

_OPEN = ("pending", "sending")
_FIRST_WAIT = 5.0
_LONGEST_WAIT = 3600.0
_SWEPT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxSummary:
    """How many notifications of a tenant are `pending`, `sending` or `failed`.

    `retrying` of them were tried before; `oldest` is when the oldest open one was made; `error` is
    the newest reason of a failure.
    """

    states: dict[str, int]
    retrying: int
    oldest: float | None
    error: str | None


def id_of(tenant: str, rule: str, event: str, subject: str, occurrence: str) -> str:
    """The id by which a receiver knows repeats of one notification."""
    parts = json.dumps([tenant, rule, event, subject, occurrence])
    return "ntf_" + hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def put(tx: Transaction, rows: Sequence[Row]) -> int:
    """Add notifications that are not there yet; how many."""
    new: Row = {"state": "pending", "owner_id": None, "attempts": 0, "sent_at": None, "error": None}
    new |= {"created_at": tx.now, "due_at": tx.now}
    return sum(tx.insert("notifications", new | row) for row in rows)


def is_known(tx: Transaction, id: str) -> bool:
    """Whether the outbox has it, sent or not."""
    return tx.get("notifications", id) is not None


def anything_due(tx: Transaction) -> bool:
    """Whether `claim` would find something."""
    pending = {"state": "pending", "due_at <=": tx.now}
    return bool(tx.select("notifications", pending, limit=1)) or bool(_abandoned(tx, 1))


def claim(tx: Transaction, limit: int) -> list[Row]:
    """Take what is due for this process: the oldest first, also what a dead process was sending."""
    pending = {"state": "pending", "due_at <=": tx.now}
    rows = tx.select("notifications", pending, order_by="due_at", limit=limit)
    rows += _abandoned(tx, limit - len(rows))
    taken = {"state": "sending", "owner_id": tx.owner_id}
    for row in rows:
        tx.update("notifications", {"id": row["id"]}, taken | {"attempts": row["attempts"] + 1})
    return [row | taken | {"attempts": row["attempts"] + 1} for row in rows]


def release(tx: Transaction) -> int:
    """Give back what this process took and did not finish; how many."""
    mine = {"state": "sending", "owner_id": tx.owner_id}
    return tx.update("notifications", mine, {"state": "pending", "due_at": tx.now})


def sent(tx: Transaction, id: str) -> None:
    """The receiver has taken it."""
    _end(tx, id, {"state": "sent", "sent_at": tx.now, "error": None})


def drop(tx: Transaction, id: str, why: str) -> None:
    """Nobody need be told any more."""
    _end(tx, id, {"state": "dropped", "error": why})


def later(tx: Transaction, id: str, error: str, *, wait: float | None = None) -> str:
    """Try it again after a time that doubles, or after `wait` seconds; its new state."""
    row = tx.get("notifications", id)
    if row is None:
        return "dropped"
    doubled = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(row["attempts"] - 1, 20))
    due = tx.now + (doubled if wait is None else min(max(wait, 1.0), _LONGEST_WAIT))
    late = due > row["created_at"] + GIVE_UP_SECONDS
    values = {"state": "failed" if late else "pending", "due_at": due, "error": error}
    _end(tx, id, values)
    return str(values["state"])


def retry(tx: Transaction, id: str) -> Row | Refusal:
    """Send a notification again now that was not sent."""
    row = tx.get("notifications", id)
    if row is None:
        return Refusal(reason=f"no notification {id}; `agent-adapter notify outbox` lists them")
    if row["state"] == "sending":
        return Refusal(reason=f"notification {id} is being sent")
    values = {"state": "pending", "due_at": tx.now, "created_at": tx.now}
    tx.update("notifications", {"id": id}, values)
    return row | values


def outbox(tx: Transaction, *, states: Sequence[str] | None = None, limit: int = 100) -> list[Row]:
    """Notifications, the newest first."""
    where = {} if states is None else {"state in": list(states)}
    return tx.select(
        "notifications", where, order_by=("created_at", "id"), descending=True, limit=limit
    )


def summary(tx: Transaction, tenant: str | None) -> OutboxSummary:
    """What the outbox of a tenant (`None`: of the whole store) is about to do."""
    of = {} if tenant is None else {"tenant": tenant}
    counted = (*_OPEN, "failed")
    states = {state: tx.count("notifications", of | {"state": state}) for state in counted}
    still = of | {"state in": _OPEN}
    first = tx.select("notifications", still, order_by="created_at", limit=1)
    bad = of | {"state in": ("pending", "sending", "failed"), "error !=": None}
    newest = tx.select("notifications", bad, order_by="due_at", descending=True, limit=1)
    return OutboxSummary(
        states=states,
        retrying=tx.count("notifications", still | {"attempts >": 1}),
        oldest=first[0]["created_at"] if first else None,
        error=newest[0]["error"] if newest else None,
    )


def sweep(tx: Transaction) -> int:
    """Forget what ended long ago; how many."""
    ended = {"state in": ("sent", "dropped", "failed"), "created_at <": tx.now - KEPT_SECONDS}
    rows = tx.select("notifications", ended, limit=_SWEPT)
    return sum(tx.delete("notifications", {"id": row["id"]}) for row in rows)


def cursor(tx: Transaction) -> float | None:
    """The time up to which audit records were looked at; `None` before the first look."""
    row = tx.get("meta", CURSOR)
    return None if row is None else float(row["value"])


def move_cursor(tx: Transaction, at: float) -> None:
    """Remember that audit records up to that time were looked at."""
    value = {"value": repr(at)}
    if not tx.update("meta", {"name": CURSOR}, value):
        tx.insert("meta", {"name": CURSOR} | value)


def rules(tx: Transaction) -> list[Row]:
    """Every stored rule by name; `data` is JSON."""
    return tx.select("notification_rules", order_by="name")


def add_rule(
    tx: Transaction, name: str, tenant: str | None, data: str, *, by: str
) -> Row | Refusal:
    """Keep a rule under a name that no other has."""
    row: Row = {"name": name, "tenant": tenant, "data": data, "by": by, "created_at": tx.now}
    if not tx.insert("notification_rules", row):
        return Refusal(reason=f"a rule {name} exists: remove it first, or choose another name")
    facts: dict[str, Any] = {"rule": name, "reviewer": by}
    ledger.append(tx, UPKEEP, "notification-rule-added", None, facts)
    return row


def remove_rule(tx: Transaction, name: str, *, by: str) -> Row | Refusal:
    """Forget a rule; what it has not sent is dropped when its time comes."""
    row = tx.get("notification_rules", name)
    if row is None:
        return Refusal(reason=f"no rule {name}; `agent-adapter notify list` shows all")
    tx.delete("notification_rules", {"name": name})
    ledger.append(tx, UPKEEP, "notification-rule-removed", None, {"rule": name, "reviewer": by})
    return row


def _end(tx: Transaction, id: str, values: Row) -> None:
    tx.update("notifications", {"id": id}, values | {"owner_id": None})


def _abandoned(tx: Transaction, limit: int) -> list[Row]:
    """What a process was sending when it died."""
    if limit <= 0:
        return []
    rows = tx.select("notifications", {"state": "sending"})
    return [row for row in rows if not _is_sent_by_another(tx, row)][:limit]


def _is_sent_by_another(tx: Transaction, row: Row) -> bool:
    return row["owner_id"] == tx.owner_id or tx.is_live(row["owner_id"] or "")
