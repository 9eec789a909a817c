"""What a notification says: our lines first, texts of others bounded and marked as theirs.

A text is made when it is sent, from the record as it stands then: the outbox keeps ids only, and a
record that is decided meanwhile needs no message any more.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from agent_adapter.core.inert import one_line, short
from agent_adapter.exec.approval.presented import present_row
from agent_adapter.notify.scanning import ALTERED
from agent_adapter.store import approvals, doubt
from agent_adapter.store.base import Row, Transaction

MOST_QUOTED = 1_500
"""The most characters of arguments in one message."""

_MOST_REASON = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One notification as text. `facts` are names and one-line values, `quoted` what will run.

    Everything but the names of facts and `title` may come from others; all of it is inert.
    `decides` is true if the page behind `link` is where a person decides.
    """

    id: str
    event: str
    tenant: str
    at: float
    title: str
    facts: tuple[tuple[str, str], ...] = ()
    quoted: str | None = None
    size: int = 0
    link: str | None = None
    decides: bool = False

    def text(self) -> str:
        """The message as lines; each line of a quoted text begins with `> `."""
        lines = [self.title, "", *(f"{name}: {value}" for name, value in self.facts)]
        if self.quoted is not None:
            lines += ["", "What will run, as the agent wrote it:"]
            lines += [f"> {line}" for line in self.quoted.splitlines()]
            if self.size > len(self.quoted):
                lines.append(f"(the first {len(self.quoted):,} of {self.size:,} characters)")
        if self.link is not None:
            lines += ["", f"{'Decide' if self.decides else 'See'}: {self.link}"]
        return "\n".join([*lines, "", f"Notification {self.id}; a repeat has the same id.", ""])

    def data(self) -> dict[str, Any]:
        """The message as JSON values."""
        return {
            "id": self.id,
            "event": self.event,
            "tenant": self.tenant,
            "at": datetime.fromtimestamp(self.at, UTC).isoformat(timespec="seconds"),
            "title": self.title,
            "facts": {name.replace(" ", "_"): value for name, value in self.facts},
            "arguments": self.quoted,
            "arguments_size": self.size,
            "url": self.link,
        }


def compose(tx: Transaction, row: Row, *, console: str | None, details: bool) -> Message | str:
    """The message of a row of the outbox, or why nobody need be told any more."""
    make = _MAKERS[row["event"]]
    found = make(tx, row)
    if isinstance(found, str):
        return found
    path, parts = found
    if not details:
        parts = parts | {"quoted": None, "size": 0}
    link = None if console is None or path is None else console.rstrip("/") + path
    known = {"id": row["id"], "event": row["event"], "tenant": short(row["tenant"] or "")}
    return Message(**known, at=row["created_at"], link=link, **parts)


def test_message(id: str, at: float, console: str | None) -> Message:
    """What `agent-adapter notify test` sends."""
    return Message(
        id=id,
        event="test",
        tenant="",
        at=at,
        title="This is a test of a notification rule; nothing waits for you.",
        link=console,
    )


_Made = tuple[str | None, dict[str, Any]] | str


def _request(tx: Transaction, row: Row) -> _Made:
    stored = tx.get("approvals", row["subject"])
    if stored is None:
        return "the record is gone"
    state = approvals.as_of(tx, stored)["state"]
    if state != "pending":
        return f"the record is {state}"
    shown = present_row(tx, stored)
    bound, about = shown.bound, shown.situation
    tool = short(bound.tool)
    expiring = row["event"] == "expiring"
    title = f"{'Expires soon' if expiring else 'Approval needed'}: {tool}"
    facts = [
        ("tool", tool),
        ("why", _cut(about.why)),
        ("on behalf of", short(bound.principal or "")),
        ("run", short(about.run_id)),
        ("tainted by", _cut(", ".join(map(short, about.labels)))),
        ("votes", _votes(about.votes, about.votes_needed)),
        ("decide by", _iso(stored["decide_by"])),
        ("record", stored["id"]),
    ]
    return _path("approvals", stored["id"]), {
        "title": title,
        "facts": tuple((name, value) for name, value in facts if value),
        "quoted": defanged(shown.shown[:MOST_QUOTED]),
        "size": len(shown.shown),
        "decides": True,
    }


def _doubt(tx: Transaction, row: Row) -> _Made:
    call = tx.get("calls", row["subject"])
    if call is None or all(each["call_key"] != call["call_key"] for each in doubt.in_doubt(tx)):
        return "the call is no longer in doubt"
    facts = [
        ("tool", short(call["tool"])),
        ("run", short(call["run_id"])),
        ("started", _iso(call["started_at"])),
        ("call", call["call_key"]),
    ]
    title = f"Outcome unknown: {short(call['tool'])}"
    return _path("in-doubt", None), {"title": title, "facts": tuple(facts)}


def _turn(tx: Transaction, row: Row) -> _Made:
    turn = tx.get("turns", row["subject"])
    wanted = "due" if row["event"] == "your-turn" else "parked"
    if turn is None or turn["state"] != wanted:
        return "the turn has moved on"
    names = tx.select("identities", {"agent_id": turn["agent_id"]}, limit=1)
    name = short(names[0]["name"] if names else turn["agent_id"])
    waits = tx.select("turn_waits", {"turn_id": turn["turn_id"]}, order_by="waits_for")
    facts = [
        ("channel", turn["channel_id"]),
        ("participant", name),
        ("waits for", ", ".join(short(each["waits_for"]) for each in waits[:5])),
    ]
    title = f"Your turn: {name}" if wanted == "due" else f"A turn waits: {name}"
    return _path("channels", turn["channel_id"]), {
        "title": title,
        "facts": tuple(each for each in facts if each[1]),
    }


def _channel(tx: Transaction, row: Row) -> _Made:
    record = tx.get("audit", row["subject"])
    if record is None:
        return "the record is gone"
    said = json.loads(record["payload"])
    id = record["channel_id"] or ""
    broken = record["kind"] in ALTERED
    facts = [("channel", short(id)), ("kind", record["kind"]), ("at", _iso(record["at"]))]
    if said.get("reason"):
        facts.append(("reason", _cut(str(said["reason"]))))
    title = "A channel does not verify" if broken else "A channel failed"
    return _path("channels", id), {"title": title, "facts": tuple(facts)}


def _chain(tx: Transaction, row: Row) -> _Made:
    if tx.get("audit", row["subject"]) is not None:
        return _channel(tx, row)
    facts = (("see", "agent-adapter verify"),)
    return _path("health", None), {"title": "The ledger does not verify", "facts": facts}


_MAKERS = {
    "waiting": _request,
    "expiring": _request,
    "in-doubt": _doubt,
    "your-turn": _turn,
    "parked": _turn,
    "channel-failed": _channel,
    "chain-broken": _chain,
}


def defanged(text: str) -> str:
    """`text` in which no address is a link: mail programs make links of what looks like one."""
    return text.replace("://", "[:]//")


def _cut(text: str) -> str:
    line = defanged(one_line(text))
    return line if len(line) <= _MOST_REASON else f"{line[: _MOST_REASON - 1]}…"


def _votes(votes: tuple[tuple[str, float, bool], ...], needed: int) -> str:
    if needed == 1:
        return ""
    names = ", ".join(short(name) for name, _, counts in votes if counts)
    return f"{sum(counts for _, _, counts in votes)} of {needed}{': ' if names else ''}{names}"


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _path(page: str, id: str | None) -> str:
    return f"/{page}" if id is None else f"/{page}/{quote(id, safe='')}"
