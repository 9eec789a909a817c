"""Operations that record the end of calls and always leave a row.

Where a text or value can never be stored, the fallback records the ending without it, marked so:
the call stays known, and no tool's text stops later writes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from agent_adapter.store.base import Transaction
from agent_adapter.store.calls import end_call, record_call
from agent_adapter.store.intents import Intent, Outcome

_UNSTORABLE = "the text of this outcome could not be stored"


def without_values(outcome: Outcome) -> Outcome:
    """The same ending, without what may be impossible to store."""
    text = None if outcome.error_kind is None else _UNSTORABLE
    kind = outcome.error_kind
    if kind is not None and not (type(kind) is str and kind.isascii()):
        kind = "tool-error"
    return dataclasses.replace(
        outcome, tag="", result=None, error_kind=kind, error_text=text, facts={"unstored": True}
    )


@dataclass(frozen=True, slots=True)
class EndCall:
    """Ends a call that was begun; `fallback` ends it without its values.

    `must_be_kept` tells a store that cannot write at present to drop it last of all.
    """

    outcome: Outcome
    must_be_kept: ClassVar[bool] = True

    def __call__(self, tx: Transaction) -> bool:
        """Record the ending; `False` if the row is no longer this process's to end."""
        return end_call(tx, self.outcome)

    def fallback(self, tx: Transaction) -> bool:
        """Record that it ended, and how."""
        return end_call(tx, without_values(self.outcome))


class RecordCall:
    """Records a read or idempotent call that has ended.

    `above` gives the ordinal up to which equal calls are held by others, when it is written.
    """

    __slots__ = ("_above", "_intent", "_outcome")

    def __init__(self, intent: Intent, outcome: Outcome, above: Callable[[], int]) -> None:
        self._intent = intent
        self._outcome = outcome
        self._above = above

    def __call__(self, tx: Transaction) -> None:
        """Write the call."""
        record_call(tx, self._intent, self._outcome, above=self._above())

    def fallback(self, tx: Transaction) -> None:
        """Write that it was made, and how it ended."""
        bare = dataclasses.replace(self._intent, arguments=b"{}")
        record_call(tx, bare, without_values(self._outcome), above=self._above())


def end_abandoned(tx: Transaction, call_key: str) -> None:
    """End a call of this process whose event loop was closed under it; a write is in doubt."""
    row = tx.get("calls", call_key)
    if row is None or row["state"] != "open" or row["owner_id"] != tx.owner_id:
        return
    ending: Literal["unknown", "failed"] = "unknown" if row["effects"] == "write" else "failed"
    text = "the event loop was closed under it"
    end_call(
        tx,
        Outcome(
            call_key=call_key,
            run_id=row["run_id"],
            ending=ending,
            error_kind="cancelled",
            error_text=text,
        ),
    )
