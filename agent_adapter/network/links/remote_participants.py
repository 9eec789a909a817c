"""`RemoteParticipants`: the participants of a hub that live in other processes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from agent_adapter.core.errors import ProtocolError
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.links.remote_participant import RemoteParticipant
from agent_adapter.network.links.served_hub import ServedHub
from agent_adapter.network.rules import Rule


class RemoteParticipants:
    """Registers them, keeps them for `grace` seconds after a lost connection, and dismisses them.

    Attributes:
        hub: the hub that they take part in.
        trusted: names, or globs over them, whose messages do not taint a channel.
    """

    def __init__(self, hub: ServedHub, trusted: Sequence[str], grace: float) -> None:
        self.hub = hub
        self.trusted = list(trusted)
        self._grace = grace
        self._by_name: dict[str, RemoteParticipant] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def admit(
        self, passport: Passport, resume: Resume, rule: Rule | None, instance: str
    ) -> RemoteParticipant:
        """The participant that `instance` had registered before a reconnection, or a new one."""
        found = self._by_name.get(passport.name)
        if found is not None and found.instance == instance:
            self._stop_timer(found)
            return found
        if found is not None:
            if found.sink is not None:
                raise ProtocolError(
                    f"{passport.name} is already registered and connected; disconnect it, "
                    "or take another name"
                )
            await self.dismiss(found)
        known, observed = self.hub.find_agent_id(passport.name), {}
        if known is not None:
            # A remote participant must not change the hub's observations.
            observed = (await self.hub.get_resume(known)).observed
        stamped = await self.hub.register_identity(
            passport, replace(resume, observed=observed), rule=rule, claimed=True
        )
        made = RemoteParticipant(self.hub, stamped, instance)
        self._by_name[stamped.name] = made
        return made

    def farewell(self, participant: RemoteParticipant) -> None:
        """A participant lost its connection: it may return within the grace period."""
        participant.sink = None
        loop = asyncio.get_running_loop()
        self._timers[participant.agent_id] = loop.call_later(self._grace, self._expire, participant)

    async def dismiss(self, participant: RemoteParticipant) -> None:
        """Remove a participant: the hub releases its running attempts."""
        self._stop_timer(participant)
        if self._by_name.get(participant.passport.name) is participant:
            del self._by_name[participant.passport.name]
            await self.hub.detach(participant.agent_id)

    async def close(self) -> None:
        """Dismiss everybody."""
        for participant in list(self._by_name.values()):
            await self.dismiss(participant)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _stop_timer(self, participant: RemoteParticipant) -> None:
        timer = self._timers.pop(participant.agent_id, None)
        if timer is not None:
            timer.cancel()

    def _expire(self, participant: RemoteParticipant) -> None:
        task = asyncio.get_running_loop().create_task(self.dismiss(participant))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
