"""Rows of the store's tables, with JSON schemas made from the tables' declarations."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema

from agent_adapter.store.base import Row
from agent_adapter.store.tables import CALLS, OWNERS, Kind, Table

_JSON_TYPES: dict[Kind, str] = {
    "text": "string",
    "int": "integer",
    "real": "number",
    "blob": "string",
}
_TEXT = {"type": "string"}


def _schema(table: Table, **more: dict[str, Any]) -> WithJsonSchema:
    """The schema of a row as the API sends it, with the fields `more` besides the columns."""
    columns = {
        each.name: {"type": _JSON_TYPES[each.kind]}
        if each.name in table.key
        else {"anyOf": [{"type": _JSON_TYPES[each.kind]}, {"type": "null"}]}
        for each in table.columns
    }
    properties = columns | more
    return WithJsonSchema(
        {"type": "object", "properties": properties, "required": list(properties)}
    )


CallRow = Annotated[Row, _schema(CALLS)]
"""A row of `calls`."""

CallInDoubt = Annotated[Row, _schema(CALLS, text=_TEXT, known=_TEXT)]
"""A row of `calls` with its arguments as `text`, and with what is `known` of its outcome."""

ProcessRow = Annotated[Row, _schema(OWNERS, live={"type": "boolean"})]
"""A process that opened the store, and whether it still runs."""
