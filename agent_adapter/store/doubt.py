"""Operations on writes with unknown outcome: listed, and resolved by a person."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from agent_adapter.store import ledger, limits, waits
from agent_adapter.store.approvals import Refusal
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.calls import tagged_result

_UNCLEAR = ("unknown", "suspended")


def in_doubt(
    tx: Transaction, tenant: str | None = None, under_way: Collection[str] | None = None
) -> list[Row]:
    """Every write with unknown outcome: begun by a process that died, or ended `unknown`.

    With `under_way`, the keys of the calls that this process is running, also those that have ended
    in it and whose outcome is not written yet.
    """
    of_tenant = {} if tenant is None else {"tenant": tenant}
    lost = tx.select(
        "calls", of_tenant | {"state": "open", "effects": "write"}, order_by="started_at"
    )
    unknown = tx.select("calls", of_tenant | {"ending": "unknown"}, order_by="finished_at")
    return [row for row in lost if _is_lost(tx, row, under_way)] + unknown


def _is_lost(tx: Transaction, row: Row, under_way: Collection[str] | None) -> bool:
    if row["owner_id"] == tx.owner_id:
        return under_way is not None and row["call_key"] not in under_way
    return not tx.is_live(row["owner_id"])


def resolve(
    tx: Transaction,
    call_key: str,
    *,
    reviewer: str,
    happened: bool,
    result: tuple[str, bytes] | None = None,
    reason: str | None = None,
    tenant: str | None = None,
) -> Row | Refusal:
    """Record whether a write in doubt happened (with this result) or did not."""
    row = tx.get("calls", call_key)
    if row is None or (tenant is not None and (row["tenant"] or "") != tenant):
        return Refusal(reason=f"no call {call_key}")
    open_elsewhere = row["state"] == "open" and tx.is_live(row["owner_id"])
    if open_elsewhere or (row["state"] == "done" and row["ending"] not in _UNCLEAR):
        state = "under way" if open_elsewhere else row["ending"]
        return Refusal(reason=f"call {call_key} is not in doubt: it is {state}", state=state)
    ending = "ok" if happened else "aborted"
    values: Row = {"state": "done", "ending": ending, "finished_at": tx.now}
    values |= {"owner_id": tx.owner_id, "error_kind": None, "error_text": None}
    facts: dict[str, Any] = {"ending": ending, "reviewer": reviewer, "reason": reason}
    if result is not None:
        values["result"] = f"{call_key}.result"
        data = tagged_result(*result)
        facts["result"] = ledger.put_payload(tx, values["result"], row["run_id"], data)
    tx.update("calls", {"call_key": call_key}, values)
    ledger.append(tx, row["run_id"], "resolved", call_key, facts)
    limits.settle(tx, call_key)
    waits.wake(tx, call_key)
    return row | values
