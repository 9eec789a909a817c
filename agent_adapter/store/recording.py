"""Operations that record the beginning and the end of calls, with the keys that they need.

Those of an end always leave a row. Where a text or value can never be stored, the fallback records
the ending without it, marked so: the call stays known, and no tool's text stops later writes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from agent_adapter.store import identity, switch
from agent_adapter.store.approvals import Take
from agent_adapter.store.base import Read, Transaction
from agent_adapter.store.calls import begin_call, end_call, record_call
from agent_adapter.store.identity import key_of
from agent_adapter.store.intents import Begun, Intent, Outcome, Reserve

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


@dataclass(slots=True, eq=False)
class BeginCall:
    """Begins a call; what it did is also in `begun`, for a caller that does not wait any more."""

    intent: Intent
    consume: Take | None
    reserve: Reserve | None
    begun: list[Begun] = field(default_factory=list)

    def __call__(self, tx: Transaction) -> Begun:
        """Begin it, or return why it does not begin."""
        self.begun[:] = [begin_call(tx, self.intent, consume=self.consume, reserve=self.reserve)]
        return self.begun[0]

    def reads(self) -> list[Read]:
        """What `begin_call` looks at for a call that is new."""
        intent = self.intent
        return [
            *switch.reads(run_id=intent.run_id, root_run_id=intent.root_run_id, write=True),
            *identity.reads(intent),
            Read("chain_heads", key=(intent.run_id,)),
        ]

    def keys(self) -> set[str] | None:
        """Its run, that of its limits, its conversation, its turn, the key that makes it once."""
        intent = self.intent
        keys = {intent.run_id}
        if intent.fence is not None:
            looked_at = getattr(intent.fence, "keys", None)
            if looked_at is None:
                return None  # what it looks at is not known
            keys |= looked_at()
        if self.reserve is not None:
            keys.add(self.reserve.run_id)
        if intent.conversation is not None:
            keys.add(intent.conversation)  # an unfinished call of it may be gone on with
        return keys | _once(intent)


def _once(intent: Intent) -> set[str]:
    return set() if intent.once_key is None else {key_of(intent, 1)}


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

    def reads(self) -> list[Read]:
        """The row of the call, and the head of its run."""
        outcome = self.outcome
        return [
            Read("calls", key=(outcome.call_key,)),
            Read("chain_heads", key=(outcome.run_id,)),
        ]

    def keys(self) -> set[str]:
        """Its run."""
        return {self.outcome.run_id}


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

    def reads(self) -> list[Read]:
        """What tells its ordinal, and the head of its run."""
        run = Read("chain_heads", key=(self._intent.run_id,))
        return [run] if self._intent.n else [run, *identity.reads(self._intent)[-1:]]

    def keys(self) -> set[str]:
        """Its run, and the key under which it is once."""
        return {self._intent.run_id} | _once(self._intent)


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
