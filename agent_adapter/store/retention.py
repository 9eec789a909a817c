"""How long what is recorded is kept, per tenant, and what is held whatever its age.

Policies and holds are rows of `meta`, vouched for in the chain of the store as a whole.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from typing import Any, Literal

from agent_adapter.store import ledger
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.keys import conversation_key
from agent_adapter.store.witness import HOLD, RETENTION, UPKEEP, meta_rows

_DAY = 86_400.0

Kept = Literal["runs", "payloads", "channels", "audit"]
HoldKind = Literal["run", "conversation", "tenant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long one tenant's records are kept after they were last used; `None` is for ever.

    Attributes:
        runs: runs whole, with their calls, approvals and entries of the ledger.
        payloads: arguments and results of calls; what was done stays in the ledger.
        channels: transcripts of channels that have ended; a summary stays.
        audit: records about participants and channels.
    """

    runs: timedelta | None = None
    payloads: timedelta | None = None
    channels: timedelta | None = None
    audit: timedelta | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and not (
                isinstance(value, timedelta) and value >= timedelta(minutes=1)
            ):
                raise ValueError(
                    f"retention of {each.name} is {value!r}: give a timedelta of a minute or more,"
                    " or None to keep them for ever"
                )

    def before(self, kept: Kept, now: float) -> float | None:
        """Records last used before that time may go; `None` where all are kept."""
        age: timedelta | None = getattr(self, kept)
        return None if age is None else now - age.total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What is kept whatever its age: a run, a conversation or a tenant; who said so, and why."""

    kind: HoldKind
    name: str
    tenant: str
    by: str
    reason: str
    at: float


def policies(tx: Transaction) -> dict[str, Retention]:
    """The policy of each tenant that has one."""
    return {
        row["name"].removeprefix(RETENTION): _retention(json.loads(row["value"]))
        for row in meta_rows(tx, RETENTION)
    }


def set_policies(tx: Transaction, wanted: Mapping[str, Retention], *, by: str) -> None:
    """Set the policy of each of these tenants; a policy that keeps everything removes its row."""
    for tenant, retention in wanted.items():
        said = {
            name: age.total_seconds() for name, age in asdict(retention).items() if age is not None
        }
        value = json.dumps({"v": 1, **said}, sort_keys=True)
        row = tx.get("meta", RETENTION + tenant)
        if (row is None and not said) or (row is not None and row["value"] == value):
            continue
        _put(tx, RETENTION + tenant, value if said else None)
        facts = {"tenant": tenant, "retention": said, "reviewer": by}
        ledger.append(tx, UPKEEP, "retention-set", None, facts)


def holds(tx: Transaction) -> list[Hold]:
    """Every hold, in the order of their names."""
    return [Hold(**json.loads(row["value"])) for row in meta_rows(tx, HOLD)]


def hold(
    tx: Transaction, kind: HoldKind, name: str, *, tenant: str = "", by: str, reason: str = ""
) -> None:
    """Keep a run, a conversation (or channel) of `tenant`, or a tenant until it is released."""
    made = Hold(kind=kind, name=name, tenant=tenant, by=by, reason=reason, at=tx.now)
    _put(tx, _name(kind, name, tenant), json.dumps(asdict(made)))
    facts = {"reviewer": by, "held": kind, "name": name, "of_tenant": tenant, "reason": reason}
    ledger.append(tx, UPKEEP, "held", None, facts)


def release(tx: Transaction, kind: HoldKind, name: str, *, tenant: str = "", by: str) -> bool:
    """End a hold; whether there was one."""
    if not tx.delete("meta", {"name": _name(kind, name, tenant)}):
        return False
    facts = {"reviewer": by, "held": kind, "name": name, "of_tenant": tenant}
    ledger.append(tx, UPKEEP, "released", None, facts)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A tenant's policy and what is older than it: at most so many runs, channels and records.

    Ages are in days, `None` for ever. What is held or may still be asked for is counted too.
    """

    tenant: str
    ages: Mapping[str, float | None]
    older: Mapping[str, int]


