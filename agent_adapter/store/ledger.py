"""Operations on the ledger: one append-only hash chain per run, payloads beside it."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from agent_adapter.store.base import Row, Transaction

VERSION = 1
GENESIS = b"\x00" * 32


def chain_hash(previous: bytes, body: bytes) -> bytes:
    """The hash of one link: SHA-256 over the previous hash and the stored bytes."""
    return hashlib.sha256(previous + body).digest()


def head_mac(key: bytes, run_id: str, seq: int, link: bytes) -> bytes:
    """The seal of the newest link, which needs the store's key."""
    return hmac.digest(key, f"{run_id}\x00{seq}\x00".encode() + link, "sha256")


def payload_digest(salt: bytes, data: bytes) -> str:
    """The salted digest that the chain holds in place of a payload."""
    return hashlib.sha256(salt + data).hexdigest()


def append(
    tx: Transaction, run_id: str, kind: str, call_key: str | None, facts: Mapping[str, Any]
) -> None:
    """Add one entry to the run's chain and move its head.

    A chain whose head is not what the store's key sealed goes on without a seal: nothing is lost,
    and `verify` reports it from then on.
    """
    head = tx.memo.get(run_id) or _head(tx, run_id)
    moved, added = _add(tx, run_id, head, kind, call_key, facts)
    if not added:
        moved, _ = _add(tx, run_id, _end_of_entries(tx, run_id), kind, call_key, facts)
    if moved["seq"] == 1:
        whose = {"principal": facts.get("principal"), "tenant": facts.get("tenant") or ""}
        tx.insert("runs", {"run_id": run_id, "started_at": tx.now} | whose)
    if not tx.update("chain_heads", {"run_id": run_id}, moved):
        tx.insert("chain_heads", {"run_id": run_id} | moved)
    tx.memo[run_id] = moved


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
    body = to_json({**named, **facts})
    link = chain_hash(head["hash"], body)
    # A head that was not sealed stays so: a seal would hide that somebody has changed the chain.
    mac = head_mac(tx.key, run_id, seq, link) if head["mac"] else b""
    entry = {"run_id": run_id, "seq": seq, "at": tx.now, "kind": kind, "call_key": call_key}
    added = tx.insert("ledger", {**entry, "body": body, "hash": link})
    return {"seq": seq, "hash": link, "mac": mac}, added


def put_payload(tx: Transaction, id: str, run_id: str, data: bytes) -> str:
    """Keep `data` where it can be erased; the salted digest for the chain."""
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
    tx.update("approvals", {"run_id": run_id}, {"payload": None, "edited": None, "request": "{}"})
    # Nobody can see any more what they would approve.
    still = {"run_id": run_id, "state in": ["pending", "approved"]}
    tx.update("approvals", still, {"state": "expired"})
    append(tx, run_id, "erased", None, {"payloads": erased})
    return erased
