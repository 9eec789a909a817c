"""What waits for the writer: operations, who asked for them, and what came of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.errors import StoreError
from agent_adapter.store.base import Operation

Loop = asyncio.AbstractEventLoop
Future = asyncio.Future[Any]


@dataclass(slots=True, eq=False)
class Job:
    """An operation, who waits for it, and what came of it.

    `written` is set where the transaction turned out to be committed although nobody said so;
    `alone` where the operation cannot run beside those of other processes, `plain` where it runs
    statement by statement.
    """

    op: Operation[Any]
    at: float | None
    loop: Loop | None
    future: Future | None
    value: Any = None
    error: BaseException | None = None
    written: bool = False
    alone: bool = False
    plain: bool = False


class OtherwiseAgain(Exception):
    """An operation's values cannot be stored; the batch is taken back and its fallback runs."""


class OperationFailed(Exception):
    """An operation raised after it had written; the batch is taken back."""


def closed(name: str) -> StoreError:
    """The error of an operation that came after the end."""
    return StoreError(f"{name}: this store is closed; open it again")


class StorePlaceLost(Exception):
    """The database is not where it was opened; the text says what to do."""


def unwritten(name: str, error: BaseException, advice: str) -> StoreError:
    """The error of an operation that could not be written, with its cause and the fix."""
    why = " ".join(str(error).split()) or type(error).__name__
    text = why if isinstance(error, StorePlaceLost) else f"cannot write {name}: {why}; {advice}"
    found = StoreError(text)
    found.__cause__ = error
    return found
