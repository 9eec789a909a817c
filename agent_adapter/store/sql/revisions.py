"""The schema's revisions, oldest first; the last is what this version of the library uses."""

from __future__ import annotations

REVISIONS: tuple[str, ...] = ("0001", "0002", "0003", "0004")
"""Known revisions; a file with another one is newer than this library."""

HEAD = REVISIONS[-1]
"""What a store is brought to when it is opened."""
