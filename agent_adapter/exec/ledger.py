"""The ledger for people: verified, listed and repaired."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json, to_json

from agent_adapter.core.canonical import tagged
from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.store import doubt, ledger
from agent_adapter.store.approvals import Refusal
from agent_adapter.store.base import Row, Store, Transaction

Anchor = tuple[int, str]
"""The length of a chain and its newest link, in hexadecimal: to be kept outside the store."""

CANNOT_SEE = (
    "a run that was deleted together with its chain head, and a chain that was cut back together "
    "with an older head, unless anchors from outside are given",
    "what was done with the store's key, which lies beside a local store",
)


_AT_ONCE = 200
"""Payloads that are in memory together while a chain is checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a verification found; `problems` is empty where the ledger is whole."""

    runs: int
    entries: int
    calls: int
    payloads: int
    erased: int
    in_doubt: int
    problems: tuple[str, ...] = ()
    cannot_see: tuple[str, ...] = CANNOT_SEE

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One link of a run's chain; `at` is seconds since the epoch."""

    run_id: str
    seq: int
    at: float
    kind: str
    call_key: str | None
    facts: dict[str, Any] = field(default_factory=dict)


async def verify(
    store: Store, run_id: str | None = None, *, anchored: dict[str, Anchor] | None = None
) -> Report:
    """Check every chain (or one run's): links, head, payloads, and the calls against them."""
    await store.flush()
    heads = await store.read(lambda tx: _heads(tx, run_id))
    if run_id is not None and not await store.read(
        lambda tx: tx.count("ledger", {"run_id": run_id})
    ):
        raise AgentAdapterError(f"no run {run_id} in {store.url}")
    totals = dict.fromkeys(("entries", "calls", "payloads", "erased"), 0)
    problems: list[str] = []
    for name in heads:
        await store.read(_check_of(name, totals, problems, (anchored or {}).get(name)))
    problems += [f"{name}: the run is gone" for name in (anchored or {}) if name not in heads]
    doubts = await store.read(lambda tx: len(doubt.in_doubt(tx)))
    return Report(
        runs=len(heads),
        entries=totals["entries"],
        calls=totals["calls"],
        payloads=totals["payloads"],
        erased=totals["erased"],
        in_doubt=doubts,
        problems=tuple(problems),
    )


async def anchors(store: Store) -> dict[str, Anchor]:
    """The head of every chain, to be kept outside the store."""
    await store.flush()
    rows = await store.read(lambda tx: tx.select("chain_heads", order_by="run_id"))
    return {row["run_id"]: (row["seq"], row["hash"].hex()) for row in rows}


async def entries(
    store: Store, run_id: str | None = None, *, limit: int = 1000, since: float | None = None
) -> list[Entry]:
    """The entries of one run, or the newest of all, in the order in which they were written.

    With `since`: those written at that time (seconds since the epoch) or later, the oldest first.
    """
    await store.flush()
    where: dict[str, Any] = {} if run_id is None else {"run_id": run_id}
    if since is not None:
        where["at >="] = since
    order = "seq" if run_id is not None else "at"
    newest = run_id is None and since is None
    rows = await store.read(
        lambda tx: tx.select("ledger", where, order_by=order, descending=newest, limit=limit)
    )
    return [_entry(row) for row in (reversed(rows) if newest else rows)]


async def in_doubt(store: Store, tenant: str | None = None) -> list[Row]:
    """Every write with unknown outcome, oldest first."""
    await store.flush()
    return await store.read(lambda tx: doubt.in_doubt(tx, tenant))


async def resolve(
    store: Store,
    call_key: str,
    *,
    reviewer: str,
    happened: bool,
    result: Any = None,
    reason: str | None = None,
) -> Row:
    """Record a person's decision on a write with unknown outcome; `result` is the value to replay.

    A write that did not happen may run again; one that did is replayed.
    """
    encoded = ("tagged", to_json(tagged(result))) if happened else None
    row = await store.write(
        lambda tx: doubt.resolve(
            tx, call_key, reviewer=reviewer, happened=happened, result=encoded, reason=reason
        )
    )
    if isinstance(row, Refusal):
        raise AgentAdapterError(f"{row.reason}; nothing was changed")
    return row


async def erase(store: Store, run_id: str) -> int:
    """Delete the arguments and results of a run; its chain stays valid. How many were erased."""
    return await store.write(lambda tx: ledger.erase(tx, run_id))


def _heads(tx: Transaction, run_id: str | None) -> list[str]:
    if run_id is not None:
        return [run_id]
    known = {row["run_id"] for row in tx.select("chain_heads")}
    return sorted(known | {row["run_id"] for row in tx.select("ledger", {"seq": 1})})


def _check_of(
    run_id: str, totals: dict[str, int], problems: list[str], anchor: Anchor | None
) -> Any:
    def op(tx: Transaction) -> None:
        found = _Chain(tx, run_id)
        found.check(anchor)
        problems.extend(f"{run_id}: {problem}" for problem in found.problems)
        for name in totals:
            totals[name] += getattr(found, name)

    return op


