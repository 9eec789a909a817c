"""Tells whether a call is new or was begun before.

A call has one identity from its first attempt on: `call_key`, made of the run, the place in it
where the model asked, the tool and the digest of the arguments as they were given. Where the
framework gives no place, `n` stands for it: the ordinal among equal calls of the run.
"""

from __future__ import annotations

import json

from agent_adapter.store import keyed, ledger
from agent_adapter.store.base import OWNER, Read, Row, Transaction
from agent_adapter.store.earlier import found_as
from agent_adapter.store.intents import Begun, Intent
from agent_adapter.store.keys import call_key_of, once_key_of
from agent_adapter.store.remembered import SUSPENDED, UNCLEAR, any_suspended, any_unclear

DOUBT_SECONDS = 600.0
"""How long a write with unknown outcome is asked about in other runs of the same asker."""

_SHOWN = 20
"""How many earlier writes a person is shown at the most."""

_LEFT_NOTHING = ("aborted", "no-effect", "suspended")
"""Endings of writes that a run may go another way after, without asking."""


def look_up(tx: Transaction, intent: Intent) -> Begun:
    """What `begin_call` would find, without writing: the earlier call, or the next free ordinal.

    With the latter, `rows` are the earlier writes that a person must see first.
    """
    other = keyed.conflict(tx, intent) if intent.keyed else None
    if other is not None:
        return Begun(state="conflict", reason=other)
    row = match(tx, intent)
    if row is not None:
        return Begun(state=found_as(tx, row, intent), call_key=row["call_key"], n=row["n"], row=row)
    last = last_n(tx, intent)
    earlier = in_the_way(tx, intent, last)
    rows = () if earlier is None else earlier.rows
    return Begun(state="new", call_key=key_of(intent, last + 1), n=last + 1, rows=rows)


def issue_again(tx: Transaction, intent: Intent) -> Begun:
    """`look_up` for a run that is run again: the earlier call that it finds is thereby issued."""
    begun = look_up(tx, intent)
    if begun.row is not None:
        mark_issued(tx, begun.row, intent)
    return begun


def place_again(tx: Transaction, intent: Intent) -> str | None:
    """The newest place of the run where an equal call was made or asked about under the same id.

    For a framework that runs a call again and has kept no more of it than its native id.
    """
    same: Row = {"run_id": intent.run_id, "tool": intent.tool, "tenant": intent.tenant}
    same |= {"principal": intent.principal}
    made = {"digest": intent.digest, "call_id": intent.call_id}
    call = _first(tx, same | made, by="last_attempt", descending=True)
    if call is not None:
        newest_attempt = same | made | {"last_attempt": call["last_attempt"]}
        call = _first(tx, newest_attempt, by="started_at", descending=True)
    found = [] if call is None else [(call["started_at"], call["place"])]
    for row in tx.select("approvals", same, order_by="created_at", descending=True, limit=50):
        asked = json.loads(row["request"])
        place, n = asked.get("place"), asked.get("n", 1)
        if place is None or asked.get("call_id") != intent.call_id:
            continue
        if call_key_of(place, intent.tool, intent.digest, n) == row["asked_key"]:
            found.append((row["created_at"], place))
            break
    newest: str | None = max(found, key=lambda each: each[0])[1] if found else None
    return newest


def match(tx: Transaction, intent: Intent) -> Row | None:
    """The earlier call that is this one, unless a person agreed to go past it."""
    row = _identified(tx, intent)
    return None if row is not None and row["call_key"] in intent.accepted else row


def _identified(tx: Transaction, intent: Intent) -> Row | None:
    # The strongest evidence first: an explicit key, the place, then order or id within the run.
    if intent.once_key is not None or intent.call_key is not None:
        row = tx.get("calls", key_of(intent, intent.n or 1))
        return row if row is not None and row["tenant"] == intent.tenant else None
    if intent.place is not None:
        row = _newest(tx, {"place": intent.place} | _alike(intent))
        if row is not None:
            return row
    if intent.attempt > 1:
        return _unissued(tx, intent)
    if intent.place is None and intent.reexecutes and intent.call_id is not None:
        same = _alike(intent) | {"run_id": intent.run_id, "principal": intent.principal}
        row = _first(tx, same | {"call_id": intent.call_id}, by="last_attempt")
        return None if row is None else _last_repeat(tx, row)
    return _suspended(tx, intent)


