"""Finds events in the rows of a store: nothing is written where they happen.

A request, a doubt or a turn is a row that stays while it matters, so an event is found again as
long as it is true; the outbox tells what it knows already. What a crash interrupts is found by the
next look. Audit records are read from a cursor on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agent_adapter.notify.rules import NotifyRule
from agent_adapter.store import doubt, notifications, people, timekeeping
from agent_adapter.store.base import Row, Transaction

_OVERLAP = 120.0
_WHOLE_EVERY = 60.0
_PAGE = 1_000
_MOST_KNOWN = 200_000

FAILURES = {"turn_failed": "channel-failed", "channel_expired": "channel-failed"}
ALTERED = {"channel_altered": "chain-broken"}
_AUDITED = FAILURES | ALTERED


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One event: `subject` is the id of its record, `occurrence` tells apart events of one record.

    `whose` is who alone can act on it; `not_by` are people who cannot.
    """

    event: str
    subject: str
    tenant: str
    occurrence: str = ""
    tool: str | None = None
    whose: str | None = None
    not_by: tuple[str, ...] = ()


class Scanner:
    """Looks for events that the outbox does not know; remembers only what saves work."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._deadlines: dict[str, tuple[float, float]] = {}
        self._since = 0.0
        self._whole_at = 0.0

    def look(self, tx: Transaction, rules: Sequence[NotifyRule]) -> list[Row]:
        """Rows for the outbox, one for each rule and event that it has not."""
        wanted = {event for rule in rules for event in rule.events}
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        found: dict[str, Row] = {}
        for happening in self._happenings(tx, wanted, rules):
            for rule in rules:
                row = self._row(tx, rule, happening)
                if row is not None:
                    found[row["id"]] = row
        return list(found.values())

    def _row(self, tx: Transaction, rule: NotifyRule, it: Happening) -> Row | None:
        if not rule.wants(it.event, it.tenant, it.tool):
            return None
        id = notifications.id_of(it.tenant, rule.name, it.event, it.subject, it.occurrence)
        if id in self._known:
            return None
        if it.event == "expiring" and not self._is_close(tx, it.subject, rule.before):
            return None
        if notifications.is_known(tx, id):
            self._known.add(id)
            return None
        if rule.person is not None and not can_act(tx, rule.person, it):
            return None
        return outbox_row(rule, it)

    def _happenings(
        self, tx: Transaction, wanted: set[str], rules: Sequence[NotifyRule]
    ) -> Iterator[Happening]:
        if wanted & {"waiting", "expiring"}:
            yield from self._requests(tx)
        if "expiring" in wanted:
            yield from self._expiring(tx, max(rule.before for rule in rules))
        if "in-doubt" in wanted:
            yield from _doubts(tx)
        if "your-turn" in wanted:
            yield from _turns(tx, {"state": "due", "due_at": None}, "your-turn")
        if "parked" in wanted:
            yield from _turns(tx, {"state": "parked"}, "parked")
        if wanted & set(_AUDITED.values()):
            yield from _audited(tx)

    def _requests(self, tx: Transaction) -> Iterator[Happening]:
        """Pending requests: the new ones, and now and then all of them.

        A transaction of another process may commit rows of an earlier time than those seen here.
        """
        whole = tx.now >= self._whole_at or tx.now < self._since
        if whole:
            self._whole_at, self._since = tx.now + _WHOLE_EVERY, 0.0
        now = timekeeping.now(tx)
        where = {"state": "pending", "decide_by >=": now}
        since = self._since - _OVERLAP
        while True:
            page = tx.select(
                "approvals", where | {"created_at >=": since}, order_by="created_at", limit=_PAGE
            )
            for row in page:
                self._deadlines[row["id"]] = (row["decide_by"], row["created_at"])
                yield _request(row, "waiting")
            if page:
                self._since = max(self._since, page[-1]["created_at"])
            if len(page) < _PAGE or page[-1]["created_at"] == since:
                return
            since = page[-1]["created_at"]

    def _expiring(self, tx: Transaction, earliest: float) -> Iterator[Happening]:
        now = timekeeping.now(tx)
        for id, (decide_by, _) in list(self._deadlines.items()):
            if decide_by - earliest > now:
                continue
            row = tx.get("approvals", id)
            if row is None or row["state"] != "pending" or row["decide_by"] < now:
                del self._deadlines[id]
            else:
                yield _request(row, "expiring")

    def _is_close(self, tx: Transaction, id: str, before: float) -> bool:
        """Whether the time has come; at the latest half of the time to decide is given first."""
        decide_by, created_at = self._deadlines[id]
        lead = min(before, (decide_by - created_at) / 2)
        return timekeeping.now(tx) >= decide_by - lead


def outbox_row(rule: NotifyRule, it: Happening) -> Row:
    """The row that tells a rule of an event."""
    id = notifications.id_of(it.tenant, rule.name, it.event, it.subject, it.occurrence)
    row: Row = {"id": id, "tenant": it.tenant, "rule": rule.name, "event": it.event}
    return row | {"subject": it.subject, "occurrence": it.occurrence}


def can_act(tx: Transaction, person: str, it: Happening) -> bool:
    """Whether an event is one that a person can do something about."""
    theirs = people.person_of(tx, person)
    if it.whose is not None:
        return people.person_of(tx, it.whose) == theirs
    if theirs in {people.person_of(tx, name) for name in it.not_by}:
        return False
    row = tx.get("people", theirs or "")
    if row is None:
        return True
    roles = tx.select("memberships", {"person_id": row["id"]})
    here = [each["role"] for each in roles if each["tenant"] == it.tenant]
    return row["revoked_at"] is None and (not roles or any(r in _DECIDE for r in here))


_DECIDE = ("approver", "admin")


def _request(row: Row, event: str) -> Happening:
    asked = json.loads(row["request"]).get("by_others")
    names = (row["principal"], row["requester"]) if asked else ()
    return Happening(
        event=event,
        subject=row["id"],
        tenant=row["tenant"] or "",
        tool=row["tool"],
        not_by=tuple(name for name in names if name),
    )


def _doubts(tx: Transaction) -> Iterator[Happening]:
    for row in doubt.in_doubt(tx):
        yield Happening(
            event="in-doubt",
            subject=row["call_key"],
            tenant=row["tenant"] or "",
            occurrence=str(row["attempt"]),
            tool=row["tool"],
        )


def _turns(tx: Transaction, where: Row, event: str) -> Iterator[Happening]:
    for turn in tx.select("turns", where, limit=_PAGE):
        channel = tx.get("channels", turn["channel_id"])
        if channel is None:
            continue
        whose = None
        if event == "your-turn":
            found = tx.select("identities", {"agent_id": turn["agent_id"]}, limit=1)
            if not found or found[0]["kind"] != "human":
                continue
            whose = found[0]["name"]
        waits = tx.select("turn_waits", {"turn_id": turn["turn_id"]}, order_by="waits_for")
        yield Happening(
            event=event,
            subject=turn["turn_id"],
            tenant=channel["tenant"] or "",
            occurrence=" ".join([str(turn["attempt"]), *(row["waits_for"] for row in waits)]),
            whose=whose,
        )


def _audited(tx: Transaction) -> Iterator[Happening]:
    since = notifications.cursor(tx)
    if since is None:
        return
    for record in _records(tx, since - _OVERLAP):
        channel = tx.get("channels", record["channel_id"] or "")
        yield Happening(
            event=_AUDITED[record["kind"]],
            subject=record["id"],
            tenant="" if channel is None else channel["tenant"] or "",
        )


def _records(tx: Transaction, since: float) -> Iterable[Row]:
    seen: set[str] = set()
    while True:
        page = tx.select("audit", {"at >=": since}, order_by="at", limit=_PAGE)
        new = [row for row in page if row["id"] not in seen]
        seen.update(row["id"] for row in new)
        yield from (row for row in new if row["kind"] in _AUDITED)
        if len(page) < _PAGE or not new:
            return
        since = page[-1]["at"]
