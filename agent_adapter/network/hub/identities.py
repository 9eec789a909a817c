"""The part of a hub that is about who takes part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent_adapter.core.errors import ProtocolError
from agent_adapter.network.channels.snapshot import iso
from agent_adapter.network.hub import audit, directory
from agent_adapter.network.hub.admission import Admission, Identity
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.rules import Rule
from agent_adapter.store.base import Transaction

if TYPE_CHECKING:
    from agent_adapter.network.hub.channel_service import ChannelService

__all__ = ["HubIdentities"]


class HubIdentities:
    """Registered participants: found by name or id, described, and permitted things."""

    admission: Admission
    _board: ChannelService
    _directory: directory.Directory

    def is_connected(self, agent_id: str) -> bool:
        """Whether somebody is attached for that participant."""
        raise NotImplementedError

    async def register_identity(
        self, passport: Passport, resume: Resume, rule: Rule | None = None
    ) -> Passport:
        """The passport with its id; the same id again for a name that is not connected.

        `ProtocolError` for a name that is connected, `AccessDeniedError` for one not let in.
        """
        known = self._directory.find(passport.name)
        if known is not None and known.name == passport.name and self.is_connected(known.agent_id):
            raise ProtocolError(
                f"{passport.name} is registered and connected; disconnect it, or take another name"
            )
        self.admission.check_register(Identity(passport, resume, rule or Rule()))
        identity = await self._board.write(
            lambda tx: directory.register(tx, passport, resume, rule)
        )
        self._directory.put(identity)
        return identity.passport

    async def unregister(self, agent_id: str) -> None:
        """Forget a participant; its name is free again, what it said stays."""
        identity = self._directory.get(agent_id)
        await self._board.write(lambda tx: directory.forget(tx, identity))
        self._directory.drop(identity.agent_id)
        self.admission.rates.forget(identity.agent_id)

    def name_for(self, agent_id: str, *, default: str | None = None) -> str:
        """The name of a participant; `default`, else the id itself, where it is not known."""
        found = self._directory.find(agent_id)
        return found.name if found is not None else (agent_id if default is None else default)

    def find_agent_id(self, name: str) -> str | None:
        """The id of the participant of that name."""
        return self._directory.ids().get(name)

    def name_to_id_map(self) -> dict[str, str]:
        """Id by name, of everybody."""
        return self._directory.ids()

    async def get_agent(self, name_or_id: str) -> Passport:
        """The passport of a participant; `NotFoundError` lists the names where there is none."""
        return self._directory.get(name_or_id).passport

    async def get_resume(self, agent_id: str) -> Resume:
        """What a participant can do."""
        return self._directory.get(agent_id).resume

    async def get_rule(self, agent_id: str) -> Rule:
        """What a participant may do."""
        return self._directory.get(agent_id).rule

    async def get_skill(self, agent_id: str) -> str | None:
        """The page that a participant has published about itself."""
        return self._directory.skill(self._directory.get(agent_id).agent_id)

    async def set_resume(self, agent_id: str, resume: Resume) -> None:
        """Replace what a participant says it can do; what was observed of it stays."""
        old = self._directory.get(agent_id)
        version = old.resume.version + 1

        def op(tx: Transaction) -> Identity:
            kept = replace(
                resume,
                observed=old.resume.observed,
                version=version,
                last_updated=iso(tx.now),
            )
            identity = replace(old, resume=kept)
            directory.save(tx, identity, audit.RESUME_SET)
            return identity

        self._directory.put(await self._board.write(op))

    async def set_rule(self, agent_id: str, rule: Rule) -> None:
        """Replace what a participant may do."""
        identity = replace(self._directory.get(agent_id), rule=rule)
        await self._board.write(lambda tx: directory.save(tx, identity, audit.RULE_SET))
        self._directory.put(identity)

    async def set_skill(self, agent_id: str, skill_md: str | None) -> None:
        """Replace the page that a participant has published about itself."""
        identity = self._directory.get(agent_id)
        await self._board.write(lambda tx: directory.save_skill(tx, identity, skill_md))
        self._directory.set_skill(identity.agent_id, skill_md)

    async def list_agents(
        self,
        *,
        capability: str | None = None,
        query: str | None = None,
        kind: str | None = None,
        limit: int = 50,
    ) -> list[Passport]:
        """Participants: those with a capability, of a kind, or whose words match `query`."""
        found = [
            item.passport
            for item in self._directory.all()
            if _fits(item, capability=capability, query=query, kind=kind)
        ]
        return found[:limit]


def _fits(
    identity: Identity, *, capability: str | None, query: str | None, kind: str | None
) -> bool:
    resume = identity.resume
    if kind is not None and identity.passport.effective_kind != kind:
        return False
    if capability is not None and capability not in resume.claimed_capabilities:
        return False
    words = [identity.name, resume.summary, *resume.domains, *resume.claimed_capabilities]
    return query is None or query.casefold() in " ".join(words).casefold()