def _alike(intent: Intent) -> Row:
    """The same tool with the same arguments for the same tenant."""
    return {"tool": intent.tool, "digest": intent.digest, "tenant": intent.tenant}


def _unissued(tx: Transaction, intent: Intent) -> Row | None:
    """The first equal call of the run that this attempt has not issued yet.

    One that was aborted had no effect: it answers only if no other is left.
    """
    same = _alike(intent) | {"run_id": intent.run_id, "principal": intent.principal}
    left = _issued_before(tx, intent)
    row = None
    if intent.repeats_failed:  # what has happened answers before a call that failed
        well = same | {"ending": "ok"}
        row = _earliest(tx, well | {"call_id": intent.call_id}, left) or _earliest(tx, well, left)
    if row is not None:
        return row
    if intent.call_id is not None:
        of_id = same | {"call_id": intent.call_id, "ending !=": "aborted"}
        row = _earliest(tx, of_id, left)
    row = row or _open(tx, same, left) or _earliest(tx, same | {"ending !=": "aborted"}, left)
    return _last_repeat(tx, row) if row is not None else _earliest(tx, same, left)


def _issued_before(tx: Transaction, intent: Intent) -> list[int]:
    """The earlier attempts that were the last to issue some call of the run: few, if not one."""
    found: list[int] = []
    where: Row = {"run_id": intent.run_id, "last_attempt <": intent.attempt}
    while (row := _first(tx, where, by="last_attempt", descending=True)) is not None:
        found.append(row["last_attempt"])
        where["last_attempt <"] = row["last_attempt"]
    return found


def _earliest(tx: Transaction, same: Row, attempts: list[int]) -> Row | None:
    """The first of equal calls that one of the attempts was the last to issue."""
    each = [_first(tx, same | {"last_attempt": attempt}, by="started_at") for attempt in attempts]
    found = [row for row in each if row is not None]
    return min(found, key=lambda row: row["started_at"], default=None)


def _open(tx: Transaction, same: Row, attempts: list[int]) -> Row | None:
    """The first of equal calls that has not ended."""
    rows = tx.select("calls", same | {"ending": None, "state": "open"})
    left = [row for row in rows if row["last_attempt"] in attempts]
    return min(left, key=lambda row: row["started_at"], default=None)


def _last_repeat(tx: Transaction, row: Row) -> Row:
    """The repeat that a person agreed to in place of an unclear call, where one stands."""
    repeats = tx.select("calls", {"replaces": row["call_key"]})
    same = [repeat for repeat in repeats if _same_tool(repeat) == _same_tool(row)]
    standing = [repeat for repeat in same if repeat["ending"] != "aborted"]
    return max(standing, key=lambda repeat: repeat["n"], default=row)


def _same_tool(row: Row) -> tuple[str, str, str]:
    return row["run_id"], row["tool"], row["digest"]


def _newest(tx: Transaction, where: Row) -> Row | None:
    """The latest of equal calls at one place; an aborted one only if there is no other."""
    row = _first(tx, where, by="n", descending=True)
    if row is None or row["ending"] != "aborted":
        return row
    standing = _first(tx, where | {"ending !=": "aborted"}, by="n", descending=True)
    running = _first(tx, where | {"ending": None}, by="n", descending=True)
    found = [each for each in (standing, running) if each is not None]
    return max(found, key=lambda each: each["n"], default=row)


def _suspended(tx: Transaction, intent: Intent) -> Row | None:
    """An equal call of the conversation that was left unfinished; its calls are handed out.

    A model that cannot be paused repeats the call in a new message: the call then continues.
    """
    if intent.conversation is None:
        return None
    known = tx.memo.get(SUSPENDED)
    if not intent.workflow and not (any_suspended(tx) if known is None else known["any"]):
        return None
    same = _of_conversation(intent)
    row = _first(tx, same | {"ending": "suspended"}, by="started_at")
    if row is not None or not intent.workflow:
        return row
    elsewhere = {"ending": None, "state": "open", "owner_id !=": tx.owner_id}
    lost = [r for r in tx.select("calls", same | elsewhere) if not tx.is_live(r["owner_id"])]
    return min(lost, key=lambda each: each["started_at"], default=None)


