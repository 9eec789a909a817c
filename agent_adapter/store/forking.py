"""Keeps stores usable across `os.fork`: pause before it, restart in the child.

A fork copies memory but only the calling thread. A lock that another thread holds stays locked in
the child forever, and SQLite forbids using a connection, or even closing it, across a fork.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from typing import Protocol

_WAIT_SECONDS = 5.0


class Lock(Protocol):
    """What is used of `threading.RLock()`."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool:
        """Take it; whether that was possible in time."""
        ...

    def release(self) -> None:
        """Let go of it."""
        ...


class Forkable(Protocol):
    """Something with locks, threads or files that a forked child must not share."""

    def before_fork(self) -> None:
        """Take every lock, so that the child's copy is whole."""
        ...

    def after_fork_in_parent(self) -> None:
        """Release the locks."""
        ...

    def after_fork_in_child(self) -> None:
        """Replace locks, threads, files and the owner id."""
        ...


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_held: list[Forkable] = []


def watch_forks(store: Forkable) -> None:
    """Call `store`'s three methods around every fork while it exists."""
    _watched.add(store)


def take_all(locks: Iterable[Lock]) -> list[Lock]:
    """The locks that could be taken within 5 s each; a fork does not wait forever."""
    return [lock for lock in locks if lock.acquire(timeout=_WAIT_SECONDS)]


def release_all(taken: list[Lock]) -> None:
    """Release the locks that `take_all` returned."""
    for lock in reversed(taken):
        lock.release()
    taken.clear()


def _before() -> None:
    _held[:] = list(_watched)
    for store in _held:
        store.before_fork()


def _after_in_parent() -> None:
    for store in reversed(_held):
        store.after_fork_in_parent()
    _held.clear()


def _after_in_child() -> None:
    for store in reversed(_held):
        store.after_fork_in_child()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
