"""Operations on taint: which runs and threads have read untrusted text."""

from __future__ import annotations

from collections.abc import Iterable

from agent_adapter.store import ledger
from agent_adapter.store.base import Transaction
from agent_adapter.store.witness import chain_of_scope


def mark(tx: Transaction, scopes: Iterable[str], label: str) -> None:
    """Put `label` on every scope (`run:…`, `thread:…`); one that is there already costs nothing."""
    for scope in scopes:
        if tx.insert("taints", {"scope": scope, "label": label, "at": tx.now}):
            ledger.append(tx, chain_of_scope(scope), "labelled", None, {"label": label})


def copy(tx: Transaction, from_scope: str, to_scope: str) -> None:
    """Put every label of one scope on the other, as of when they were given."""
    for row in tx.select("taints", {"scope": from_scope}):
        if tx.insert("taints", row | {"scope": to_scope}):
            ledger.append(tx, chain_of_scope(to_scope), "labelled", None, {"label": row["label"]})


def labels(tx: Transaction, scopes: Iterable[str]) -> tuple[str, ...]:
    """Every label on any of the scopes, sorted."""
    rows = tx.select("taints", {"scope in": list(scopes)})
    return tuple(sorted({row["label"] for row in rows}))
