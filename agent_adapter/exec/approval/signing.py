"""Decisions signed by their reviewer, so that write access to the store is not enough to forge one.

A reviewer keeps an Ed25519 private key where the agent's process cannot read it; the executor pins
the public one. The signature is over `Presented`, which is what the reviewer saw, and their word.
"""

from __future__ import annotations

import base64
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
from agent_adapter.core.inert import short
from agent_adapter.exec.approval.presented import Presented
from agent_adapter.store import people
from agent_adapter.store.base import Row, Transaction

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

PREFIX = "ed25519:"
_VERSION = 2
_SKEW = 60.0
_KEPT = (
    "key",
    "public",
    "reviewer",
    "verdict",
    "decided_at",
    "bound",
    "situation",
    "labels",
    "doubts",
)


def statement(record: str, tenant: str, said: Mapping[str, Any]) -> bytes:
    """The bytes that are signed: the record, all that was shown, and the word on it.

    `said` is what a signature keeps beside itself: whose it is, the verdict, when it was given (in
    milliseconds), the digests of what will run and of the situation, and its labels and doubts.
    """
    signed = {"v": _VERSION, "record": record, "tenant": tenant}
    signed |= {name: said[name] for name in _KEPT}
    return b"agent-adapter approval\n" + canon(signed)


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

    def sign(self, shown: Presented, *, verdict: str, reviewer: str) -> str:
        """The signature on a decision about what was shown, as the record keeps it (JSON text)."""
        said = {
            "v": _VERSION,
            "key": self.name,
            "public": self.public,
            "reviewer": reviewer,
            "verdict": verdict,
            "decided_at": round(time.time() * 1000),
            "bound": shown.bound.digest,
            "situation": shown.situation_digest,
            "labels": list(shown.situation.labels),
            "doubts": list(shown.situation.doubts),
        }
        signed = self._key.sign(statement(shown.bound.record, shown.bound.tenant, said))
        return json.dumps(said | {"signature": base64.b64encode(signed).decode()})


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

    def problem(self, tx: Transaction, row: Row, runs: Presented) -> str | None:
        """Why the approval that a record shows does not count; `None` when it does.

        The key must be pinned here, and be neither revoked nor out of its time in the table of
        people. `row` must say `approved` or `taken`; `runs` is the call that would run.
        """
        from cryptography.exceptions import InvalidSignature

        id = row["id"]
        try:
            kept = json.loads(row["signature"] or "")
            signer, signature = kept["key"], base64.b64decode(kept["signature"])
            said = statement(runs.bound.record, runs.bound.tenant, kept)
            version, at = kept["v"], float(kept["decided_at"]) / 1000
        except (ValueError, KeyError, TypeError):
            version, kept = None, None
        if kept is None or version != _VERSION:
            return f"approval {id} bears no signature of this version, and only signed ones count"
        key = self._keys.get(signer)
        if key is None:
            return f"approval {id} is signed by {short(str(signer))}, whose key is not pinned here"
        try:
            key.verify(signature, said)
        except InvalidSignature:
            return f"the signature on approval {id} does not fit what the record says"
        if kept["public"] != _text_of(key):
            return f"the signature on approval {id} names another key than {short(signer)}'s"
        uncovered = _not_covered(row, runs, kept)
        if uncovered is not None:
            return uncovered
        decided_at = row["decided_at"] or tx.now
        said_by = (kept["reviewer"], signer, _text_of(key))
        lapsed = people.signature_problem(tx, *said_by, decided_at)
        return f"approval {id} {lapsed}" if lapsed is not None else self._out_of_time(row, at)

    def _out_of_time(self, row: Row, at: float) -> str | None:
        if row["state"] != "approved" or -_SKEW <= time.time() - at <= self._use_within:
            return None
        return f"the signature on approval {row['id']} is out of time"


def _not_covered(row: Row, runs: Presented, said: Mapping[str, Any]) -> str | None:
    """Why a signature that is genuine was given for something else."""
    id = row["id"]
    if said["verdict"] != "approved":
        return f"the signature on approval {id} is on a denial"
    if said["reviewer"] != row["reviewer"]:
        return f"approval {id} names another reviewer than the one who signed it"
    if said["bound"] != runs.bound.digest:
        return f"approval {id} shows another call than the one that would run"
    new = sorted(set(runs.situation.labels) - set(said["labels"]))
    if new:
        return f"approval {id} was signed before the run had read {', '.join(map(short, new))}"
    if set(runs.situation.doubts) - set(said["doubts"]):
        return f"approval {id} was signed before it was known that the call may repeat a write"
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


def checked_public_key(text: str) -> str:
    """A public key (`ed25519:…`) in its one form; `ToolDefinitionError` for a text that is none."""
    check_installed("signing")
    return _text_of(_public_key("key", text))


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
