"""`Endpoints`: connections that programs attach to a hub, and proxies of remote agents."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, runtime_checkable

from agent_adapter.core.errors import NotFoundError
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.compat.endpoints import LinkEndpoint
from agent_adapter.network.compat.frame_session import Cursors, FrameSession
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.network.identity import Passport
from agent_adapter.network.links.served_hub import ServedHub

_log = logging.getLogger("agent_adapter.network")


@runtime_checkable
class RemoteAgentProxy(Protocol):
    """Delivers envelopes to agents of another system: those whose `auth.scheme` is its scheme."""

    @property
    def scheme(self) -> str:
        """The scheme of the passports that it serves."""
        ...

    async def dispatch(self, envelope: Envelope, recipient: Passport) -> None:
        """Deliver an envelope; an error is reported to listeners as a failed dispatch."""
        ...

    async def close(self) -> None:
        """Release what it holds; a second call does nothing."""
        ...


class Endpoints:
    """The frame sessions and remote proxies of a hub.

    The acknowledgements of sessions are kept in memory: after a restart a client that asks for what
    it missed gets again what it had acknowledged.
    """

    def __init__(
        self, hub: ServedHub, service: ChannelService, passport_of: Callable[[str], Passport]
    ) -> None:
        self._passport_of = passport_of
        self._hub = hub
        self._service = service
        self._cursors: Cursors = {}
        self._sessions: dict[str, FrameSession] = {}
        self._proxies: dict[str, RemoteAgentProxy] = {}

    def attach_endpoint(self, endpoint: LinkEndpoint) -> asyncio.Task[None]:
        """Answer AG2's frames that arrive at `endpoint`; the task ends with the connection."""
        session = FrameSession(self._hub, endpoint, self._cursors)
        self._sessions[endpoint.endpoint_id] = session

        async def run() -> None:
            try:
                await session.run()
            finally:
                self._sessions.pop(endpoint.endpoint_id, None)
                await endpoint.close()

        return self._service.spawn(run)

    def bind_endpoint(self, endpoint_id: str, agent_id: str) -> Awaitable[None]:
        """Deliver to an attached endpoint what a registered participant may see.

        Await it to go on once an earlier connection of the participant has ended; a program that
        does not await it is bound all the same.

        `NotFoundError`, at once, for an unknown endpoint or participant.
        """
        session = self._sessions.get(endpoint_id)
        if session is None:
            raise NotFoundError(f"endpoint not attached: there is none with the id {endpoint_id!r}")
        passport = self._passport_of(agent_id)
        if self._hub.is_connected(agent_id):
            return self._service.spawn(lambda: session.bind(passport))
        session.bind_free(passport)
        bound: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        bound.set_result(None)
        return bound

    def inbox_cursor(self, agent_id: str, channel_id: str) -> str:
        """The last envelope that a participant's endpoint acknowledged; empty for none."""
        return self._cursors.get((agent_id, channel_id), "")

    def register_remote_proxy(self, proxy: RemoteAgentProxy) -> None:
        """Deliver with `proxy` to remote agents of its scheme; an earlier one is replaced."""
        self._proxies[proxy.scheme] = proxy

    def unregister_remote_proxy(self, scheme: str) -> RemoteAgentProxy | None:
        """Remove the proxy of a scheme; returns it."""
        return self._proxies.pop(scheme, None)

    def remote_proxy_for(self, scheme: str) -> RemoteAgentProxy | None:
        """The proxy of a scheme."""
        return self._proxies.get(scheme)

    def attach_remote(self, passport: Passport) -> None:
        """Deliver to a remote agent through the proxy of its scheme."""
        agent_id = passport.agent_id or ""
        if passport.effective_kind == "remote_agent" and not self._hub.is_connected(agent_id):
            self._hub.attach(agent_id, _Remote(passport, self._proxies))

    async def close(self) -> None:
        """Close the proxies; sessions end with the hub."""
        for proxy in list(self._proxies.values()):
            try:
                await proxy.close()
            except Exception:
                _log.exception("the proxy of %r did not close", proxy.scheme)
        self._proxies.clear()


class _Remote:
    """The receiver of a remote agent."""

    run_turn: Any = None

    def __init__(self, passport: Passport, proxies: dict[str, RemoteAgentProxy]) -> None:
        self._passport = passport
        self._proxies = proxies

    async def deliver(self, envelope: Envelope, seq: int) -> None:
        """Give the envelope to the proxy; what the agent itself has sent is not sent back."""
        if envelope.sender_id == self._passport.agent_id:
            return
        scheme = self._passport.auth.scheme
        proxy = self._proxies.get(scheme)
        if proxy is None:
            raise NotFoundError(f"no remote proxy registered for scheme {scheme!r}")
        await proxy.dispatch(envelope, self._passport)
