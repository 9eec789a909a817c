"""Operations on trusted texts: what the user and trusted sources said in a conversation.

The text is a payload of the run in which it was said: it is erased and pruned with it, and what is
gone is not trusted any more.
"""

from __future__ import annotations

import hashlib
import re

from agent_adapter.store import ledger
from agent_adapter.store.base import Transaction

USER = "user"
"""The source of what the user said; other sources are names of tools."""

LONGEST = 256 * 1024
"""Characters of a text that are kept; the rest counts as said by nobody."""

_NEWEST = 500


def keep(tx: Transaction, conversation: str, run_id: str, source: str, text: str) -> None:
    """Trust `text` in the conversation; again in the same run it costs nothing."""
    kept = _whole_words(text)
    data = kept.encode("utf-8", "surrogatepass")
    whose = f"{len(conversation)}:{conversation}{len(run_id)}:{run_id}{len(source)}:{source}"
    digest = hashlib.blake2b(data, key=tx.key, person=b"trusted", digest_size=16)
    digest.update(whose.encode("utf-8", "surrogatepass"))
    id = f"{digest.hexdigest()}.text"
    row = {"id": id, "run_id": run_id, "conversation": conversation, "source": source, "at": tx.now}
    if kept and tx.insert("trusted_texts", row):
        facts = {"source": source, "payload": id}
        facts["kept"] = ledger.put_payload(tx, id, run_id, data)
        ledger.append(tx, run_id, "trusted", None, facts)


def texts(tx: Transaction, conversation: str) -> list[str]:
    """The texts that are trusted in the conversation and not erased, the newest first."""
    rows = tx.select(
        "trusted_texts",
        {"conversation": conversation},
        order_by="at",
        descending=True,
        limit=_NEWEST,
    )
    found = (ledger.payload(tx, row["id"]) for row in rows)
    return [data.decode("utf-8", "surrogatepass") for data in found if data is not None]


def copy(tx: Transaction, from_conversation: str, to_conversation: str) -> None:
    """Trust in one conversation what the other does."""
    for row in tx.select("trusted_texts", {"conversation": from_conversation}, order_by="at"):
        data = ledger.payload(tx, row["id"])
        if data is not None:
            text = data.decode("utf-8", "surrogatepass")
            keep(tx, to_conversation, row["run_id"], row["source"], text)


def _whole_words(text: str) -> str:
    """The text, cut between two words: half a word would be another one."""
    if len(text) <= LONGEST:
        return text
    cut = re.match(r"(?s).*\s", text[:LONGEST])
    return cut.group() if cut else ""
