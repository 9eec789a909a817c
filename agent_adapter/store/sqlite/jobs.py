"""What waits for the writer: operations, who asked for them, and what came of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.errors import StoreError
from agent_adapter.store.base import Operation
from agent_adapter.store.sqlite.file import FileMoved

Loop = asyncio.AbstractEventLoop
Future = asyncio.Future[Any]


@dataclass(slots=True, eq=False)
class Job:
    """An operation, who waits for it, and what came of it."""

    op: Operation[Any]
    at: float | None
    loop: Loop | None
    future: Future | None
    value: Any = None
    error: BaseException | None = None


class OtherwiseAgain(Exception):
    """An operation's values cannot be stored; the batch is taken back and its fallback runs."""


class OperationFailed(Exception):
    """An operation raised after it had written; the batch is taken back."""


def closed(name: str) -> StoreError:
    """The error of an operation that came after the end."""
    return StoreError(f"{name}: this store is closed; open it again")


def unwritten(name: str, error: BaseException) -> StoreError:
    """The error of an operation that could not be written, with its cause and the fix."""
    why = str(error) or type(error).__name__
    advice = "see that the disk has room, the file is there and no other program holds it"
    text = why if isinstance(error, FileMoved) else f"cannot write {name}: {why}; {advice}"
    found = StoreError(text)
    found.__cause__ = error
    return found
