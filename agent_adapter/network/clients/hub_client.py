"""`HubClient`: registers the participants of one program with a hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from agent_adapter.core.errors import NotFoundError
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
        passport: Passport | None = None,
        resume: Resume | None = None,
        *,
        rule: Rule | None = None,
        skill_md: str | None = None,
        attach_plugin: bool = True,
        tools: Mapping[str, Policy] | None = None,
    ) -> AgentClient:
        """Register an agent of a framework, or a plain function, as a participant.

        Without `passport` the participant has the agent's name. A name that is registered but not
        connected keeps its id. `attach_plugin` adds the tools `peers`, `channels`, `tasks`,
        `context` and `delegate`; an AG2 agent has them outside of channels, too. `tools` are the
        policies of the agent's own tools by name, `"*"` for all of them:
        `{"charge": Policy(effects="write", confirm=True)}`.

        Raises:
            ToolDefinitionError: `tools` names a tool that the agent does not have.
            ValueError: the passport is a person's; use `register_human`.
            NetworkError: no installed integration drives such an agent.
            ProtocolError: the name is connected already.
            AuthError: `passport.auth` proves nothing to the hub.
        """
        self.check_open()
        passport = passport if passport is not None else Passport(name=name_of(agent))
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
        if skill_md is not None:
            await self.set_skill(client.agent_id, skill_md)
        if attach_plugin:
            from agent_adapter.network.plugin import NetworkPlugin

            NetworkPlugin(client).attach()
        await self._attached(client)
        if not self._shares_store:
            await self.resume_turns(client.agent_id)
        return client

    async def attach(
        self,
        agent: Any,
        name: str,
        *,
        passport: Passport | None = None,
        resume: Resume | None = None,
        rule: Rule | None = None,
        skill_md: str | None = None,
        attach_plugin: bool = True,
        tools: Mapping[str, Policy] | None = None,
        since_envelope_id: str | None = "",
    ) -> AgentClient:
        """Take the registered participant `name` up again, with its id, résumé and rule.

        Its earlier connection in this process, if any, ends. A name that is not registered is
        registered with `passport` and `resume`; without them `ValueError`. `passport` also has the
        credential of a name that was registered with one. Turns that wait start by themselves,
        whatever `since_envelope_id` is.
        """
        self.check_open()
        try:
            known = await self.get_agent(name)
        except NotFoundError:
            if passport is None or resume is None:
                raise ValueError(
                    f"attach({name!r}): the name is not registered; pass passport= and resume= to "
                    "register it"
                ) from None
        else:
            agent_id = known.agent_id or ""
            if self.hub is not None and self.hub.is_connected(agent_id):
                await self.hub.detach(agent_id)
            resume = await self.get_resume(agent_id)
            rule = rule if self.hub is None else await self.get_rule(agent_id)
            auth = known.auth if passport is None else passport.auth
            passport = replace(known, auth=auth)
        return await self.register(
            agent,
            passport,
            resume,
            rule=rule,
            skill_md=skill_md,
            attach_plugin=attach_plugin,
            tools=tools,
        )

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
        self.check_open()
        if passport.kind not in (None, "human"):
            raise ValueError(
                f"{passport.name} has kind={passport.kind!r}, and register_human is for "
                "kind='human': use register(agent, passport) for agents"
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


def name_of(agent: Any) -> str:
    """The name of an agent, or of a function; `ValueError` if it has none."""
    for attribute in ("name", "__name__"):
        name = getattr(agent, attribute, None)
        if isinstance(name, str) and name:
            return name
    raise ValueError(
        f"a {type(agent).__name__} has no name: pass a passport, as register(agent, "
        "Passport(name='...'))"
    )
