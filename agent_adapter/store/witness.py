"""Rows that the ledger vouches for: each has a digest in the chain of the run it belongs to.

A transaction notes the rows that an operation changes in these tables. The entry that the
operation appends carries their digests, so that `verify` can compare every column with what was
written last. A digest is keyed: what an erased text was cannot be guessed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter, itemgetter
from typing import Any

from pydantic_core import to_json

from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.tables import TABLES
from agent_adapter.store.text import UNWRITABLE, json_bytes

UPKEEP = "upkeep"
"""The run under which the ledger keeps what was done to the store as a whole."""

SWITCH = "writes-stopped"
CANCELLED = "cancelled:"
RETENTION = "retention:"
HOLD = "hold:"
"""Begin the names of rows of `meta`: a tenant's policy, and what is kept whatever its age."""

RULE = "rule:"
"""Begins the names of rows of `meta` with the rules of participants that were unregistered."""

_RUN_SCOPE = "run:"
LABELS = "labels:"
CHANNEL = "#channel:"
"""Begins the name of the chain that vouches for a channel; the rest is the channel's id."""

NETWORK = "#network"
"""The chain that vouches for participants, transition graphs, tasks and commands."""

PEOPLE = "#people:"
"""Begins the name of the chain that vouches for who has which role in a tenant; the rest is the
tenant's name."""

_DIGEST_BYTES = 16
_AT_ONCE = 500

Touched = dict[tuple[str, Any], tuple[Row, bool]]
"""Changed rows by table and key: the row, and whether it is still there."""


@dataclass(frozen=True, slots=True)
class _Witnessed:
    """One table: its key, the columns of a digest in a fixed order, and the chain of a row.

    `numbers` are the columns that a database gives back in another type than they may have here:
    name, type here, type there.
    """

    key: tuple[str, ...]
    columns: tuple[str, ...]
    of: Callable[[Row], tuple[Any, ...]]
    numbers: tuple[tuple[str, type, type], ...]
    chain: _Chain


_Chain = Callable[[Transaction, Row], str | None]


def _of_run(tx: Transaction, row: Row) -> str | None:
    return row["run_id"] or UPKEEP


def _of_record(tx: Transaction, row: Row) -> str | None:
    record = tx.get("approvals", row["approval_id"])
    return None if record is None else _of_run(tx, record)


def _of_scope(tx: Transaction, row: Row) -> str | None:
    return chain_of_scope(str(row["scope"]))


def chain_of_scope(scope: str) -> str:
    """The chain that vouches for the labels of a run or a conversation."""
    return scope.removeprefix(_RUN_SCOPE) if scope.startswith(_RUN_SCOPE) else LABELS + scope


def _of_name(tx: Transaction, row: Row) -> str | None:
    name = str(row["name"])
    if name.startswith(CANCELLED):
        return name.removeprefix(CANCELLED)
    if name.startswith(RULE):
        return NETWORK
    return UPKEEP if name == SWITCH or name.startswith((RETENTION, HOLD)) else None


def _of_store(tx: Transaction, row: Row) -> str | None:
    return UPKEEP


def _of_channel(tx: Transaction, row: Row) -> str | None:
    return CHANNEL + str(row["channel_id"])


def _of_turn(tx: Transaction, row: Row) -> str | None:
    turn = tx.get("turns", row["turn_id"])
    return None if turn is None else _of_channel(tx, turn)


def _of_audit(tx: Transaction, row: Row) -> str | None:
    return NETWORK if row["channel_id"] is None else _of_channel(tx, row)


def _of_network(tx: Transaction, row: Row) -> str | None:
    return NETWORK


def _of_membership(tx: Transaction, row: Row) -> str | None:
    return chain_of_people(row["tenant"] or "")


def chain_of_people(tenant: str) -> str:
    """The chain that vouches for the roles in a tenant; those in no tenant are the store's."""
    return PEOPLE + tenant if tenant else UPKEEP


