"""Texts of others made inert: nothing in them can hide, reorder, or pose as another line."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from typing import Any

MAX_NAME = 256
"""The most characters of an id or a name that are kept or shown."""

# Letters and marks that draw nothing: fillers, joiners, variation selectors.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")


def visible(text: str) -> str:
    """`text` with control, zero-width and bidirectional characters written as escapes.

    Line ends are kept: `one_line` writes these too.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(char) for char in text)


def text_of(arguments: Mapping[str, Any]) -> str:
    """Arguments as indented JSON in which nothing is hidden."""
    return visible(json.dumps(arguments, ensure_ascii=False, indent=2))


def one_line(text: str) -> str:
    """`text` made visible on one line."""
    return visible(text).replace("\n", "\\n")


def short(name: str) -> str:
    """An id or a name on one line of at most 256 characters; a longer one ends in its hash."""
    return bounded(one_line(bounded(name)))


def bounded(name: str) -> str:
    """`name`, or, above 256 characters, its beginning and its hash: still one of its own."""
    if len(name) <= MAX_NAME:
        return name
    end = "…" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:40]
    return name[: MAX_NAME - len(end)] + end


def _shown(char: str) -> str:
    hidden = char in _BLANK or unicodedata.category(char) in ("Cf", "Cn", "Co")
    variation = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    if char == "\n" or (char.isprintable() and not hidden and not variation):
        return char
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
