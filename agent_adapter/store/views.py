"""Searches of the inbox that a person has given a name."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from agent_adapter.core.canonical import digest
from agent_adapter.core.inert import one_line
from agent_adapter.core.logins import bare
from agent_adapter.store.base import Row, Transaction

MOST = 50
"""The most views of one person in one tenant."""

_LONGEST_NAME = 60
_LONGEST_QUERY = 2_000
_KNOWN = ("state", "q", "tool", "person", "run", "risk", "sort")


def of(tx: Transaction, person: str, tenant: str) -> list[Row]:
    """The views of a person in a tenant, by name."""
    mine = {"person": bare(person), "tenant": tenant}
    return tx.select("saved_views", mine, order_by="name", limit=MOST)


def save(tx: Transaction, person: str, tenant: str, *, name: str, query: str) -> str | None:
    """Keep a search under a name, in place of one of the same name; else why not."""
    if not 0 < len(name) <= _LONGEST_NAME or not name.strip():
        return f"name: give the view a name of 1 to {_LONGEST_NAME} characters"
    kept = {key: value for key, value in parse_qsl(query.removeprefix("?")) if key in _KNOWN}
    text = f"?{urlencode(kept)}" if kept else ""
    if len(text) > _LONGEST_QUERY:
        return "query: the search is too long to keep"
    who, shown = bare(person), one_line(name)
    mine = of(tx, person, tenant)
    known = next((row for row in mine if row["name"] == shown), None)
    if known is not None:
        tx.update("saved_views", {"id": known["id"]}, {"query": text})
        return None
    if len(mine) >= MOST:
        return f"there are {MOST} views already: remove one first"
    id = digest([tenant, who, shown])
    row = {"id": id, "tenant": tenant, "person": who, "name": shown, "query": text}
    tx.insert("saved_views", row | {"created_at": tx.now})
    return None


def drop(tx: Transaction, person: str, tenant: str, id: str) -> None:
    """Forget a view of that person."""
    tx.delete("saved_views", {"id": id, "person": bare(person), "tenant": tenant})
