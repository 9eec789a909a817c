"""Registered participants: their rows, and the copy that the hub keeps in memory."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from agent_adapter.core.errors import AuthError, NotFoundError, ProtocolError
from agent_adapter.exec.ids import new_secret_id
from agent_adapter.network.auth import AuthRegistry
from agent_adapter.network.channels.snapshot import iso
from agent_adapter.network.hub import audit, observations
from agent_adapter.network.hub.admission import Admission, Registration
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.network.identity import (
    AuthBlock,
    ObservedStat,
    Passport,
    Resume,
    check_enforced,
)
from agent_adapter.network.rules import Rule
from agent_adapter.network.turns import turn_queue
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.witness import RULE

_log = logging.getLogger("agent_adapter.network")


class Identities:
    """Finds, registers, describes and limits participants.

    The hub is the only writer of its store's identities, so reads are answered from memory.
    """

    def __init__(
        self, service: ChannelService, admission: Admission, auth: AuthRegistry | None = None
    ) -> None:
        self._service = service
        service.is_person = self.is_person
        self._admission = admission
        self.auth = auth if auth is not None else AuthRegistry.default()
        self._by_id: dict[str, Registration] = {}
        self._ids: dict[str, str] = {}
        self._skills: dict[str, str] = {}
        self.when_registered: Callable[[Passport], None] = lambda _: None

    def find(self, name_or_id: str) -> Registration | None:
        """The identity with that id, else with that name."""
        return self._by_id.get(name_or_id) or self._by_id.get(self._ids.get(name_or_id, ""))

    def get(self, name_or_id: str) -> Registration:
        """Like `find`; `NotFoundError` lists the known names if there is none."""
        found = self.find(name_or_id)
        if found is None:
            names = ", ".join(sorted(self._ids)[:20]) or "none"
            raise NotFoundError(f"no participant {name_or_id!r} is registered; registered: {names}")
        return found

    def registered(self, agent_ids: Iterable[str]) -> list[Registration]:
        """The identities of those ids that are still registered."""
        return [found for item in agent_ids if (found := self._by_id.get(item)) is not None]

    def unknown(self, agent_ids: Iterable[str]) -> list[str]:
        """Those of the ids that no participant has."""
        return [item for item in agent_ids if item not in self._by_id]

    def is_person(self, agent_id: str) -> bool:
        """Whether a person takes its turns."""
        identity = self._by_id.get(agent_id)
        return identity is not None and identity.passport.kind == "human"

    def is_privileged(self, agent_id: str) -> bool:
        """Whether its rule says that not everybody may give it a turn."""
        identity = self._by_id.get(agent_id)
        return identity is not None and identity.rule.privileged

    def is_connected(self, agent_id: str) -> bool:
        """Whether a receiver is attached for that participant."""
        return self._service.receiver(agent_id) is not None

    def replace_all(self, found: Iterable[tuple[Registration, str | None]]) -> None:
        """Replace the copy in memory."""
        self._by_id.clear()
        self._ids.clear()
        self._skills.clear()
        for identity, skill in found:
            self._put(identity)
            if skill is not None:
                self._skills[identity.agent_id] = skill

    async def register_identity(
        self,
        passport: Passport,
        resume: Resume,
        rule: Rule | None = None,
        *,
        claimed: bool = False,
        skill_md: str | None = None,
    ) -> Passport:
        """The passport with its id; the same id again for a name that is not connected.

        A rule stays with its name, also over `unregister`. `claimed` says that `rule` is the
        participant's own wish: it never replaces one.

        `AuthError` if `passport.auth` proves nothing, or has another scheme than the name was
        registered with. `ProtocolError` for a connected name, `AccessDeniedError` if the arbiter
        refuses.
        """
        check_enforced(passport)
        known = self.find(passport.name)
        await self.authenticate(passport, passport.auth, None if known is None else known.passport)
        if known is not None and known.name == passport.name and self.is_connected(known.agent_id):
            raise ProtocolError(
                f"{passport.name} is already registered and connected; disconnect it, or "
                "take another name"
            )
        await self._admission.check_register(Registration(passport, resume, rule or Rule()))
        identity = await self._service.write(
            lambda tx: _register(tx, passport, resume, rule, claimed=claimed)
        )
        self._put(identity)
        self.when_registered(identity.passport)
        if skill_md is not None:
            await self.set_skill(identity.agent_id, skill_md)
        return identity.passport

    async def authenticate(
        self, passport: Passport, auth: AuthBlock, known: Passport | None
    ) -> None:
        """Raises `AuthError` unless `auth` proves that it is `passport`, as it was known before."""
        if known is not None and known.auth.scheme != auth.scheme:
            raise AuthError(
                f"{passport.name} was registered with the auth scheme {known.auth.scheme!r}, "
                f"not {auth.scheme!r}"
            )
        # A remote agent's scheme is no credential: it names the proxy that delivers to it.
        if passport.effective_kind != "remote_agent":
            await self.auth.check(passport, auth)

    async def unregister(self, agent_id: str) -> None:
        """Remove a participant; its name is free again, its messages stay in the logs."""
        identity = self.get(agent_id)
        left = await self._service.write(lambda tx: _forget(tx, identity))
        for turn in left:
            _log.warning(
                "%s was unregistered, and channel %s still waits for its turn %s: close the "
                "channel, unless it goes on without it",
                identity.name,
                turn["channel_id"],
                turn["turn_id"],
            )
        self._by_id.pop(identity.agent_id, None)
        self._ids.pop(identity.name, None)
        self._skills.pop(identity.agent_id, None)
        self._admission.rates.forget(identity.agent_id)

    async def reload(self, agent_id: str) -> None:
        """Take over what the hub has written about a participant besides these methods."""
        found = await self._service.read(lambda tx: one(tx, agent_id))
        if found is not None:
            self._put(found)

    def with_capability(self, capability: str) -> list[str]:
        """The ids of the participants that claim `capability`, or were observed to have it."""
        return sorted(
            item.agent_id for item in self._by_id.values() if _has(item.resume, capability)
        )

    def name_for(self, agent_id: str, *, default: str | None = None) -> str:
        """The name of a participant; `default`, else the id itself, for an unknown one."""
        found = self.find(agent_id)
        return found.name if found is not None else (agent_id if default is None else default)

    def find_agent_id(self, name: str) -> str | None:
        """The id of the participant with that name."""
        return self._ids.get(name)

    def name_to_id_map(self) -> dict[str, str]:
        """The ids of all participants by name."""
        return dict(self._ids)

    def passport_of(self, name_or_id: str) -> Passport:
        """The passport of a participant; `NotFoundError` lists the known names."""
        return self.get(name_or_id).passport

    async def get_agent(self, name_or_id: str) -> Passport:
        """The same as `passport_of`, awaited as AG2's."""
        return self.passport_of(name_or_id)

    async def get_resume(self, agent_id: str) -> Resume:
        """The résumé of a participant."""
        return self.get(agent_id).resume

    async def get_rule(self, agent_id: str) -> Rule:
        """The rule of a participant."""
        return self.get(agent_id).rule

    async def get_skill(self, agent_id: str) -> str | None:
        """The page that a participant publishes about itself."""
        return self._skills.get(self.get(agent_id).agent_id)

    async def set_resume(self, agent_id: str, resume: Resume) -> None:
        """Replace a participant's résumé; the observed record stays."""
        old = self.get(agent_id)
        version = old.resume.version + 1

        def op(tx: Transaction) -> Registration:
            kept = replace(
                resume,
                observed=old.resume.observed,
                version=version,
                last_updated=iso(tx.now),
            )
            identity = replace(old, resume=kept)
            _save(tx, identity, audit.RESUME_SET)
            return identity

        self._put(await self._service.write(op))

    async def set_rule(self, agent_id: str, rule: Rule) -> None:
        """Replace what a participant may do."""
        identity = replace(self.get(agent_id), rule=rule)
        await self._service.write(lambda tx: _save(tx, identity, audit.RULE_SET))
        self._put(identity)

    async def set_skill(self, agent_id: str, skill_md: str | None) -> None:
        """Replace the page that a participant has published about itself; `None` removes it."""
        identity = self.get(agent_id)
        await self._service.write(lambda tx: _save_skill(tx, identity, skill_md))
        if skill_md is None:
            self._skills.pop(identity.agent_id, None)
        else:
            self._skills[identity.agent_id] = skill_md

    async def list_agents(
        self,
        *,
        capability: str | None = None,
        query: str | None = None,
        kind: str | None = None,
        limit: int = 50,
    ) -> list[Passport]:
        """Participants with a capability, of a kind, or whose name or résumé contains `query`."""
        found = [
            item.passport
            for item in self._by_id.values()
            if _fits(item, capability=capability, query=query, kind=kind)
        ]
        return found[:limit]

    def _put(self, identity: Registration) -> None:
        self._by_id[identity.agent_id] = identity
        self._ids[identity.name] = identity.agent_id


