"""How a table is declared: its name, its columns, its key and its indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "int", "real", "blob"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; all but those of the primary key may be `None`."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Table:
    """One table."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    indexes: tuple[tuple[str, ...], ...] = ()


def columns_of(declared: str) -> tuple[Column, ...]:
    """Columns written as `name:kind`, separated by blanks; without a kind it is `text`."""
    kinds: dict[str, Kind] = {"text": "text", "int": "int", "real": "real", "blob": "blob"}
    columns = []
    for line in declared.split():
        name, _, kind = line.partition(":")
        columns.append(Column(name, kinds[kind or "text"]))
    return tuple(columns)
