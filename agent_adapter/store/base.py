"""The protocol of stores: one writer, atomic operations over named tables, a clock and a key.

An *operation* is a plain function `op(tx) -> value` over a `Transaction`. A store runs it whole or
not at all, one operation at a time. Everything durable in the library is such a function, so the
memory store and every database share one logic. An operation must be quick, must do no I/O of its
own, and may be run again from the start when a batch is rolled back: it keeps nothing outside `tx`.
A store runs one with `agent_adapter.store.ledger.run`, which writes the operation's ledger entries.

An operation may have an attribute `fallback`, another operation: a store runs that one instead
where the values of the first cannot be stored.

It may have an attribute `keys`, a function without arguments: the names of all that it depends on
and changes (chains of the ledger, and other keys that two operations can share), or `None`. A store
with several writers runs operations without a key in common beside each other, and one that names
none alone.

It may have an attribute `reads`, a function without arguments: the reads (`Read`) that it will most
likely make first. A store may make those of several operations together.

Conditions (`where`) are mappings. `{"run_id": x}` is equality, `{"due_at <=": x}` compares with
`<`, `<=`, `>`, `>=` or `!=`, `{"state in": [...]}` is membership, `{"owner_id": None}` is SQL's
`IS NULL`, `{"tool has": "pay"}` is true of a text that contains another, whatever the case. All of
them must hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from agent_adapter.store.uptime import Uptime

T = TypeVar("T")

Row = dict[str, Any]
"""Column name to value: `str`, `int`, `float`, `bytes` or `None`."""

Condition = Mapping[str, Any]
"""Column, optionally with an operator, to value."""


OWNER: Any = object()
"""In the condition of a `Read`: the owner id of the transaction."""


@dataclass(frozen=True, slots=True)
class Read:
    """One `select` of an operation, or with `key` one `get`."""

    table: str
    where: Condition = field(default_factory=dict)
    order_by: str | Sequence[str] = ()
    descending: bool = False
    limit: int | None = None
    key: tuple[Any, ...] | None = None


Entry = tuple[str, str, str | None, dict[str, Any]]
"""A ledger entry to be written: its run, kind, call and facts."""


class Transaction(Protocol):
    """The tables inside one operation; see `agent_adapter.store.tables` for what they hold."""

    now: float
    """Seconds since the epoch by the store's clock; one value per operation."""

    owner_id: str
    """Identifies this process as the owner of rows: new at every start and after a fork."""

    key: bytes
    """The store's secret for keyed hashes and chain heads (32 bytes)."""

    uptime: Uptime
    """How long the machine has been running: what a deadline goes by where the clock was set."""

    memo: dict[Any, Row]
    """A cache of rows of this process; emptied when another process may have changed them."""

    memo_lasts: bool
    """Whether the memo outlives the operation, so that what every operation asks is kept there."""

    @property
    def wrote(self) -> int:
        """Rows that this operation has changed so far."""
        ...

    touched: dict[tuple[str, Any], tuple[Row, bool]]
    """Rows of witnessed tables that the operation has changed, and whether each is still there."""

    pending: list[Entry]
    """Ledger entries that `agent_adapter.store.ledger.run` writes when the operation ends."""

    def get(self, table: str, *key: Any) -> Row | None:
        """The row with that primary key, as a copy."""
        ...

    def insert(self, table: str, row: Row) -> bool:
        """Add `row` (missing columns are `None`); `False`, changing nothing, if its key exists."""
        ...

    def update(self, table: str, where: Condition, values: Row) -> int:
        """Set `values` in every matching row; how many there were."""
        ...

    def delete(self, table: str, where: Condition) -> int:
        """Remove every matching row; how many there were."""
        ...

    def select(
        self,
        table: str,
        where: Condition | None = None,
        *,
        order_by: str | Sequence[str] = (),
        descending: bool = False,
        limit: int | None = None,
    ) -> list[Row]:
        """Matching rows as copies, in the order of the named columns."""
        ...

    def count(self, table: str, where: Condition | None = None) -> int:
        """How many rows match."""
        ...

    def is_live(self, owner_id: str) -> bool:
        """Whether the process with that owner id still runs."""
        ...


Operation = Callable[[Transaction], T]


class Store(Protocol):
    """A store; safe to use from several event loops and threads."""

    url: str
    """Where it is, as `open_store` takes it, without a password."""

    durable: bool
    """Whether what is written survives the process."""

    key: bytes
    """The store's secret for keyed hashes (32 bytes)."""

    @property
    def owner_id(self) -> str:
        """Identifies this process as the owner of rows: new at every start and after a fork."""
        ...

    async def write(self, op: Operation[T]) -> T:
        """Run `op`; returns its value when its changes are durable.

        A cancelled caller does not cancel the operation.
        """
        ...

    def post(self, op: Operation[Any]) -> None:
        """Queue `op` without waiting; posts and writes of one thread keep their order.

        An operation that raises is logged. What is posted is lost if the process dies first.
        """
        ...

    async def read(self, op: Operation[T]) -> T:
        """Run `op`, which only reads, over a snapshot that has every write that has returned."""
        ...

    async def flush(self) -> None:
        """Return when everything posted so far is durable."""
        ...

    async def aclose(self) -> None:
        """Flush, then close files and threads; a second call does nothing."""
        ...