_OF_CHANNELS: dict[str, _Chain] = {
    "channels": _of_channel,
    "channel_members": _of_channel,
    "envelopes": _of_channel,
    "turns": _of_channel,
    "expectations": _of_channel,
    "audit": _of_audit,
    "turn_waits": _of_turn,
    "staged": _of_turn,
}
_OF_NETWORK = ("identities", "graphs", "tasks", "checkpoints", "commands")

_CHAINS: dict[str, _Chain] = {
    "calls": _of_run,
    "approvals": _of_run,
    "votes": _of_record,
    "runs": _of_run,
    "usage": _of_run,
    "reservations": _of_run,
    "taints": _of_scope,
    "trusted_texts": _of_run,
    "meta": _of_name,
    "tokens": _of_store,
    "people": _of_store,
    "logins": _of_store,
    "memberships": _of_membership,
    **_OF_CHANNELS,
    **dict.fromkeys(_OF_NETWORK, _of_network),
}
UNANNOUNCED = frozenset((*_OF_CHANNELS, *_OF_NETWORK))
"""Tables of which a change gets an entry of its own accord: no operation has to append one."""

_CHANGES_UNSEEN = {"tokens": {"last_used_at"}}
"""Columns that tell nothing about what was decided, and change too often for an entry."""


_KEPT_AS: Mapping[str, tuple[type, type]] = {"real": (int, float), "int": (bool, int)}

_name = attrgetter("name")


def _declared() -> dict[str, _Witnessed]:
    found = {}
    for table in TABLES:
        if table.name not in _CHAINS:
            continue
        left_out = _CHANGES_UNSEEN.get(table.name, set())
        columns = sorted((c for c in table.columns if c.name not in left_out), key=_name)
        names = tuple(map(_name, columns))
        found[table.name] = _Witnessed(
            key=table.key,
            columns=names,
            of=itemgetter(*names),
            numbers=tuple((c.name, *_KEPT_AS[c.kind]) for c in columns if c.kind in _KEPT_AS),
            chain=_CHAINS[table.name],
        )
    return found


_OF_RUNS = tuple(table for table, chain in _CHAINS.items() if chain is _of_run)

WITNESSED: Mapping[str, _Witnessed] = _declared()
"""The tables whose rows are in the chains."""


def keys_of_channel(channel_id: str) -> frozenset[str]:
    """The keys of an operation that reads and changes one channel: the chain of its rows."""
    return frozenset((CHANNEL + channel_id,))


def scope_of(chain: str) -> str:
    """The scope whose labels the chain vouches for."""
    return chain.removeprefix(LABELS) if is_scope(chain) else _RUN_SCOPE + chain


def key_of_row(table: str, row: Row) -> tuple[Any, ...]:
    """The primary key of a row, as entries name it."""
    return tuple(row[name] for name in WITNESSED[table].key)


def chain_of(tx: Transaction, table: str, row: Row) -> str | None:
    """The chain that vouches for the row; `None` for a row that needs none."""
    return WITNESSED[table].chain(tx, row)


def is_scope(chain: str) -> bool:
    """Whether the chain is that of a conversation's labels, and not of a run."""
    return chain.startswith(LABELS)


def is_run(chain: str) -> bool:
    """Whether the chain is that of a run, or of what was done to the store as a whole."""
    return not (chain.startswith((LABELS, CHANNEL, PEOPLE)) or chain == NETWORK)


def row_digest(key: bytes, table: str, row: Row) -> str:
    """The keyed digest of every column that is set.

    Columns without a value are left out, so a column that a later version adds changes no digest.
    """
    witnessed = WITNESSED[table]
    known = {
        name: value
        for name, value in zip(witnessed.columns, witnessed.of(row), strict=True)
        if value is not None
    }
    # As a database gives them back: whole numbers of real columns, and claims as numbers.
    for name, written, kept in witnessed.numbers:
        if type(known.get(name)) is written:
            known[name] = kept(known[name])
    known[""] = table
    try:
        data = to_json(known)
    except UNWRITABLE:
        data = json_bytes(known)
    state = _keyed_state(key).copy()
    state.update(data)
    return str(state.hexdigest())


