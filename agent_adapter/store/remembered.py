"""Facts about a whole store that every call asks for: looked up once, kept until a change.

They lie in the memo of a transaction, under keys that no run can have: those of runs are texts.
Whoever changes what a fact is about forgets it; a store forgets all where another process may have
written.
"""

from __future__ import annotations

from agent_adapter.store.base import Transaction
from agent_adapter.store.witness import CANCELLED, SWITCH, meta_rows

UNCLEAR = ("unclear",)
"""Whether any call may be unclear."""

SUSPENDED = ("suspended",)
"""Whether any call was left unfinished."""

HALTS = ("halts",)
"""The switch and the cancelled runs."""

_MOST_KNOWN = 1_000


# Who asks looks into the memo first: these are called for what it does not hold.
def any_unclear(tx: Transaction) -> bool:
    """Whether any call of the store may be unclear.

    The open calls of this process are under way. `calls` forgets the answer when a call ends with
    unknown outcome.
    """
    found = tx.select("calls", {"ending": "unknown"}, limit=1)
    found = found or tx.select("calls", {"state": "open", "owner_id !=": tx.owner_id}, limit=1)
    tx.memo[UNCLEAR] = {"any": bool(found)}
    return bool(found)


def any_suspended(tx: Transaction) -> bool:
    """Whether any call of the store was left unfinished; `calls` forgets it when one is.

    True where the memo does not last: it costs as much to ask about a certain call.
    """
    if not tx.memo_lasts:
        return True
    found = bool(tx.select("calls", {"ending": "suspended"}, limit=1))
    tx.memo[SUSPENDED] = {"any": found}
    return found


def all_halts(tx: Transaction) -> frozenset[str] | None:
    """The rows of `meta` that stop calls, by name; `switch` forgets them when one changes.

    `None` where there are too many to be kept, and where the memo does not last.
    """
    if not tx.memo_lasts:
        return None
    rows = [*tx.select("meta", {"name": SWITCH}), *meta_rows(tx, CANCELLED, _MOST_KNOWN + 1)]
    found = frozenset(row["name"] for row in rows)
    names = found if len(found) <= _MOST_KNOWN else None
    tx.memo[HALTS] = {"names": names}
    return names
