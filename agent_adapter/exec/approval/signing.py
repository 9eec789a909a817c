"""Decisions signed by their reviewer, so that write access to the store is not enough to forge one.

A reviewer keeps an Ed25519 private key where the agent's process cannot read it; the executor pins
the public one. The signature is over the whole call as the reviewer saw it and what they said.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_adapter.core.canonical import canon
from agent_adapter.core.errors import AgentAdapterError, ToolDefinitionError
from agent_adapter.core.extras import check_installed
from agent_adapter.store import people
from agent_adapter.store.base import Row, Transaction

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

PREFIX = "ed25519:"
_VERSION = 1
_SKEW = 60.0
_COVERED = ("id", "tenant", "run_id", "call_key", "tool", "fingerprint", "principal", "digest")


def statement(
    row: Row, *, verdict: str, reviewer: str, decided_at: float, edited: str | None
) -> bytes:
    """The bytes that are signed: the record, the arguments as they were shown, and the word on it.

    `row` is of the table of approvals, `edited` the reviewer's own arguments as JSON text.
    """
    said: dict[str, Any] = {
        "v": _VERSION,
        **{name: row[name] for name in _COVERED},
        "arguments": _text_digest(_arguments(row)),
        "verdict": verdict,
        "edited": None if edited is None else _text_digest(edited),
        "reviewer": reviewer,
        "decided_at": round(decided_at * 1000),
    }
    return b"agent-adapter approval\n" + canon(said)


@dataclass(frozen=True, slots=True)
class ReviewerKey:
    """A reviewer's private key; `name` is what executors know its public half by."""

    name: str
    _key: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def read(cls, path: str | os.PathLike[str], name: str | None = None) -> ReviewerKey:
        """The key in a file that `create_key` wrote; its name is the file's, without the ending.

        `AgentAdapterError` for a file that is none, or that others may read.
        """
        check_installed("signing")
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        file = Path(path)
        try:
            data = file.read_bytes()
            if os.name == "posix" and stat.S_IMODE(file.stat().st_mode) & 0o077:
                raise AgentAdapterError(f"{file} can be read by others: run `chmod 600 {file}`")
            key = load_pem_private_key(data, password=None)
        except OSError as exc:
            raise AgentAdapterError(f"the key {file} cannot be read: {exc.strerror}") from exc
        except (ValueError, TypeError) as exc:
            raise AgentAdapterError(
                f"{file} is no Ed25519 private key in PEM; make one with `agent-adapter keys"
                f" create {file}`"
            ) from exc
        if not isinstance(key, Ed25519PrivateKey):
            raise AgentAdapterError(f"{file} is no Ed25519 key; make one with create_key")
        return cls(name or file.stem, key)

    @property
    def public(self) -> str:
        """The public half as text (`ed25519:…`), for `DeferredApproval(reviewers=…)`."""
        return _text_of(self._key.public_key())

    def sign(self, row: Row, *, verdict: str, reviewer: str, edited: str | None = None) -> str:
        """The signature on a decision about the record, as the record keeps it (JSON text)."""
        at = time.time()
        said = statement(row, verdict=verdict, reviewer=reviewer, decided_at=at, edited=edited)
        kept = {"v": _VERSION, "key": self.name, "reviewer": reviewer, "decided_at": at}
        kept["public"] = self.public
        return json.dumps(kept | {"signature": base64.b64encode(self._key.sign(said)).decode()})