def one(tx: Transaction, agent_id: str) -> Registration | None:
    """The participant with that id, as the store has it."""
    rows = tx.select("identities", {"agent_id": agent_id}, limit=1)
    return _identity(rows[0]) if rows else None


def load_all(tx: Transaction) -> list[tuple[Registration, str | None]]:
    """All registered participants with their pages, in the order of registration."""
    rows = tx.select("identities", order_by="registered_at")
    return [(_identity(row), row["skill"]) for row in rows]


def _fits(
    identity: Registration, *, capability: str | None, query: str | None, kind: str | None
) -> bool:
    resume = identity.resume
    if kind is not None and identity.passport.effective_kind != kind:
        return False
    if capability is not None and not _has(resume, capability):
        return False
    words = [identity.name, resume.summary, *resume.domains, *resume.claimed_capabilities]
    return query is None or query.casefold() in " ".join(words).casefold()


def _has(resume: Resume, capability: str) -> bool:
    return capability in resume.claimed_capabilities or capability in resume.observed


def _register(
    tx: Transaction,
    passport: Passport,
    resume: Resume,
    rule: Rule | None,
    *,
    claimed: bool,
    tenant: str = "",
) -> Registration:
    """Write an identity; a known name keeps its id, and its rule if none is given.

    A rule that is `claimed` by the participant itself counts only for a name without one.
    """
    row = tx.get("identities", passport.name)
    if row is None:
        agent_id, at = new_secret_id("agt"), tx.now
        rule = _kept_rule(tx, passport.name, rule, claimed=claimed)
    else:
        agent_id, at = row["agent_id"], row["registered_at"]
        resume = replace(resume, observed=_observed(row))
        if rule is None or claimed:
            rule = Rule.from_dict(json.loads(row["rule"]))
    # The claim has been checked, and is kept nowhere; that of a remote agent is for its proxy.
    auth = passport.auth
    if passport.effective_kind != "remote_agent":
        auth = replace(auth, claim={})
    stamped = replace(passport, auth=auth, agent_id=agent_id, created_at=iso(at))
    identity = Registration(stamped, resume, rule if rule is not None else Rule())
    if row is None:
        known: Row = {"name": passport.name, "agent_id": agent_id, "tenant": tenant}
        tx.insert("identities", known | {"registered_at": at} | _values(identity))
        audit.write(tx, audit.REGISTERED, {"agent_id": agent_id, "name": passport.name})
    else:
        tx.update("identities", {"name": passport.name}, _values(identity))
    return identity


