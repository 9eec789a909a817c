"""Operations on the ledger: one append-only hash chain per run, payloads beside it."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from agent_adapter.store.base import Transaction

__all__ = ["append", "chain_hash", "erase", "head_mac", "payload", "payload_digest", "put_payload"]

VERSION = 1
GENESIS = b"\x00" * 32


def chain_hash(previous: bytes, body: bytes) -> bytes:
    """The hash of one link: SHA-256 over the previous hash and the stored bytes."""
    return hashlib.sha256(previous + body).digest()


def head_mac(key: bytes, run_id: str, seq: int, link: bytes) -> bytes:
    """What only the holder of the store's key can write about the newest link."""
    return hmac.digest(key, f"{run_id}\x00{seq}\x00".encode() + link, "sha256")


def payload_digest(salt: bytes, data: bytes) -> str:
    """The salted digest that the chain holds in place of a payload."""
    return hashlib.sha256(salt + data).hexdigest()


def append(
    tx: Transaction, run_id: str, kind: str, call_key: str | None, facts: Mapping[str, Any]
) -> None:
    """Add one entry to the run's chain and move its head.

    A head that was not written with the store's key is never sealed again: it stays as it was
    found, unsealed, for `verify` to report.
    """
    head = tx.memo.get(run_id) or _found_head(tx, run_id)
    seq = 1 if head is None else head["seq"] + 1
    previous = GENESIS if head is None else head["hash"]
    entry = {"run_id": run_id, "seq": seq, "at": tx.now, "kind": kind, "call_key": call_key}
    named = {"v": VERSION, "run": run_id, "seq": seq, "at": tx.now, "kind": kind, "call": call_key}
    body = to_json({**named, **facts})
    link = chain_hash(previous, body)
    tx.insert("ledger", {**entry, "body": body, "hash": link})
    moved = {"seq": seq, "hash": link, "mac": head_mac(tx.key, run_id, seq, link)}
    if head is None:
        tx.insert("chain_heads", {"run_id": run_id} | moved)
    else:
        tx.update("chain_heads", {"run_id": run_id}, moved)
    tx.memo[run_id] = moved


def put_payload(tx: Transaction, id: str, run_id: str, data: bytes) -> str:
    """Keep `data` where it can be erased; the salted digest for the chain."""
    salt = os.urandom(16)
    if not tx.insert("payloads", {"id": id, "run_id": run_id, "salt": salt, "data": data}):
        tx.update("payloads", {"id": id}, {"run_id": run_id, "salt": salt, "data": data})
    return payload_digest(salt, data)


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
