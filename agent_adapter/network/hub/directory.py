"""Who is registered: identities as rows, and as the hub knows them by name and id."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from agent_adapter.core.errors import NotFoundError
from agent_adapter.exec.ids import new_id
from agent_adapter.network.channels.snapshot import iso
from agent_adapter.network.hub import audit
from agent_adapter.network.hub.admission import Identity
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.rules import Rule
from agent_adapter.store.base import Row, Transaction

__all__ = ["Directory", "forget", "load_all", "register", "save"]


class Directory:
    """The identities that a hub knows; a name and an id lead to the same one."""

    def __init__(self) -> None:
        self._by_id: dict[str, Identity] = {}
        self._ids: dict[str, str] = {}
        self._skills: dict[str, str] = {}

    def put(self, identity: Identity, skill: str | None = None) -> None:
        """Know `identity`, in place of what was known of its id."""
        self._by_id[identity.agent_id] = identity
        self._ids[identity.name] = identity.agent_id
        if skill is not None:
            self._skills[identity.agent_id] = skill

    def drop(self, agent_id: str) -> None:
        """Know it no longer."""
        identity = self._by_id.pop(agent_id, None)
        if identity is not None:
            self._ids.pop(identity.name, None)
            self._skills.pop(agent_id, None)

    def find(self, name_or_id: str) -> Identity | None:
        """The identity of that id, else of that name."""
        return self._by_id.get(name_or_id) or self._by_id.get(self._ids.get(name_or_id, ""))

    def get(self, name_or_id: str) -> Identity:
        """`find`, with `NotFoundError` that lists the names where there is none."""
        found = self.find(name_or_id)
        if found is None:
            names = ", ".join(sorted(self._ids)[:20]) or "nobody"
            raise NotFoundError(f"no participant {name_or_id!r} is registered; registered: {names}")
        return found

    def skill(self, agent_id: str) -> str | None:
        """The page that a participant has published about itself."""
        return self._skills.get(agent_id)

    def set_skill(self, agent_id: str, text: str | None) -> None:
        """Replace that page."""
        if text is None:
            self._skills.pop(agent_id, None)
        else:
            self._skills[agent_id] = text

    def ids(self) -> dict[str, str]:
        """Id by name, of everybody."""
        return dict(self._ids)

    def all(self) -> list[Identity]:
        """Everybody, in the order of registration."""
        return list(self._by_id.values())

    def is_person(self, agent_id: str) -> bool:
        """Whether its turns are taken by hand."""
        identity = self._by_id.get(agent_id)
        return identity is not None and identity.passport.effective_kind == "human"

    def replace_all(self, found: Iterable[tuple[Identity, str | None]]) -> None:
        """Know exactly these."""
        self._by_id.clear()
        self._ids.clear()
        self._skills.clear()
        for identity, skill in found:
            self.put(identity, skill)


def register(
    tx: Transaction, passport: Passport, resume: Resume, rule: Rule | None, tenant: str = ""
) -> Identity:
    """Write who somebody is; a known name keeps its id, and its rule where none is given."""
    row = tx.get("identities", passport.name)
    if row is None:
        agent_id, at = new_id("agt"), tx.now
    else:
        agent_id, at = row["agent_id"], row["registered_at"]
        rule = rule if rule is not None else Rule.from_dict(json.loads(row["rule"]))
    stamped = replace(passport, agent_id=agent_id, created_at=iso(at))
    identity = Identity(stamped, resume, rule if rule is not None else Rule())
    if row is None:
        known: Row = {"name": passport.name, "agent_id": agent_id, "tenant": tenant}
        tx.insert("identities", known | {"registered_at": at} | _values(identity))
        audit.write(tx, audit.REGISTERED, {"agent_id": agent_id, "name": passport.name})
    else:
        tx.update("identities", {"name": passport.name}, _values(identity))
    return identity


def save(tx: Transaction, identity: Identity, kind: str) -> None:
    """Write a changed résumé or rule; `kind` is that of the audit record."""
    tx.update("identities", {"name": identity.name}, _values(identity))
    version = identity.resume.version if kind == audit.RESUME_SET else identity.rule.version
    audit.write(tx, kind, {"agent_id": identity.agent_id, "version": version})


def save_skill(tx: Transaction, identity: Identity, text: str | None) -> None:
    """Write the page that a participant publishes about itself; `None` removes it."""
    tx.update("identities", {"name": identity.name}, {"skill": text})
    facts = {"agent_id": identity.agent_id, "removed": text is None}
    audit.write(tx, audit.SKILL_SET, facts)


def forget(tx: Transaction, identity: Identity) -> None:
    """Remove a participant; what it said stays in the logs."""
    tx.delete("identities", {"name": identity.name})
    facts = {"agent_id": identity.agent_id, "name": identity.name}
    audit.write(tx, audit.UNREGISTERED, facts)


def load_all(tx: Transaction) -> list[tuple[Identity, str | None]]:
    """Everybody who is registered, in the order of registration."""
    rows = tx.select("identities", order_by="registered_at")
    return [(_identity(row), row["skill"]) for row in rows]


def _identity(row: Row) -> Identity:
    return Identity(
        Passport.from_dict(json.loads(row["passport"])),
        Resume.from_dict(json.loads(row["resume"])),
        Rule.from_dict(json.loads(row["rule"])),
    )


def _values(identity: Identity) -> Row:
    return {
        "kind": identity.passport.effective_kind,
        "passport": json.dumps(identity.passport.to_dict()),
        "resume": json.dumps(identity.resume.to_dict()),
        "rule": json.dumps(identity.rule.to_dict()),
    }
