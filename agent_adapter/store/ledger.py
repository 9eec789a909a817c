"""Operations on the ledger: one append-only hash chain per run, with payloads stored apart."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic_core import to_json

from agent_adapter.store.base import Operation, Row, Transaction
from agent_adapter.store.text import UNWRITABLE, json_bytes
from agent_adapter.store.witness import (
    UNANNOUNCED,
    chain_of,
    chain_of_scope,
    chains_of_channels,
    digests_of_touched,
    is_run,
    key_of_row,
    row_digest,
    rows_of,
)

T = TypeVar("T")

VERSION = 1
GENESIS = b"\x00" * 32


def chain_hash(previous: bytes, body: bytes) -> bytes:
    """The hash of one link: SHA-256 over the previous hash and the stored bytes."""
    return hashlib.sha256(previous + body).digest()


def head_mac(key: bytes, run_id: str, seq: int, link: bytes) -> bytes:
    """The keyed code of the newest link: HMAC-SHA-256."""
    return hmac.digest(
        key, f"{run_id}\x00{seq}\x00".encode("utf-8", "surrogatepass") + link, "sha256"
    )


def payload_digest(salt: bytes, data: bytes) -> str:
    """The salted digest that the chain holds in place of a payload."""
    return hashlib.sha256(salt + data).hexdigest()


def append(
    tx: Transaction, run_id: str, kind: str, call_key: str | None, facts: Mapping[str, Any]
) -> None:
    """Add one entry to the run's chain when the operation ends.

    With it go the digests of all rows that the operation changes. A chain whose head is not what
    the store's key sealed goes on without a seal: nothing is lost, and `verify` reports it for
    ever.
    """
    tx.pending.append((run_id, kind, call_key, dict(facts)))


def run(op: Operation[T], tx: Transaction) -> T:
    """Run the operation, then write the entries that it has appended."""
    tx.touched.clear()
    tx.pending.clear()
    value = op(tx)
    if tx.pending or (tx.touched and any(table in UNANNOUNCED for table, _ in tx.touched)):
        _write_entries(tx)
    return value


def baseline(
    tx: Transaction,
    chain: str,
    kind: str = "baseline",
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Record the rows of the chain as they are found; earlier changes remain unknown.

    For a store of a version whose chains named no rows, of which `verify` says since when it can
    tell, and for what is left of a channel that was pruned.
    """
    found = list(rows_of(tx, chain))
    if not found and not tx.count("ledger", {"run_id": chain}):
        return
    tx.touched.update({(table, key_of_row(table, row)): (row, True) for table, row in found})
    append(tx, chain, kind, None, facts or {})


def unvouched(tx: Transaction) -> list[str]:
    """The chains of a store whose rows no entry names yet."""
    chains = {row["run_id"] for row in tx.select("chain_heads")}
    chains |= {chain_of_scope(row["scope"]) for row in tx.select("taints")}
    return sorted(chains | chains_of_channels(tx))


def forget(tx: Transaction, run_id: str) -> None:
    """Delete the chain: its rows were deleted on purpose, which another entry records."""
    for (table, key), (row, _) in list(tx.touched.items()):
        if chain_of(tx, table, row) in (run_id, None):
            del tx.touched[table, key]
    tx.memo.pop(run_id, None)


def _write_entries(tx: Transaction) -> None:
    """Write what is pending; the last entry of each chain carries the digests of its rows."""
    heads: dict[str, Row] = {}
    for run_id, _, _, facts in tx.pending:
        if run_id not in heads:
            heads[run_id] = _begun(tx, run_id, facts)
    rows = digests_of_touched(tx)
    last = {run_id: place for place, (run_id, *_) in enumerate(tx.pending)}
    for place, (run_id, kind, call_key, facts) in enumerate(tx.pending):
        mine = rows.pop(run_id, []) if last[run_id] == place else []
        heads[run_id] = _write(tx, heads[run_id], run_id, kind, call_key, facts, mine)
    # Rows of other runs: the limits of the run around a tool's own, an approval taken elsewhere.
    for run_id, mine in rows.items():
        head = _begun(tx, run_id, {})
        made = tx.touched.get(("runs", run_id))
        if head["seq"] == 0 and made is not None:
            mine = [*mine, ["runs", run_id, row_digest(tx.key, "runs", made[0])]]
        _write(tx, head, run_id, "changed", None, {}, mine)
    tx.pending.clear()
    tx.touched.clear()


def is_new(tx: Transaction, run_id: str) -> bool:
    """Whether the chain has no entry yet, so that there is nothing of the run.

    The head is kept: whoever asks is about to begin the chain or to go on with it.
    """
    head = tx.memo.get(run_id)
    if head is None:
        head = tx.memo[run_id] = _head(tx, run_id)
    return bool(head["seq"] == 0)