def outlook(tx: Transaction, tenant: str | None = None) -> list[Outlook]:
    """What would go at most, by tenant or of one; read from indexes."""
    known = policies(tx)
    wanted = known if tenant is None else known.keys() & {tenant}
    return [_outlook(tx, name, known[name]) for name in wanted]


def holds_of(tx: Transaction, tenant: str) -> list[Hold]:
    """The holds of a tenant's records, and of the tenant itself."""
    return [each for each in holds(tx) if _owner(tx, each) == tenant]


def _owner(tx: Transaction, held: Hold) -> str:
    if held.kind == "tenant":
        return held.name
    run = tx.get("runs", held.name) if held.kind == "run" else None
    return held.tenant if run is None else run["tenant"] or ""


def _outlook(tx: Transaction, tenant: str, policy: Retention) -> Outlook:
    older: dict[str, int] = {}
    places: dict[Kept, tuple[str, str]] = {
        "runs": ("runs", "started_at"),
        "payloads": ("runs", "started_at"),
        "channels": ("channels", "closed_at"),
        "audit": ("audit", "at"),
    }
    ages: dict[str, float | None] = {}
    for kept, (table, by) in places.items():
        before = policy.before(kept, tx.now)
        ages[kept] = None if before is None else (tx.now - before) / _DAY
        where: dict[str, Any] = {f"{by} <": before}
        if table == "audit":
            older[kept] = 0 if before is None else _old_audit(tx, where, tenant)
            continue
        where |= {"tenant": tenant} | ({"summary": None} if table == "channels" else {})
        older[kept] = 0 if before is None else tx.count(table, where)
    return Outlook(tenant=tenant, ages=ages, older=older)


def _old_audit(tx: Transaction, where: Mapping[str, Any], tenant: str) -> int:
    """How many audit records; they bear no tenant, only their channels do."""
    old = Counter(row["channel_id"] for row in tx.select("audit", where))
    rows = {each: tx.get("channels", each) for each in old if each is not None}
    owners = {each: "" if row is None else row["tenant"] or "" for each, row in rows.items()}
    return sum(count for each, count in old.items() if owners.get(each, "") == tenant)


class Holds:
    """What is held, looked up once for a step of pruning."""

    def __init__(self, tx: Transaction) -> None:
        found = holds(tx)
        self._tx = tx
        self._tenants = {each.name for each in found if each.kind == "tenant"}
        self._runs = {each.name for each in found if each.kind == "run"}
        talks = [each for each in found if each.kind == "conversation"]
        self._channels = {(each.tenant, each.name) for each in talks}
        self._conversations = {conversation_key(each.tenant, each.name) for each in talks}

    def keeps_run(self, row: Row) -> bool:
        """Whether the run stays: it, its conversation or its tenant is held."""
        return (
            (row["tenant"] or "") in self._tenants
            or not self._runs.isdisjoint((row["run_id"], row["name"], row["root_run_id"]))
            or self._keeps_conversation_of(row)
        )

    def _keeps_conversation_of(self, run: Row) -> bool:
        if not self._conversations:
            return False
        calls = self._tx.select("calls", {"run_id": run["run_id"]})
        found = {run["conversation"], *(call["conversation"] for call in calls)}
        return not found.isdisjoint(self._conversations)

    def keeps_channel(self, row: Row) -> bool:
        """Whether the channel's transcript stays."""
        tenant = row["tenant"] or ""
        return tenant in self._tenants or (tenant, row["channel_id"]) in self._channels


def _name(kind: str, name: str, tenant: str) -> str:
    return HOLD + json.dumps([kind, tenant, name])


def _put(tx: Transaction, name: str, value: str | None) -> None:
    if value is None:
        tx.delete("meta", {"name": name})
    elif not tx.insert("meta", {"name": name, "value": value}):
        tx.update("meta", {"name": name}, {"value": value})


def _retention(said: Mapping[str, Any]) -> Retention:
    known = dict(_ages(said))
    return Retention(**known)


def _ages(said: Mapping[str, Any]) -> Iterator[tuple[str, timedelta]]:
    for each in fields(Retention):
        if said.get(each.name) is not None:
            yield each.name, timedelta(seconds=said[each.name])
