"""How a condition is written, read once for every store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast
from unicodedata import normalize

from agent_adapter.core.errors import StoreError
from agent_adapter.store.tables import Table

Comparison = Literal["=", "!=", "<", "<=", ">", ">=", "in", "has"]

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", "in", "has")


@dataclass(frozen=True, slots=True)
class Term:
    """One part of a condition: a column and how it is compared."""

    column: str
    comparison: Comparison


@lru_cache(maxsize=4096)
def term(written: str) -> Term:
    """Read `"due_at <="` as column and comparison; a bare name is equality."""
    column, _, comparison = written.partition(" ")
    comparison = comparison.strip() or "="
    if comparison not in _COMPARISONS:
        raise StoreError(
            f"condition {written!r}: no comparison {comparison!r};"
            f" use one of {', '.join(_COMPARISONS)}"
        )
    return Term(column, cast(Comparison, comparison))


def has_text(value: Any, wanted: str) -> bool:
    """Whether a text, or bytes of one, contains `wanted`, whatever the case of either."""
    if value is None:
        return False
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return _plain(wanted) in _plain(text)


def _plain(text: str) -> str:
    return text.lower() if text.isascii() else normalize("NFKC", text).casefold()


def listed(written: str, value: Any) -> list[Any]:
    """The values of an `in` condition; a string in place of a list is refused."""
    if isinstance(value, str | bytes):
        raise StoreError(f"condition {written!r} needs a list of values, not {value!r}")
    return list(value)


def refuse_none(written: str) -> StoreError:
    """The error of a comparison with `None` that no database can answer."""
    return StoreError(
        f"condition {written!r} compares with None, which nothing matches;"
        " only equality and != may be with None"
    )


def check_columns(table: Table, names: Iterable[str]) -> None:
    """Raise `StoreError` when `table` lacks one of these columns."""
    known = {column.name for column in table.columns}
    for name in names:
        if name not in known:
            raise StoreError(
                f"table {table.name!r} has no column {name!r}; it has {', '.join(sorted(known))}"
            )
