"""Pages of the approvals' inbox: sorted by what expires first or by age, searched and filtered.

Without a search a page is read by an index. A search reads every waiting record of the tenant: its
words may be anywhere, in any case.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from agent_adapter.store import timekeeping
from agent_adapter.store.base import Row, Transaction

Sort = Literal["expiry", "oldest", "newest"]
Risk = Literal["", "write", "idempotent", "read", "untrusted", "irreversible", "votes"]

_AT_ONCE = 1_000
_COLUMNS: dict[str, str] = {"expiry": "decide_by", "oldest": "created_at", "newest": "created_at"}
_SEARCHED = ("id", "tool", "run_id", "principal", "requester", "payload", "edited")
_TIMED = {"pending": "decide_by", "approved": "use_by"}


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxQuery:
    """Which records: in a state (`all`: any), with all these texts in them, in an order."""

    state: str = "pending"
    text: str = ""
    tool: str = ""
    person: str = ""
    run: str = ""
    risk: Risk = ""
    sort: Sort = "expiry"

    @property
    def searches(self) -> bool:
        """Whether records must be read to know whether they are meant."""
        return bool(self.text or self.tool or self.person or self.run or self.risk)


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxPage:
    """Rows in order, how many there are in all, and the places of the pages around."""

    rows: list[Row]
    total: int
    previous: str | None
    next: str | None


def page(
    tx: Transaction,
    tenant: str,
    query: InboxQuery,
    *,
    limit: int,
    after: str = "",
    before: str = "",
) -> InboxPage:
    """The page behind the place `after`, or before the place `before`; else the first."""
    by, backwards = _COLUMNS[query.sort], bool(before)
    fits = _fits(query)
    rows = _rows(tx, tenant, query, by, after or before, backwards=backwards)
    found: list[Row] = []
    for row in rows:
        if fits(row):
            found.append(row)
            if len(found) > limit:
                break
    more = len(found) > limit
    found = found[:limit]
    if backwards:
        found.reverse()
    ahead = more if not backwards else bool(found)
    behind = (more if backwards else bool(after)) and bool(found)
    return InboxPage(
        rows=found,
        total=_total(tx, tenant, query, fits),
        previous=place_of(found[0], query) if found and behind else None,
        next=place_of(found[-1], query) if found and ahead else None,
    )


def neighbours(tx: Transaction, tenant: str, row: Row, query: InboxQuery) -> tuple[str, str]:
    """The ids of the records before and after this one in the order of `query`, or empty."""
    place = place_of(row, query)
    around = [
        page(tx, tenant, query, limit=1, before=place).rows,
        page(tx, tenant, query, limit=1, after=place).rows,
    ]
    previous, following = (rows[0]["id"] if rows else "" for rows in around)
    return previous, following


def every(tx: Transaction, tenant: str, query: InboxQuery, *, limit: int) -> list[Row]:
    """The first `limit` records that are meant, over all pages."""
    fits, found = _fits(query), list[Row]()
    for row in _rows(tx, tenant, query, _COLUMNS[query.sort], "", backwards=False):
        if fits(row):
            found.append(row)
            if len(found) == limit:
                break
    return found


def place_of(row: Row, query: InboxQuery) -> str:
    """Where the record is in the order of `query`."""
    return f"{row[_COLUMNS[query.sort]]!r}~{row['id']}"


def _where(tx: Transaction, tenant: str, query: InboxQuery) -> dict[str, Any]:
    where: dict[str, Any] = {"tenant": tenant}
    if query.state != "all":
        where["state"] = query.state
    timed = _TIMED.get(query.state)
    return where if timed is None else where | {f"{timed} >=": timekeeping.now(tx)}


def _rows(
    tx: Transaction, tenant: str, query: InboxQuery, by: str, place: str, *, backwards: bool
) -> Iterator[Row]:
    """The rows behind a place in the order of `query`, or before it, from there on."""
    downwards = (query.sort == "newest") != backwards
    where, key = _where(tx, tenant, query), _parsed(place)
    sign, size = ("<=" if downwards else ">="), _AT_ONCE if query.searches else 32
    while True:
        still = dict(where)
        if key is not None:
            # The state's own limit may be on the same column.
            still[f"{by} {sign}"] = (
                max(key[0], where.get(f"{by} {sign}", key[0])) if sign == ">=" else key[0]
            )
        rows = tx.select("approvals", still, order_by=(by, "id"), descending=downwards, limit=size)
        fresh = [row for row in rows if key is None or _is_behind(row, by, key, downwards)]
        yield from fresh
        if len(rows) < size:
            return
        if fresh:
            key = (fresh[-1][by], fresh[-1]["id"])
        size *= 2


def _is_behind(row: Row, by: str, key: tuple[float, str], downwards: bool) -> bool:
    here = (row[by], row["id"])
    return here < key if downwards else here > key


def _parsed(place: str) -> tuple[float, str] | None:
    at, _, id = place.partition("~")
    try:
        return (float(at), id) if place else None
    except ValueError:
        return None


def _total(tx: Transaction, tenant: str, query: InboxQuery, fits: Callable[[Row], bool]) -> int:
    if not query.searches:
        return tx.count("approvals", _where(tx, tenant, query))
    rows = _rows(tx, tenant, query, _COLUMNS[query.sort], "", backwards=False)
    return sum(fits(row) for row in rows)


def _fits(query: InboxQuery) -> Callable[[Row], bool]:
    """Whether a row has every text of the query, in any case."""
    words = [_needle(word) for word in query.text.split()]
    columns = {"tool": _needle(query.tool), "run_id": _needle(query.run)}
    person = _needle(query.person)

    def fits(row: Row) -> bool:
        if any(needle not in _folded(row, name) for name, needle in columns.items() if needle):
            return False
        if person and person not in _folded(row, "principal", "requester"):
            return False
        if words:
            text = _folded(
                row, "id", "tool", "run_id", "principal", "requester", "payload", "edited"
            )
            if any(word not in text for word in words):
                return False
        return not query.risk or _has_risk(row, query.risk)

    return fits


def _needle(text: str) -> str:
    # Arguments are searched as JSON, in which a quote or a line end is an escape.
    return json.dumps(text.strip(), ensure_ascii=False)[1:-1].casefold()


def _folded(row: Row, *names: str) -> str:
    return "\n".join(str(row[name]) for name in names if row[name]).casefold()


def _has_risk(row: Row, risk: Risk) -> bool:
    if risk == "votes":
        return bool(row["votes_needed"] > 1)
    kept = json.loads(row["request"])
    if risk == "untrusted":
        return bool(kept.get("taint"))
    if risk == "irreversible":
        return bool(kept.get("irreversible"))
    return bool(kept.get("effects", "write") == risk)
