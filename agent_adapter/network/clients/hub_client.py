"""`HubClient`: registers the participants of one program with a hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from agent_adapter.core.native import Policy
from agent_adapter.network.clients.agent_client import AgentClient
from agent_adapter.network.clients.connection import HubConnection
from agent_adapter.network.clients.human_client import HumanClient
from agent_adapter.network.clients.participant import ParticipantClient
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.rules import Rule
from agent_adapter.network.turns.drivers import native_policies

P = TypeVar("P", bound=ParticipantClient)


class HubClient(HubConnection):
    """A connection to the hub at the other end of `link`; made when it is first needed.

    `hub` may be given with a `LocalLink`, and is then the same. `executor` runs the tool calls of
    participants registered here; without it the hub's own if the hub is in this process, else the
    process's default one.
    """

    async def register(
        self,
        agent: Any,
        passport: Passport,
        resume: Resume | None = None,
        *,
        rule: Rule | None = None,
        skill_md: str | None = None,
        attach_plugin: bool = True,
        tools: Mapping[str, Policy] | None = None,
    ) -> AgentClient:
        """Register an agent of a framework, or a plain function, as a participant.

        A name that is registered but not connected keeps its id. `attach_plugin` adds the tools
        `peers`, `channels`, `tasks`, `context` and `delegate`. `tools` are the policies of the
        agent's own tools by name, `"*"` for all of them:
        `{"charge": Policy(effects="write", confirm=True)}`.

        Raises:
            ToolDefinitionError: `tools` names a tool that the agent does not have.
            ValueError: the passport is a person's; use `register_human`.
            NetworkError: no installed integration drives such an agent.
            ProtocolError: the name is connected already.
        """
        if passport.kind == "human":
            raise ValueError(
                f"{passport.name} is a person (kind='human'): use register_human(passport), which "
                "takes no agent"
            )
        drive = self._drive_of(agent)
        native = native_policies(agent, passport.name, tools)
        stamped, own = await self._registered(passport, resume, rule)
        client = AgentClient(
            agent=agent,
            drive=drive,
            passport=stamped,
            resume=own[0],
            rule=own[1],
            hub_client=self,
            native=native,
        )
        if attach_plugin:
            from agent_adapter.network.plugin import NetworkPlugin

            client.tools = NetworkPlugin(client).tools
        if skill_md is not None:
            await self.set_skill(client.agent_id, skill_md)
        await self._attached(client)
        if not self._shares_store:
            await self.resume_turns(client.agent_id)
        return client

    async def register_human(
        self,
        passport: Passport,
        *,
        resume: Resume | None = None,
        rule: Rule | None = None,
        auto_ack_invites: bool = True,
    ) -> HumanClient:
        """Register a person; without `auto_ack_invites` they answer each invitation themselves.

        `ValueError` for a passport of another kind, `ProtocolError` for a name that is connected.
        """
        if passport.kind not in (None, "human"):
            raise ValueError(
                f"{passport.name} has kind={passport.kind!r}: register_human is for people, use "
                "register(agent, passport) for agents"
            )
        passport = replace(passport, kind="human")
        stamped, own = await self._registered(passport, resume, rule)
        client = HumanClient(
            passport=stamped,
            resume=own[0],
            rule=own[1],
            hub_client=self,
            auto_ack_invites=auto_ack_invites,
        )
        return await self._attached(client)

    def _drive_of(self, agent: Any) -> Any:
        own = getattr(self.hub, "driver_for", None)
        if own is not None:
            return own(agent)
        from agent_adapter.network.turns.drivers import driver_for

        return driver_for(agent)

    async def _registered(
        self, passport: Passport, resume: Resume | None, rule: Rule | None
    ) -> tuple[Passport, tuple[Resume, Rule]]:
        far = await self.hub_like()
        given = resume if resume is not None else Resume()
        stamped = await far.register_identity(passport, given, rule=rule)
        return stamped, (given, rule if rule is not None else Rule())

    async def _attached(self, client: P) -> P:
        far = await self.hub_like()
        far.attach(client.agent_id, client)
        self._clients.append(client)
        return client