@lru_cache(maxsize=64)
def _keyed_state(key: bytes) -> Any:
    return blake2b(key=key, digest_size=_DIGEST_BYTES)


def digests_of_touched(tx: Transaction) -> dict[str, list[list[Any]]]:
    """For each chain `[table, *key, digest]` of the rows changed; no digest for a deleted one."""
    found: dict[str, list[list[Any]]] = {}
    for (table, _), (row, there) in tx.touched.items():
        chain = WITNESSED[table].chain(tx, row)
        if chain is not None:
            digest = row_digest(tx.key, table, row) if there else None
            found.setdefault(chain, []).append([table, *key_of_row(table, row), digest])
    return found


def rows_of(tx: Transaction, chain: str) -> Iterator[tuple[str, Row]]:
    """Every row, with its table, that the chain must vouch for."""
    if chain.startswith(CHANNEL):
        yield from _rows_of_channel(tx, chain.removeprefix(CHANNEL))
    elif chain == NETWORK:
        yield from ((table, row) for table in _OF_NETWORK for row in tx.select(table))
        yield from (("audit", row) for row in tx.select("audit", {"channel_id": None}))
    elif chain.startswith(PEOPLE):
        here = {"tenant": chain.removeprefix(PEOPLE)}
        yield from (("memberships", row) for row in tx.select("memberships", here))
    else:
        if not is_scope(chain):
            yield from _rows_of_run(tx, chain)
        yield from (("taints", row) for row in tx.select("taints", {"scope": scope_of(chain)}))
    if chain == UPKEEP:
        yield from (("meta", row) for row in tx.select("meta", {"name": SWITCH}))
        for prefix in (RETENTION, HOLD):
            yield from (("meta", row) for row in meta_rows(tx, prefix))
        for table in ("tokens", "people", "logins"):
            yield from ((table, row) for row in tx.select(table))
        yield from (("memberships", row) for row in tx.select("memberships", {"tenant": ""}))


def _rows_of_run(tx: Transaction, run_id: str) -> Iterator[tuple[str, Row]]:
    for table in _OF_RUNS:
        for row in tx.select(table, {"run_id": run_id}):
            yield table, row
            if table == "approvals":
                votes = tx.select("votes", {"approval_id": row["id"]})
                yield from (("votes", vote) for vote in votes)
    cancelled = tx.get("meta", CANCELLED + run_id)
    if cancelled is not None:
        yield "meta", cancelled


def meta_rows(tx: Transaction, prefix: str, limit: int | None = None) -> list[Row]:
    """Rows of `meta` whose name begins so, in the order of their names."""
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return tx.select("meta", {"name >=": prefix, "name <": end}, order_by="name", limit=limit)


def _rows_of_channel(tx: Transaction, channel_id: str) -> Iterator[tuple[str, Row]]:
    where = {"channel_id": channel_id}
    for table in ("channels", "channel_members", "expectations", "audit"):
        yield from ((table, row) for row in tx.select(table, where))
    turns = tx.select("turns", where)
    yield from (("turns", row) for row in turns)
    for start in range(0, len(turns), _AT_ONCE):
        ids = [row["turn_id"] for row in turns[start : start + _AT_ONCE]]
        for table in ("turn_waits", "staged"):
            yield from ((table, row) for row in tx.select(table, {"turn_id in": ids}))
    seq: Any = 0
    # Some at a time: bodies may be long.
    while page := tx.select("envelopes", {**where, "seq >": seq}, order_by="seq", limit=_AT_ONCE):
        yield from (("envelopes", row) for row in page)
        seq = page[-1]["seq"]


def chains_of_channels(tx: Transaction) -> set[str]:
    """The chains of every channel, and that of the participants."""
    return {NETWORK, *(CHANNEL + row["channel_id"] for row in tx.select("channels"))}


def chains_of_rows(tx: Transaction) -> set[str]:
    """The chains that the rows of all witnessed tables belong to; reads every row."""
    chains = set()
    for table in WITNESSED:
        for row in tx.select(table):
            chain = chain_of(tx, table, row)
            if chain is not None:
                chains.add(chain)
    return chains
