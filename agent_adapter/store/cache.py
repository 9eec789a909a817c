"""Operations on cached results; each is sealed, so that one changed in the file is not used."""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence

from pydantic_core import to_json

from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.text import escaped


def keep(tx: Transaction, key: str, result: str, labels: Sequence[str], seconds: float) -> None:
    """Keep a result, with the labels of what it was made of, for that many seconds."""
    tx.delete("cache", {"expires_at <=": tx.now})
    tx.delete("cache", {"key": key})
    row: Row = {"key": key, "result": result, "expires_at": tx.now + seconds}
    sealed = {"labels": list(labels), "seal": _seal(tx, row, labels)}
    tx.insert("cache", row | {"labels": json.dumps(sealed)})


def kept(tx: Transaction, key: str) -> tuple[str, list[str]] | None:
    """The result and its labels, while it lasts and is as it was written."""
    row = tx.get("cache", key)
    if row is None or row["expires_at"] <= tx.now:
        return None
    labels = _labels(tx, row)
    return None if labels is None else (row["result"], labels)


def broken(tx: Transaction) -> list[str]:
    """The keys of results that are not as they were written."""
    return [row["key"] for row in tx.select("cache") if _labels(tx, row) is None]


def _labels(tx: Transaction, row: Row) -> list[str] | None:
    try:
        said = json.loads(row["labels"])
        labels: list[str] = said["labels"]
        same = hmac.compare_digest(str(said["seal"]), _seal(tx, row, labels))
    except (ValueError, TypeError, KeyError):
        return None
    return labels if same else None


def _seal(tx: Transaction, row: Row, labels: Sequence[str]) -> str:
    parts = [row["key"], row["result"], row["expires_at"], list(labels)]
    return hmac.digest(tx.key, to_json(escaped(parts)), "sha256").hex()