def _of_conversation(intent: Intent) -> Row:
    same = _alike(intent) | {"asker": intent.asker}
    return same | {"principal": intent.principal, "conversation": intent.conversation}


def _first(tx: Transaction, where: Row, *, by: str, descending: bool = False) -> Row | None:
    rows = tx.select("calls", where, order_by=by, descending=descending, limit=1)
    return rows[0] if rows else None


def mark_issued(tx: Transaction, row: Row, intent: Intent) -> None:
    """Remember that this attempt has issued the earlier call, and where."""
    if row["last_attempt"] < intent.attempt:
        issued: Row = {"last_attempt": intent.attempt}
        if intent.place is not None:
            issued["place"] = intent.place  # when this attempt is resumed, it comes again there
        # A repeat answers for the call that it replaces, too.
        answered = [key for key in (row["call_key"], row["replaces"]) if key is not None]
        tx.update("calls", {"call_key in": answered}, issued)
        facts = {"attempt": intent.attempt}
        ledger.append(tx, row["run_id"], "issued-again", row["call_key"], facts)


def settled(tx: Transaction, intent: Intent) -> Row | None:
    """The call that a person agreed to repeat while it was unclear, and that has ended well since.

    Only one that this call is: at its place, or in its run where no place is known.
    """
    for key in sorted(intent.doubts):
        row = tx.get("calls", key)
        if row is None or row["ending"] in (None, "unknown", "aborted"):
            continue
        where = ("run_id", intent.run_id) if intent.place is None else ("place", intent.place)
        if row[where[0]] == where[1] and _alike(intent).items() <= row.items():
            return row
    return None


def unclear_before(tx: Transaction, intent: Intent, row: Row) -> Begun | None:
    """Unclear writes that a person must see before a call that left nothing is run again."""
    if row["ending"] != "aborted" or intent.effects != "write":
        return None
    return _repeats(tx, intent, row["n"])


def in_the_way(tx: Transaction, intent: Intent, last: int) -> Begun | None:
    """Earlier writes that a person must see before this one; `last` counts those like it."""
    if intent.effects != "write":
        return None
    return _repeats(tx, intent, last) or _displaces(tx, intent) or _diverges(tx, intent)


def _repeats(tx: Transaction, intent: Intent, last: int) -> Begun | None:
    """Earlier writes of the same tool and arguments with unknown outcome.

    Those of the run count for ever, those of the same asker in other runs for ten minutes. In a
    run that was taken back those that ended well count, too.
    """
    rows: list[Row] = []
    remembered = tx.memo.get(UNCLEAR)
    may_be = any_unclear(tx) if remembered is None else remembered["any"]
    if may_be and (last or intent.place is not None):
        rows = _unclear(tx, {"run_id": intent.run_id} | _alike(intent))
    if may_be and intent.asker:
        theirs = {"asker": intent.asker} | _alike(intent)
        recent = _unclear(tx, theirs | {"started_at >=": tx.now - DOUBT_SECONDS})
        known = {row["call_key"] for row in rows}
        rows += [row for row in recent if row["call_key"] not in known]
    if intent.replayed:
        rows += _ended_before(tx, intent)
    unclear = tuple(row for row in rows if row["call_key"] not in intent.accepted)
    return Begun(state="repeats", rows=unclear) if unclear else None


def _ended_before(tx: Transaction, intent: Intent) -> list[Row]:
    """Equal writes that ended well in a run that was taken back, those inside its tools included.

    A tool that is called anew makes its own calls in another run, so they are found by the asker.
    """
    ended = {"effects": "write", "ending": "ok"} | _alike(intent)
    if intent.run_id == intent.root_run_id:
        return tx.select("calls", ended | {"run_id": intent.run_id}, limit=_SHOWN)
    theirs = tx.select(
        "calls", ended | {"asker": intent.asker}, order_by="started_at", descending=True, limit=50
    )
    others = (row for row in theirs if row["run_id"] != intent.run_id)
    return [row for row in others if _root_of(tx, row) in (None, intent.root_run_id)]


def _root_of(tx: Transaction, row: Row | None) -> str | None:
    """The run around the tools in which a call was made; `None` where it was not kept."""
    while row is not None and row["parent_call_key"] is not None:
        row = tx.get("calls", row["parent_call_key"])
    return None if row is None else str(row["run_id"])


