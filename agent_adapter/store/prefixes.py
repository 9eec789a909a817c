"""Ids from their beginnings, as people type them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.keys import run_key
from agent_adapter.store.witness import UPKEEP, is_run

_END = "\U0010ffff"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """Where ids of a kind are: the table, its columns, and whether rows belong to a tenant."""

    table: str
    columns: Sequence[str]
    tenants: bool


_KINDS: Mapping[str, _Kind] = {
    "approval": _Kind(table="approvals", columns=("id",), tenants=True),
    "call": _Kind(table="calls", columns=("call_key",), tenants=True),
    "channel": _Kind(table="channels", columns=("channel_id",), tenants=True),
    "notification": _Kind(table="notifications", columns=("id",), tenants=True),
    "run": _Kind(table="runs", columns=("run_id", "name"), tenants=True),
    "token": _Kind(table="tokens", columns=("id",), tenants=False),
    "person": _Kind(table="people", columns=("id",), tenants=False),
}
"""The kinds of ids that may be given by their beginning."""


def beginning_with(
    tx: Transaction, kind: str, prefix: str, tenant: str | None, limit: int
) -> list[str]:
    """Up to `limit` ids or names that begin so, in order; `tenant` `None` is every tenant.

    An id that is exactly so stands alone.
    """
    where = _KINDS[kind]
    of = {} if tenant is None or not where.tenants else {"tenant": tenant}
    if kind == "run" and tenant is not None and tx.get("runs", run_key(tenant, prefix)):
        return [prefix]
    found: list[str] = []
    for column in where.columns:
        if prefix and tx.select(where.table, of | {column: prefix}, limit=1):
            return [prefix]
        begins = of | {f"{column} >=": prefix, f"{column} <": prefix + _END}
        rows = tx.select(where.table, begins, order_by=column, limit=limit)
        # A run is called by its name where it has one: the key of a tenant's run is a hash.
        found += [row.get("name") or row[column] for row in rows if _counts(kind, row)]
    return sorted(dict.fromkeys(found))[:limit]


def _counts(kind: str, row: Row) -> bool:
    return kind != "run" or (row["run_id"] != UPKEEP and is_run(row["run_id"]))