def _begun(tx: Transaction, run_id: str, facts: Mapping[str, Any]) -> Row:
    """The head of the chain; a run is noted when its chain begins."""
    head = tx.memo.get(run_id) or _head(tx, run_id)
    if head["seq"] == 0 and is_run(run_id):
        whose = {"principal": facts.get("principal"), "tenant": facts.get("tenant") or ""}
        whose["name"] = facts.get("run_name") or run_id
        tx.insert("runs", {"run_id": run_id, "started_at": tx.now} | whose)
    return head


def _write(
    tx: Transaction,
    head: Row,
    run_id: str,
    kind: str,
    call_key: str | None,
    facts: dict[str, Any],
    rows: list[list[Any]],
) -> Row:
    """Add the entry; the chain's new head."""
    if rows:
        facts["rows"] = rows
    moved, added = _add(tx, run_id, head, kind, call_key, facts)
    if not added:
        moved, _ = _add(tx, run_id, _end_of_entries(tx, run_id), kind, call_key, facts)
    begins = head["seq"] == 0 and tx.insert("chain_heads", {"run_id": run_id} | moved)
    if not begins and not tx.update("chain_heads", {"run_id": run_id}, moved):
        tx.insert("chain_heads", {"run_id": run_id} | moved)
    tx.memo[run_id] = moved
    return moved


def _head(tx: Transaction, run_id: str) -> Row:
    """The head as it was sealed; one that was not has no `mac`."""
    head = tx.get("chain_heads", run_id)
    if head is None:
        return {"seq": 0, "hash": GENESIS, "mac": b"new"}
    sealed = head["mac"] == head_mac(tx.key, run_id, head["seq"], head["hash"])
    return head if sealed else head | {"mac": b""}


def _end_of_entries(tx: Transaction, run_id: str) -> Row:
    """Where the entries end if the head disagrees: one of them was changed."""
    (last,) = tx.select("ledger", {"run_id": run_id}, order_by="seq", descending=True, limit=1)
    return {"seq": last["seq"], "hash": last["hash"], "mac": b""}


def _add(
    tx: Transaction,
    run_id: str,
    head: Row,
    kind: str,
    call_key: str | None,
    facts: Mapping[str, Any],
) -> tuple[Row, bool]:
    """The chain's next head, and whether the entry was added: `False` if one is in its place."""
    seq = head["seq"] + 1
    named = {"v": VERSION, "run": run_id, "seq": seq, "at": tx.now, "kind": kind, "call": call_key}
    entry = {**named, **facts}
    try:
        body = to_json(entry)
    except UNWRITABLE:
        body = json_bytes(entry)
    link = chain_hash(head["hash"], body)
    # A head that was not sealed stays so: a seal would hide that somebody has changed the chain.
    mac = head_mac(tx.key, run_id, seq, link) if head["mac"] else b""
    entry = {"run_id": run_id, "seq": seq, "at": tx.now, "kind": kind, "call_key": call_key}
    added = tx.insert("ledger", {**entry, "body": body, "hash": link})
    return {"seq": seq, "hash": link, "mac": mac}, added


def put_payload(tx: Transaction, id: str, run_id: str, data: bytes) -> str:
    """Store `data` erasably; returns the salted digest for the chain."""
    salt = os.urandom(16)
    digest = payload_digest(salt, data)
    if not tx.insert("payloads", {"id": id, "run_id": run_id, "salt": salt, "data": data}):
        tx.update("payloads", {"id": id}, {"run_id": run_id, "salt": salt, "data": data})
    return digest


def payload(tx: Transaction, id: str | None) -> bytes | None:
    """The bytes kept under `id`; `None` when there are none or they were erased."""
    row = tx.get("payloads", id) if id is not None else None
    return None if row is None else row["data"]


def erase(tx: Transaction, run_id: str) -> int:
    """Delete the arguments and results of a run; its chain stays valid. How many were erased."""
    erased = tx.update("payloads", {"run_id": run_id, "data !=": None}, {"data": None})
    tx.update("calls", {"run_id": run_id}, {"error_text": None})
    texts: Row = {"payload": None, "edited": None, "answer": None, "request": "{}"}
    tx.update("approvals", {"run_id": run_id}, texts)
    # A reviewer could no longer see what they would approve.
    still = {"run_id": run_id, "state in": ["pending", "approved"]}
    tx.update("approvals", still, {"state": "expired"})
    append(tx, run_id, "erased", None, {"payloads": erased})
    return erased
