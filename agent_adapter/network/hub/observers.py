"""`Observers`: who watches a hub, and what is noted for them besides the logs."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from agent_adapter.core.errors import AgentAdapterError, NetworkError, StaleTurn
from agent_adapter.core.rate import TokenBucket
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.events.calls import ListenerCalls
from agent_adapter.network.events.event import DISPATCH_FAILED, ENVELOPE_REJECTED, HubEvent
from agent_adapter.network.events.listeners import Listeners
from agent_adapter.network.events.reading import may_be_audited
from agent_adapter.network.hub import audit
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.network.hub.identities import one
from agent_adapter.store.base import Transaction
from agent_adapter.store.positions import used

_log = logging.getLogger("agent_adapter.network")

_NOTED_PER_MINUTE = 60
_LONGEST_REASON = 2000

_RECORDS = {
    "registered": "passport",
    "resume_set": "resume",
    "observation_recorded": "resume",
    "rule_set": "rule",
}


class Observers:
    """The listeners of a hub, and the events that no other row tells of."""

    def __init__(self, service: ChannelService, context: contextvars.Context) -> None:
        self._service = service
        self._noted = TokenBucket()
        self.listeners = Listeners(service.feed, context)
        self._calls = ListenerCalls(self, service.feed.errors)

    def register_listener(self, listener: Any) -> None:
        """Call the methods of a `HubListener` with what happens from now on.

        An operation returns after its listeners were called. One that raises is logged; one that
        is slow or hangs is logged, and waited for no more: it gets its events later, in order.
        """
        self.listeners.add(listener, self._calls.to(listener))

    def unregister_listener(self, listener: Any) -> None:
        """Call a listener no more; one that is not registered changes nothing."""
        self.listeners.remove(listener)

    def tail(self, callback: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        """Give every later record of the audit log to `callback`."""

        async def prepare(event: HubEvent) -> Callable[[], Any] | None:
            if not may_be_audited(event.kind):
                return None
            record = await self._service.read(lambda tx: audit.record_at(tx, int(event.cursor)))
            return None if record is None else partial(callback, record)

        self.listeners.add(callback, prepare)

    async def metadata(self, channel_id: str) -> ChannelMetadata:
        """The metadata of a channel."""
        return (await self._service.snapshot(channel_id)).metadata

    async def records(self, agent_id: str, kind: str) -> dict[str, Any]:
        """The records of a participant that an event of that kind comes with."""
        name = _RECORDS.get(kind)
        # From the store: the hub's own copy follows its writes.
        found = None if name is None else await self._service.read(lambda tx: one(tx, agent_id))
        return {} if name is None or found is None else {name: getattr(found, name)}

    async def rejected(self, envelope: Envelope, error: NetworkError) -> None:
        """Note an envelope that was refused, at most 60 times a minute for each sender."""
        if not isinstance(error, StaleTurn):
            facts = {"agent_id": envelope.sender_id}
            await self._note(ENVELOPE_REJECTED, envelope, error, facts)

    async def undelivered(self, envelope: Envelope, agent_id: str, error: Exception) -> None:
        """Note an envelope that a recipient did not take."""
        await self._note(DISPATCH_FAILED, envelope, error, {"agent_id": agent_id})

    async def _note(
        self, kind: str, envelope: Envelope, error: Exception, facts: Mapping[str, Any]
    ) -> None:
        _log.info("%s: %s in %s: %s", kind, envelope.sender_id, envelope.channel_id, error)
        who = f"{kind} {facts['agent_id']}"
        if self._noted.wait(who, burst=_NOTED_PER_MINUTE, per_minute=_NOTED_PER_MINUTE):
            return  # a flood of refusals must not fill the store
        about = {
            "channel_id": envelope.channel_id,
            "envelope_id": envelope.envelope_id or None,
            "error": str(error)[:_LONGEST_REASON],
            "error_kind": getattr(error, "kind", type(error).__name__),
            "envelope": envelope.to_dict(),
        }

        def op(tx: Transaction) -> None:
            known = tx.get("channels", envelope.channel_id) is not None
            # The record of an invented channel must not begin a chain of its own.
            where = {} if known else {"channel_id": None, "asked_channel_id": envelope.channel_id}
            audit.write(tx, kind, about | dict(facts) | where)
            self._service.feed.errors.keep(str(used(tx)), error)

        try:
            await self._service.write(op)
        except AgentAdapterError as exc:
            _log.warning("%s was not recorded: %s", kind, exc)
