"""Turns events into the calls of a listener's methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from agent_adapter.core.errors import NetworkError
from agent_adapter.flow.envelope import (
    EV_CHANNEL_CLOSED,
    EV_CHANNEL_EXPIRED,
    EV_CHANNEL_INVITE,
    EV_CHANNEL_OPENED,
    Envelope,
)
from agent_adapter.network.channels.metadata import ChannelMetadata, Expectation
from agent_adapter.network.channels.violations import Violation
from agent_adapter.network.events.event import (
    DISPATCH_FAILED,
    ENVELOPE_POSTED,
    ENVELOPE_REJECTED,
    EXPECTATION_FIRED,
    INBOX_PRESSURE,
    TURN_FAILED,
    HubEvent,
)
from agent_adapter.network.events.listeners import Prepare
from agent_adapter.network.events.recent_errors import RecentErrors, attempt_key

Arguments = tuple[str, tuple[Any, ...]]
"""The name of a listener's method, and its arguments."""

_OF_THE_HUB = (EV_CHANNEL_INVITE, EV_CHANNEL_OPENED, EV_CHANNEL_CLOSED, EV_CHANNEL_EXPIRED)
_CHANNEL_KINDS = ("created", "closed", "expired", "reopened", "forked", "altered")
_OF_AGENTS = (
    *("agent_registered", "agent_unregistered"),
    *("resume_set", "rule_set", "skill_set"),
)


class Registry(Protocol):
    """What is known about channels and participants."""

    async def metadata(self, channel_id: str) -> ChannelMetadata:
        """The metadata of a channel."""
        ...

    async def records(self, agent_id: str, kind: str) -> dict[str, Any]:
        """The records of a participant that an event of that kind comes with."""
        ...


class ListenerCalls:
    """Calls the method of a listener that an event asks for."""

    def __init__(self, registry: Registry, errors: RecentErrors) -> None:
        self._registry = registry
        self._errors = errors

    def to(self, listener: Any) -> Prepare:
        """What calls the methods of `listener`; those that it lacks are left out."""

        async def prepare(event: HubEvent) -> Callable[[], Any] | None:
            called = await self.arguments(event)
            method = None if called is None else getattr(listener, called[0], None)
            if called is None or method is None:
                return None
            return partial(method, *called[1])

        return prepare

    async def arguments(self, event: HubEvent) -> Arguments | None:
        """The method and its arguments; `None` for an event that listeners are not told of."""
        kind = event.kind
        payload = {**event.payload, "at": event.at}
        if kind == ENVELOPE_POSTED:
            return await self._posted(event, payload)
        if kind in (ENVELOPE_REJECTED, DISPATCH_FAILED):
            return self._refused(event)
        if kind.startswith("channel_") and kind.removeprefix("channel_") in _CHANNEL_KINDS:
            return await self._channel(event, payload)
        if kind in _OF_AGENTS:
            return await self._agent(event, payload)
        if kind == EXPECTATION_FIRED:
            violation = _violation(event)
            return "on_expectation_fired", (event.channel_id, violation.expectation, violation)
        if kind == TURN_FAILED:
            return self._failed(event)
        return _of_work(event, payload)

    async def _posted(self, event: HubEvent, payload: dict[str, Any]) -> Arguments | None:
        envelope = _envelope(event)
        if envelope.event_type == EV_CHANNEL_OPENED:
            metadata = await self._registry.metadata(envelope.channel_id)
            opened = {"metadata": metadata, "at": payload["at"]}
            return "on_channel_event", (envelope.channel_id, "opened", opened)
        if envelope.event_type in _OF_THE_HUB:
            return None
        metadata = await self._registry.metadata(envelope.channel_id)
        return "on_envelope_posted", (envelope, metadata)

    def _refused(self, event: HubEvent) -> Arguments:
        error = self._errors.get(event.cursor) or NetworkError(event.payload["error"])
        if event.kind == ENVELOPE_REJECTED:
            return "on_envelope_rejected", (_envelope(event), error)
        return "on_dispatch_failed", (_envelope(event), event.agent_id, error)

    async def _channel(self, event: HubEvent, payload: dict[str, Any]) -> Arguments:
        kind = event.kind.removeprefix("channel_")
        channel_id = event.channel_id or ""
        if kind == "created":
            payload["metadata"] = await self._registry.metadata(channel_id)
        return "on_channel_event", (channel_id, kind, payload)

    async def _agent(self, event: HubEvent, payload: dict[str, Any]) -> Arguments:
        kind = event.kind.removeprefix("agent_")
        if payload.get("source") == "observed":
            kind = "observation_recorded"
        agent_id = event.agent_id or ""
        records = await self._registry.records(agent_id, kind)
        return "on_agent_event", (agent_id, kind, payload | records)

    def _failed(self, event: HubEvent) -> Arguments:
        found = event.payload
        error = self._errors.get(attempt_key(event.turn_id, found.get("attempt", 0)))
        if error is None:
            error = NetworkError(f"{found.get('exc_type')}: {found.get('exc_message')}")
        about = (event.channel_id, event.agent_id, event.envelope_id or "", error)
        return "on_turn_failed", about


def _of_work(event: HubEvent, payload: dict[str, Any]) -> Arguments | None:
    if event.kind == INBOX_PRESSURE:
        return "on_inbox_pressure", (event.agent_id, payload.get("pending"), payload.get("cap"))
    if not event.kind.startswith("task_"):
        return None
    payload |= {"channel_id": event.channel_id, "owner_id": event.agent_id}
    return "on_task_event", (event.task_id, event.kind.removeprefix("task_"), payload)


def _envelope(event: HubEvent) -> Envelope:
    found = event.envelope
    assert found is not None  # noqa: S101  # such an event always has one
    return found


def _violation(event: HubEvent) -> Violation:
    found = event.payload
    expectation = Expectation(
        str(found.get("expectation")), str(found.get("on_violation")), found.get("params") or {}
    )
    return Violation(expectation, list(found.get("violators") or ()), found.get("detail") or {})
