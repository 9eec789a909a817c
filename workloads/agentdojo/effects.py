"""Which of AgentDojo's functions only look."""

from __future__ import annotations

from agent_adapter.core.types import Effects

__all__ = ["effects_of"]

READING_VERBS = frozenset({"check", "get", "list", "read", "search"})
"""First words of the names of functions that only look; every other function changes or sends."""


def effects_of(name: str) -> Effects:
    """`read` for a function that only looks, `write` for all others."""
    return "read" if name.partition("_")[0] in READING_VERBS else "write"
