"""The schema's revisions, oldest first; the last is what this version of the library uses."""

from __future__ import annotations

REVISIONS: tuple[str, ...] = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0016",
)
"""Known revisions; a file with another one is newer than this library."""

HEAD = REVISIONS[-1]
"""What a store is brought to when it is opened."""

_NAMES_ROWS = "0008"


def names_rows(revision: str) -> bool:
    """Whether the chains of such a store name the rows that they vouch for."""
    return REVISIONS.index(revision) >= REVISIONS.index(_NAMES_ROWS)