def _kept_rule(tx: Transaction, name: str, rule: Rule | None, *, claimed: bool) -> Rule | None:
    """The rule of a name that was unregistered, unless the hub's own program gives another."""
    kept = tx.get("meta", RULE + name)
    if kept is None:
        return rule
    tx.delete("meta", {"name": RULE + name})
    if rule is not None and not claimed:
        return rule
    return Rule.from_dict(json.loads(kept["value"]))


def _save(tx: Transaction, identity: Registration, kind: str) -> None:
    """Write a changed résumé or rule; `kind` is that of the audit record."""
    row = tx.get("identities", identity.name)
    if row is not None:  # the hub may have seen something since the caller read it
        identity = replace(identity, resume=replace(identity.resume, observed=_observed(row)))
    tx.update("identities", {"name": identity.name}, _values(identity))
    version = identity.resume.version if kind == audit.RESUME_SET else identity.rule.version
    facts = {"agent_id": identity.agent_id, "version": version}
    source = {"source": audit.RESUME_SOURCE_TENANT} if kind == audit.RESUME_SET else {}
    audit.write(tx, kind, facts | source)


def _save_skill(tx: Transaction, identity: Registration, text: str | None) -> None:
    tx.update("identities", {"name": identity.name}, {"skill": text})
    facts = {"agent_id": identity.agent_id, "removed": text is None}
    audit.write(tx, audit.SKILL_SET, facts)


def _forget(tx: Transaction, identity: Registration) -> list[Row]:
    """Remove an identity; returns the turns that nobody can take any more."""
    tx.delete("identities", {"name": identity.name})
    observations.forget(tx, identity.agent_id)
    if identity.rule != Rule():
        # It binds whoever comes back under the name.
        kept = {"name": RULE + identity.name, "value": json.dumps(identity.rule.to_dict())}
        tx.insert("meta", kept)
    facts = {"agent_id": identity.agent_id, "name": identity.name}
    audit.write(tx, audit.UNREGISTERED, facts)
    left = tx.select("turns", {"agent_id": identity.agent_id, "state in": list(turn_queue.OPEN)})
    for turn in left:
        ids = {"agent_id": identity.agent_id, "channel_id": turn["channel_id"]}
        why = {"turn_id": turn["turn_id"], "reason": "unregistered"}
        audit.write(tx, audit.TURN_STUCK, ids | why)
    return left


def _observed(row: Row) -> dict[str, ObservedStat]:
    return Resume.from_dict(json.loads(row["resume"])).observed


def _identity(row: Row) -> Registration:
    return Registration(
        Passport.from_dict(json.loads(row["passport"])),
        Resume.from_dict(json.loads(row["resume"])),
        Rule.from_dict(json.loads(row["rule"])),
    )


def _values(identity: Registration) -> Row:
    return {
        "kind": identity.passport.effective_kind,
        "passport": json.dumps(identity.passport.to_dict()),
        "resume": json.dumps(identity.resume.to_dict()),
        "rule": json.dumps(identity.rule.to_dict()),
    }
