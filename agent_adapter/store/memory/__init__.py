"""The store that ends with its process."""

from __future__ import annotations

from agent_adapter.store.memory.store import MemoryStore, open_memory

__all__ = ["MemoryStore", "open_memory"]
