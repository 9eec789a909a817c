"""Calls that are named by a key of their caller's, `Executor.run(call_id=…)`: one key, one call."""

from __future__ import annotations

import json

from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.intents import Intent
from agent_adapter.store.keys import call_key_of


def conflict(tx: Transaction, intent: Intent) -> str | None:
    """What else the intent's key names, a call or a question about one; `None` if nothing."""
    same = (intent.tool, intent.digest)
    place = intent.where
    for row in tx.select("calls", {"place": place}, limit=20):
        if (row["tool"], row["digest"]) != same:
            return _of(row)
    for row in tx.select("approvals", {"run_id": intent.run_id}):
        seen = json.loads(row["request"])
        if seen.get("place") != place:
            continue
        key = call_key_of(place, intent.tool, intent.digest, seen.get("n", 1))
        if row["asked_key"] != key:
            return _of(row)
    return None


def _of(row: Row) -> str:
    return f"{row['tool']} ({row.get('asked_key') or row['call_key']})"