class _Chain:
    """One run's chain while it is checked."""

    def __init__(self, tx: Transaction, run_id: str) -> None:
        self.tx = tx
        self.run_id = run_id
        self.rows = tx.select("ledger", {"run_id": run_id}, order_by="seq")
        self.mine = {row["call_key"]: row for row in tx.select("calls", {"run_id": run_id})}
        self.entries = len(self.rows)
        self.calls = self.payloads = self.erased = 0
        self.problems: list[str] = []
        self.ended: dict[str, str] = {}
        self.begun: set[str] = set()
        self.decided: dict[str, str] = {}
        self.named: dict[str, str] = {}

    def check(self, anchor: Anchor | None) -> None:
        """Fill `problems` and the counts."""
        link = ledger.GENESIS
        for seq, row in enumerate(self.rows, start=1):
            if row["seq"] != seq:
                self.problems.append(f"entry {seq} is missing")
                return
            if not isinstance(row["body"], bytes):
                self.problems.append(f"entry {seq} was changed")
                return
            link = ledger.chain_hash(link, row["body"])
            if link != row["hash"]:
                self.problems.append(f"entry {seq} was changed")
                return
            self._read(row)
        self._check_head(link)
        self._check_anchor(anchor)
        self._check_payloads()
        self._check_calls()
        self._check_approvals()

    def _read(self, row: Row) -> None:
        facts = from_json(row["body"])
        same = (
            ("run", self.run_id),
            ("seq", row["seq"]),
            ("kind", row["kind"]),
            ("call", row["call_key"]),
        )
        if any(facts.get(name) != value for name, value in same):
            self.problems.append(f"entry {row['seq']} is not the one that was written there")
        key = row["call_key"]
        if row["kind"] == "approval-decided":
            self.decided[facts["approval"]] = facts["verdict"]
        if key is None:
            return
        if row["kind"] in ("intent", "call"):
            self.begun.add(key)
            self.ended.pop(key, None)
            self.named[f"{key}.arguments"] = facts["arguments"]
        if row["kind"] in ("outcome", "call", "resolved"):
            self.ended[key] = facts["ending"]
            if facts.get("result") is not None:
                self.named[f"{key}.result"] = facts["result"]

    def _moved(self) -> set[str]:
        """Calls that happen once over all runs and were begun again in another one."""
        rows = (self.tx.get("calls", key) for key in self.begun - self.mine.keys())
        return {
            row["call_key"]
            for row in rows
            if row is not None and row["once_key"] is not None and row["run_id"] != self.run_id
        }

    def _check_payloads(self) -> None:
        """Each payload has the digest of the newest entry that names it."""
        moved = self._moved()
        ids = [id for id in self.named if id.rpartition(".")[0] not in moved]
        for id, kept in self._kept(ids):
            wanted = self.named[id]
            self.payloads += 1
            if kept is None:
                self.problems.append(f"payload {id} is missing")
            elif kept["data"] is None:
                self.erased += 1
            elif not _is_kept(kept, wanted):
                self.problems.append(f"payload {id} was changed")

    def _kept(self, ids: list[str]) -> Iterator[tuple[str, Row | None]]:
        """Each id with its payload, read some at a time."""
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            rows = {row["id"]: row for row in self.tx.select("payloads", {"id in": some})}
            yield from ((id, rows.get(id)) for id in some)

    def _check_head(self, link: bytes) -> None:
        head = self.tx.get("chain_heads", self.run_id)
        if head is None:
            if self.rows:  # else a store in memory has forgotten the run since it was listed
                self.problems.append("the chain has no head")
        elif head["seq"] != len(self.rows) or head["hash"] != link:
            self.problems.append(f"the chain ends at {len(self.rows)}, its head says {head['seq']}")
        elif head["mac"] != ledger.head_mac(self.tx.key, self.run_id, head["seq"], head["hash"]):
            self.problems.append("the head was not written with this store's key")

    def _check_anchor(self, anchor: Anchor | None) -> None:
        if anchor is None:
            return
        seq, link = anchor
        if seq > len(self.rows) or (seq and self.rows[seq - 1]["hash"].hex() != link):
            self.problems.append(f"the chain does not hold the anchored entry {seq}")

    def _check_approvals(self) -> None:
        """Every decision that a record shows was written to the chain when it was made."""
        said = {"approved": "approved", "taken": "approved", "denied": "denied"}
        where = {"run_id": self.run_id, "state in": list(said)}
        for row in self.tx.select("approvals", where):
            if self.decided.get(row["id"]) != said[row["state"]]:
                self.problems.append(f"approval {row['id']} is {row['state']}, the chain is silent")

    def _check_calls(self) -> None:
        self.calls = len(self.mine)
        for key, row in self.mine.items():
            if key not in self.begun:
                self.problems.append(f"call {key} is in no entry")
            elif row["state"] == "done" and self.ended.get(key) != row["ending"]:
                self.problems.append(f"call {key} is {row['ending']}, the chain says otherwise")
            elif row["state"] == "open" and key in self.ended:
                self.problems.append(f"call {key} is open, the chain says {self.ended[key]}")
        missing = self.begun - self.mine.keys() - self._moved()
        self.problems += [f"call {key} was deleted" for key in sorted(missing)]


def _is_kept(payload: Row, wanted: str) -> bool:
    salt, data = payload["salt"], payload["data"]
    # Somebody who edits a database may leave text where bytes were.
    if not isinstance(salt, bytes) or not isinstance(data, bytes):
        return False
    return ledger.payload_digest(salt, data) == wanted


def _entry(row: Row) -> Entry:
    facts = json.loads(row["body"])
    known = {"v", "run", "seq", "at", "kind", "call"}
    return Entry(
        run_id=row["run_id"],
        seq=row["seq"],
        at=row["at"],
        kind=row["kind"],
        call_key=row["call_key"],
        facts={name: value for name, value in facts.items() if name not in known},
    )