class Signers:
    """The reviewers whose signatures count, each with the public key that the executor pins."""

    def __init__(self, keys: Mapping[str, str | bytes], *, use_within: float = 600.0) -> None:
        check_installed("signing")
        if not keys:
            raise ToolDefinitionError(
                "require_signed=True needs reviewers={name: public key}: without one nobody could"
                " approve"
            )
        self._keys = {name: _public_key(name, key) for name, key in keys.items()}
        self._use_within = use_within

    def problem(self, tx: Transaction, row: Row) -> str | None:
        """Why the approval that a record shows does not count; `None` when it does.

        The key must be pinned here, and be neither revoked nor out of its time in the table of
        people. `row` must say `approved` or `taken`.
        """
        from cryptography.exceptions import InvalidSignature

        try:
            kept = json.loads(row["signature"] or "")
            signer, reviewer = kept["key"], kept["reviewer"]
            at, signature = float(kept["decided_at"]), base64.b64decode(kept["signature"])
        except (ValueError, KeyError, TypeError):
            return f"approval {row['id']} bears no signature, and only signed ones count here"
        key = self._keys.get(signer)
        if key is None:
            return f"approval {row['id']} is signed by {signer!r}, whose key is not pinned here"
        said = statement(
            row, verdict="approved", reviewer=reviewer, decided_at=at, edited=row["edited"]
        )
        try:
            key.verify(signature, said)
        except InvalidSignature:
            return f"the signature on approval {row['id']} does not fit what the record says"
        if reviewer != row["reviewer"]:
            return f"approval {row['id']} names another reviewer than the one who signed it"
        if kept.get("public", _text_of(key)) != _text_of(key):
            return f"the signature on approval {row['id']} names another key than {signer!r}'s"
        decided_at = row["decided_at"] or tx.now
        lapsed = people.signature_problem(tx, reviewer, signer, _text_of(key), decided_at)
        if lapsed is not None:
            return f"approval {row['id']} {lapsed}"
        if row["state"] == "approved" and not -_SKEW <= time.time() - at <= self._use_within:
            return f"the signature on approval {row['id']} is out of time"
        return None


def create_key(path: str | os.PathLike[str]) -> ReviewerKey:
    """Make a key pair: the private key in a new file that only its owner may read.

    The public key is written to `<path>.pub`.
    """
    check_installed("signing")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    file = Path(path)
    public = file.with_name(f"{file.name}.pub")
    if os.path.lexists(public):
        raise AgentAdapterError(f"{public} is there already; keys are never written over")
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        _write_new(file, pem)
        made = ReviewerKey(file.stem, key)
        _write_new(public, f"{made.public}\n".encode("ascii"))
    except FileExistsError as exc:
        raise AgentAdapterError(f"{file} is there already; keys are never written over") from exc
    except OSError as exc:
        raise AgentAdapterError(f"cannot write the key {file}: {exc.strerror}") from exc
    return made


def _write_new(file: Path, data: bytes) -> None:
    # Exclusive: a link that somebody has put there is neither followed nor replaced.
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(data)


def same_arguments(row: Row, arguments: Mapping[str, Any]) -> bool:
    """Whether a record shows exactly these arguments (JSON values, secrets masked)."""
    return _arguments(row) == json.dumps(dict(arguments), sort_keys=True)


def _arguments(row: Row) -> str:
    return json.dumps(json.loads(row["request"]).get("arguments", {}), sort_keys=True)


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_public_key(path: str | os.PathLike[str]) -> str:
    """The public key in a `.pub` file; `AgentAdapterError` for a file that holds none."""
    check_installed("signing")
    try:
        text = Path(path).read_text(encoding="ascii").strip()
        return _text_of(_public_key(str(path), text))
    except (OSError, ValueError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it is not ASCII text"
        raise AgentAdapterError(f"the public key {path} cannot be read: {why}") from exc
    except ToolDefinitionError as exc:
        raise AgentAdapterError(
            f"{path} is no Ed25519 public key: give the .pub file of `agent-adapter keys create`"
        ) from exc


def _text_of(key: Ed25519PublicKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return PREFIX + base64.b64encode(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()


def _public_key(name: str, key: str | bytes) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        raw = base64.b64decode(key.strip().removeprefix(PREFIX)) if isinstance(key, str) else key
        return Ed25519PublicKey.from_public_bytes(raw)
    except (ValueError, TypeError) as exc:
        raise ToolDefinitionError(
            f"reviewers[{name!r}] is no Ed25519 public key: give the text of its .pub file,"
            f" {PREFIX}…, or its 32 bytes"
        ) from exc
