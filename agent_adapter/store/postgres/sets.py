"""Statements over many rows of a table at once: their values come as one array per column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_adapter.store.tables import TABLES, Kind, Table
from agent_adapter.store.text import escape, unusual

_ARRAYS: Mapping[Kind, str] = {
    "text": "text[]",
    "int": "bigint[]",
    "real": "float8[]",
    "blob": "bytea[]",
}
_DECLARED: Mapping[str, Table] = {table.name: table for table in TABLES}


def insertion(table: str) -> str:
    """Adds rows; takes an array for each column. Divides by zero if the key of one is there."""
    declared = _DECLARED[table]
    names = [column.name for column in declared.columns]
    added = (
        f'INSERT INTO "{table}" ({_listed(names)}) SELECT * FROM {_arrays(declared, names)}'  # noqa: S608 - names of our tables
        " ON CONFLICT DO NOTHING"
    )
    return _of_all(added, declared, names[0])


def change(table: str, columns: Sequence[str]) -> str:
    """Sets the columns of rows; takes an array for each column of the key and each of these.

    Divides by zero if one of the rows is not there.
    """
    declared = _DECLARED[table]
    names = [*declared.key, *columns]
    given = ", ".join(f'"new_{name}"' for name in names)
    sets = ", ".join(f'"{name}" = given."new_{name}"' for name in columns)
    same = " AND ".join(f'"{table}"."{name}" = given."new_{name}"' for name in declared.key)
    values = f"{_arrays(declared, names)} AS given({given})"
    changed = f'UPDATE "{table}" SET {sets} FROM {values} WHERE {same}'  # noqa: S608 - as above
    return _of_all(changed, declared, names[0])


def by_key(table: str) -> str:
    """Finds rows by a key of one column; takes an array."""
    declared = _DECLARED[table]
    (key,) = declared.key
    names = _listed([column.name for column in declared.columns])
    return f'SELECT {names} FROM "{table}" WHERE "{key}" = ANY($1::{_array(declared, key)})'  # noqa: S608 - as above


def arrays(table: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """The values of the rows, an array for each column, as the database keeps them."""
    kinds = _kinds(_DECLARED[table])
    return [[_kept(kinds[name], row[name]) for row in rows] for name in names]


def _of_all(statement: str, declared: Table, first: str) -> str:
    # The server refuses, and not we: so COMMIT need not wait for our look at the numbers.
    rows = f"cardinality($1::{_array(declared, first)})"
    return f"WITH done AS ({statement} RETURNING 1) SELECT 1 / (count(*) = {rows})::int FROM done"  # noqa: S608 - as above


def _kept(kind: Kind, value: Any) -> Any:
    if value is None:
        return None
    if kind == "text":
        return escape(value) if unusual(value) else value
    if kind == "int":
        return int(value)
    return float(value) if kind == "real" else value


def _kinds(declared: Table) -> dict[str, Kind]:
    return {column.name: column.kind for column in declared.columns}


def _array(declared: Table, name: str) -> str:
    return _ARRAYS[_kinds(declared)[name]]


def _arrays(declared: Table, names: Sequence[str]) -> str:
    given = (f"${place}::{_array(declared, name)}" for place, name in enumerate(names, 1))
    return f"unnest({', '.join(given)})"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
