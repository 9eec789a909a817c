"""Operations on taint: which runs and threads have read untrusted text."""

from __future__ import annotations

from collections.abc import Iterable

from agent_adapter.store.base import Transaction


def mark(tx: Transaction, scopes: Iterable[str], label: str) -> None:
    """Put `label` on every scope (`run:…`, `thread:…`)."""
    for scope in scopes:
        tx.insert("taints", {"scope": scope, "label": label, "at": tx.now})


def labels(tx: Transaction, scopes: Iterable[str]) -> tuple[str, ...]:
    """Every label on any of the scopes, sorted."""
    rows = tx.select("taints", {"scope in": list(scopes)})
    return tuple(sorted({row["label"] for row in rows}))
