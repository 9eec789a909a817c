"""The text gate: every text can be stored, and comes back as it was.

UTF-8 has no lone surrogates, and databases cut texts at NUL. Both are written as U+FDD0, a code
point that Unicode keeps free of characters, and four hexadecimal digits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

MARK = "\ufdd0"
"""Stands before the digits; one in a text is escaped as well."""

unusual = re.compile("[^\x01-\x7f]").search
"""Finds what `escape` must look at; texts without it are stored as they are."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff\ufdd0]")
_ESCAPED = re.compile("\ufdd0(0000|d[89a-f][0-9a-f]{2}|fdd0)")


def escape(text: str) -> str:
    """`text` as a database can keep it; nearly always the very same object."""
    if unusual(text) is None or _UNSTORABLE.search(text) is None:
        return text
    return _UNSTORABLE.sub(lambda found: f"{MARK}{ord(found[0]):04x}", text)


def unescape(text: str) -> str:
    """The text that `escape` was given."""
    # Texts of version 0.1 bear no marks; a mark without its digits stays.
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if MARK in text else text


def escaped(value: Any) -> Any:
    """A JSON value with every text in it escaped."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, Mapping):
        return {escaped(name): escaped(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [escaped(item) for item in value]
    return value


UNWRITABLE = (PydanticSerializationError, UnicodeEncodeError)
"""What JSON raises for a text that UTF-8 cannot carry."""


def json_bytes(value: Any) -> bytes:
    """JSON of a value whose texts may hold anything."""
    try:
        return to_json(value)
    except UNWRITABLE:
        return to_json(escaped(value))