def _unclear(tx: Transaction, where: Row) -> list[Row]:
    rows = tx.select("calls", where | {"ending": "unknown"}, limit=_SHOWN)
    elsewhere = {"state": "open", "ending": None, "owner_id !=": tx.owner_id}
    begun = tx.select("calls", where | elsewhere, limit=_SHOWN)
    return rows + [row for row in begun if not tx.is_live(row["owner_id"])]


def _displaces(tx: Transaction, intent: Intent) -> Begun | None:
    """Writes at the same place with other arguments: the node has gone another way."""
    if intent.place is None:
        return None
    others = tuple(
        row
        for row in _others_at(tx, intent)
        if (row["tool"], row["digest"]) != (intent.tool, intent.digest)
        and row["ending"] not in _LEFT_NOTHING
        and row["call_key"] not in intent.accepted
    )
    return Begun(state="diverges", rows=others) if others else None


def _others_at(tx: Transaction, intent: Intent) -> list[Row]:
    """Writes at the intent's place, the equal ones among them only where there are few."""
    here: Row = {"place": intent.place, "effects": "write"}
    rows = tx.select("calls", here, limit=_SHOWN)
    if len(rows) < _SHOWN:
        return rows
    same_tool = here | {"tool": intent.tool}
    beside = (
        here | {"tool <": intent.tool},
        here | {"tool >": intent.tool},
        same_tool | {"digest <": intent.digest},
        same_tool | {"digest >": intent.digest},
    )
    return [row for where in beside for row in tx.select("calls", where, limit=_SHOWN)]


def _diverges(tx: Transaction, intent: Intent) -> Begun | None:
    """Writes of earlier attempts that this attempt has not issued again before a new one."""
    if intent.attempt == 1:
        return None
    writes: Row = {"run_id": intent.run_id, "effects": "write", "tenant": intent.tenant}
    missing = [
        row
        for attempt in _issued_before(tx, intent)
        for row in tx.select("calls", writes | {"last_attempt": attempt}, limit=50)
        if row["ending"] not in _LEFT_NOTHING and row["call_key"] not in intent.accepted
    ]
    missing.sort(key=lambda row: row["started_at"])
    return Begun(state="diverges", rows=tuple(missing)) if missing else None


def last_n(tx: Transaction, intent: Intent) -> int:
    """How many such calls there are at the place, or in the run where none is known.

    0 where a key of its own makes the call unique.
    """
    if intent.once_key is not None:
        return 0
    if intent.place is None and tx.memo_lasts and ledger.is_new(tx, intent.run_id):
        return 0
    row = _first(tx, _equal(intent), by="n", descending=True)
    return 0 if row is None else row["n"]


def _equal(intent: Intent) -> Row:
    where: Row = {"place": intent.place} if intent.place is not None else {"run_id": intent.run_id}
    return where | {"tool": intent.tool, "digest": intent.digest}


def reads(intent: Intent) -> list[Read]:
    """What will be looked at for a call that is new: its place, its conversation, its ordinal."""
    found = []
    if intent.place is not None:
        newest = {"place": intent.place} | _alike(intent)
        found.append(Read("calls", newest, "n", descending=True, limit=1))
    if intent.conversation is not None:
        left = _of_conversation(intent) | {"ending": "suspended"}
        found.append(Read("calls", left, "started_at", limit=1))
    if intent.once_key is None:
        found.append(Read("calls", _equal(intent), "n", descending=True, limit=1))
    if intent.effects == "write":
        found.append(Read("calls", {"ending": "unknown"}, limit=1))
        found.append(Read("calls", {"state": "open", "owner_id !=": OWNER}, limit=1))
    return found


def key_of(intent: Intent, n: int) -> str:
    """The identity under which the intent is written as the nth such call."""
    if intent.once_key is not None:
        return once_key_of(intent.tenant, intent.tool, intent.once_key)
    where = intent.place or intent.run_id
    return intent.call_key or call_key_of(where, intent.tool, intent.digest, n)


def entries(tx: Transaction, sub_run: str) -> int:
    """How often the call that started this sub-run was entered, by its inner calls."""
    row = _first(tx, {"run_id": sub_run}, by="last_attempt", descending=True)
    return 0 if row is None else row["last_attempt"]
