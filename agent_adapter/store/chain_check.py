"""Checks one chain: its links, and every row that it covers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic_core import from_json

from agent_adapter.store import ledger
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.text import unescape
from agent_adapter.store.witness import (
    WITNESSED,
    chains_of_rows,
    key_of_row,
    row_digest,
    rows_of,
)

_AT_ONCE = 200
"""Payloads that are in memory together while a chain is checked."""

_Key = tuple[Any, ...]
_NAMES = {
    "calls": "call",
    "approvals": "approval",
    "votes": "vote",
    "runs": "run",
    "usage": "use of limits",
    "reservations": "reservation",
    "taints": "label",
    "trusted_texts": "trusted text",
    "meta": "switch",
    "tokens": "token",
    "people": "person",
    "logins": "log-in",
    "memberships": "role",
    "channels": "channel",
    "channel_members": "participant",
    "envelopes": "envelope",
    "turns": "turn",
    "expectations": "deadline",
    "audit": "audit record",
    "turn_waits": "wait",
    "staged": "staged change",
    "identities": "identity",
    "graphs": "graph",
    "tasks": "task",
    "checkpoints": "checkpoint",
    "commands": "command",
}


class ChainCheck:
    """One chain while it is checked; `problems` has one text per finding."""

    def __init__(self, tx: Transaction, run_id: str) -> None:
        self.tx = tx
        self.run_id = run_id
        self.rows = tx.select("ledger", {"run_id": run_id}, order_by="seq")
        self.entries = len(self.rows)
        self.calls = self.payloads = self.erased = 0
        self.problems: list[str] = []
        self.seen: Counter[str] = Counter()
        self.trusted_from: float | None = None
        self.pruned: tuple[int, str] | None = None
        self._erasing = False
        self._ended: dict[str, str] = {}
        self._begun: set[str] = set()
        self._decided: dict[str, str] = {}
        self._named: dict[str, str] = {}
        self._witnessed: dict[_Key, tuple[str | None, float]] = {}
        self._moved: dict[str, bool] = {}

    @property
    def pruned_channels(self) -> int:
        """1 for what is left of a channel whose transcript was removed."""
        return int(self.pruned is not None)

    def check(self, anchor: tuple[int, str] | None) -> None:
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
        self._check_rows()

    def _read(self, row: Row) -> None:
        facts = from_json(row["body"])
        same = (
            ("run", self.run_id),
            ("seq", row["seq"]),
            ("at", row["at"]),
            ("kind", row["kind"]),
            ("call", row["call_key"]),
        )
        if any(_given(facts.get(name)) != value for name, value in same):
            self.problems.append(f"entry {row['seq']} is not the one that was written there")
        for table, *key, digest in facts.get("rows", ()):
            self._witnessed[(table, *map(_given, key))] = (digest, row["at"])
        if row["kind"] == "approval-decided":
            self._decided[facts["approval"]] = facts["verdict"]
        elif row["kind"] == "trusted":
            self._named[facts["payload"]] = facts["kept"]
        elif row["kind"] == "erased":
            self._erasing = True
        elif row["kind"] == "pruned" and row["seq"] == 1 and "digest" in facts:
            self.pruned = (facts["entries"], facts["digest"])
        elif row["kind"] == "baseline":
            self.trusted_from = row["at"]
        if row["call_key"] is not None:
            self._read_of_call(row["call_key"], row["kind"], facts)

    def _read_of_call(self, key: str, kind: str, facts: dict[str, Any]) -> None:
        result = facts.get("result")
        if kind in ("intent", "call"):
            self._begun.add(key)
            self._ended.pop(key, None)
            self._named[f"{key}.arguments"] = facts["arguments"]
        if kind in ("outcome", "call", "resolved"):
            self._ended[key] = facts["ending"]
            if result is not None:
                self._named[f"{key}.result"] = result
        elif kind == "late-outcome" and result is not None:
            self._named[f"{key}.late"] = result

    def _check_head(self, link: bytes) -> None:
        head = self.tx.get("chain_heads", self.run_id)
        if head is None:
            if self.rows:  # else a store in memory has forgotten the run since it was listed
                self.problems.append("the chain has no head")
        elif head["seq"] != len(self.rows) or head["hash"] != link:
            self.problems.append(f"the chain ends at {len(self.rows)}, its head says {head['seq']}")
        elif head["mac"] != ledger.head_mac(self.tx.key, self.run_id, head["seq"], head["hash"]):
            self.problems.append("the head was not written with this store's key")

    def _check_anchor(self, anchor: tuple[int, str] | None) -> None:
        if anchor is None:
            return
        seq, link = anchor
        if self.pruned is not None and seq <= self.pruned[0]:
            if seq == self.pruned[0] and link != self.pruned[1]:
                self.problems.append(f"the pruned chain did not hold the anchored entry {seq}")
            return
        if seq > len(self.rows) or (seq and self.rows[seq - 1]["hash"].hex() != link):
            self.problems.append(f"the chain does not hold the anchored entry {seq}")

    def _check_payloads(self) -> None:
        """What lies under an id is what the newest entry that names it says."""
        ids = [id for id in self._named if not self._has_moved(id.rpartition(".")[0])]
        for id, kept in self._kept(ids):
            self.payloads += 1
            if kept is None:
                self.problems.append(f"payload {id} is missing")
            elif kept["run_id"] != self.run_id:
                self.problems.append(f"payload {id} was given to another run")
            elif kept["data"] is None:
                self.erased += 1
                if not self._erasing:
                    self.problems.append(f"payload {id} was emptied, and no entry says so")
            elif not _is_kept(kept, self._named[id]):
                self.problems.append(f"payload {id} was changed")

    def _kept(self, ids: list[str]) -> Iterator[tuple[str, Row | None]]:
        """Each id with its payload, read some at a time."""
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            rows = {row["id"]: row for row in self.tx.select("payloads", {"id in": some})}
            yield from ((id, rows.get(id)) for id in some)

    def _check_rows(self) -> None:
        """Every row is as the newest entry that names it left it."""
        left = dict(self._witnessed)
        for table, row in rows_of(self.tx, self.run_id):
            self.seen[table] += 1
            digest, _ = left.pop((table, *key_of_row(table, row)), (None, 0.0))
            if table == "calls":
                self._check_call(row)
            elif table == "approvals":
                self._check_approval(row)
            if digest is None:
                self.problems.append(f"{_named(table, row)} is in no entry")
            elif not self._is(digest, table, row):
                self.problems.append(f"{_named(table, row)} was changed")
        for (table, *key), (digest, _) in left.items():
            if digest is None or (table == "calls" and self._has_moved(key[0])):
                continue
            self.problems.append(f"{_NAMES[table]} {' '.join(map(str, key))} was deleted")

    def _is(self, digest: str, table: str, row: Row) -> bool:
        try:
            return row_digest(self.tx.key, table, row) == digest
        except (ValueError, TypeError):  # the value was changed to one that the column cannot hold
            return False

    def _check_call(self, row: Row) -> None:
        self.calls += 1
        key, ended = row["call_key"], self._ended.get(row["call_key"])
        if key not in self._begun:
            return
        if row["state"] == "done" and ended != row["ending"]:
            self.problems.append(f"call {key} is {row['ending']}, the chain says otherwise")
        elif row["state"] == "open" and ended is not None:
            self.problems.append(f"call {key} is open, the chain says {ended}")

    def _check_approval(self, row: Row) -> None:
        """Every decision that a record shows was written to the chain when it was made."""
        said = _DECISIONS.get(row["state"])
        if said is not None and self._decided.get(row["id"]) != said:
            self.problems.append(f"approval {row['id']} is {row['state']}, the chain is silent")

    def _has_moved(self, call_key: str) -> bool:
        """Whether the call was begun again in another run, whose chain says so later than here."""
        if call_key not in self._moved:
            self._moved[call_key] = self._moved_away(call_key)
        return self._moved[call_key]

    def _moved_away(self, call_key: str) -> bool:
        row = self.tx.get("calls", call_key)
        if row is None or row["run_id"] == self.run_id:
            return False
        there = {"call_key": call_key, "run_id": row["run_id"]}
        entries = self.tx.select("ledger", there, order_by="seq", descending=True, limit=1)
        _, here = self._witnessed.get(("calls", call_key), (None, 0.0))
        return bool(entries) and entries[0]["at"] >= here


_DECISIONS = {
    "approved": "approved",
    "taken": "approved",
    "denied": "denied",
    "answered": "answered",
}
"""The verdict that the chain must have for a record in that state."""


def beyond_chains(tx: Transaction, seen: Counter[str], chains: Iterable[str]) -> list[str]:
    """Rows that belong to no chain at all; reads them only where the counts differ."""
    if all(tx.count(table) <= seen[table] for table in WITNESSED if table != "meta"):
        return []
    known = {*chains, *(row["run_id"] for row in tx.select("chain_heads"))}
    return [f"{chain}: there are rows, and no chain" for chain in chains_of_rows(tx) - known]


def _given(value: Any) -> Any:
    return unescape(value) if isinstance(value, str) else value


def _named(table: str, row: Row) -> str:
    return f"{_NAMES[table]} {' '.join(str(part) for part in key_of_row(table, row))}"


def _is_kept(payload: Row, wanted: str) -> bool:
    salt, data = payload["salt"], payload["data"]
    # An edited database may have text in place of bytes.
    if not isinstance(salt, bytes) or not isinstance(data, bytes):
        return False
    return ledger.payload_digest(salt, data) == wanted
