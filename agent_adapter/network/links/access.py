"""Who may request an operation over a connection: one check per condition.

A check raises the error that the client gets. It may replace an argument by the hub's own value, so
that an operation never trusts what the other end claims.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from agent_adapter.core.errors import AccessDeniedError
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.turns.turn_types import TurnRef


class Asker(Protocol):
    """The requesting connection, as far as checks need it."""

    def check_own(self, agent_id: str) -> None:
        """`AccessDeniedError` for a participant that the connection has not registered."""
        ...

    async def check_member(self, channel_id: str) -> None:
        """`NotFoundError` for a channel that none of its participants is in."""
        ...

    async def check_in(self, agent_id: str, channel_id: str) -> None:
        """`NotFoundError` for a channel that this participant is not in."""
        ...

    async def check_opener(self, channel_id: str) -> None:
        """`NotFoundError` for a channel that none of its participants has opened."""
        ...

    async def check_own_parked(self, turn_id: str) -> None:
        """`NotFoundError` for a turn of another connection."""
        ...

    async def check_own_task(self, task: Any) -> None:
        """`NotFoundError` for a task of another connection; `task` is its id, or its record."""
        ...

    async def check_seen_task(self, task_id: str) -> None:
        """`NotFoundError` for a task that is neither its own nor of a channel it is in."""
        ...

    def own_turn(self, turn: TurnRef) -> TurnRef:
        """The hub's own reference to an attempt; `StaleTurn` if it is not running here."""
        ...

    def own_envelope(self, envelope: Envelope) -> Envelope:
        """The envelope with its sender filled in; `AccessDeniedError` for another's."""
        ...


@dataclass(frozen=True, slots=True)
class Access:
    """A condition: `text` states it for the protocol's page, `check` enforces it."""

    text: str
    check: Callable[[Asker, dict[str, Any]], Awaitable[None]]


def own(field: str) -> Access:
    """`field` is a participant of the connection; without a value nothing is checked."""

    async def check(asker: Asker, arguments: dict[str, Any]) -> None:
        if arguments[field] is not None:
            asker.check_own(arguments[field])

    return Access(f"`{field}` is registered by the connection", check)


def member(field: str) -> Access:
    """`field` is a channel that a participant of the connection is in."""

    async def check(asker: Asker, arguments: dict[str, Any]) -> None:
        await asker.check_member(arguments[field])

    return Access(f"the connection has a participant in `{field}`", check)


def owner_in(field: str) -> Access:
    """`owner_id` is in the channel `field`; without a value nothing is checked."""

    async def check(asker: Asker, arguments: dict[str, Any]) -> None:
        if arguments[field] is not None:
            await asker.check_in(arguments["owner_id"], arguments[field])

    return Access(f"`owner_id` is in `{field}`", check)


def opener(field: str) -> Access:
    """`field` is a channel that a participant of the connection has opened."""

    async def check(asker: Asker, arguments: dict[str, Any]) -> None:
        await asker.check_opener(arguments[field])

    return Access(f"a participant of the connection has opened `{field}`", check)


def own_parked(field: str) -> Access:
    """`field` is a turn of a participant of the connection."""

    async def check(asker: Asker, arguments: dict[str, Any]) -> None:
        await asker.check_own_parked(arguments[field])

    return Access(f"`{field}` is a turn of the connection's participant", check)


def own_task(field: str) -> Access:
    """`field` is a task of a participant of the connection, who is in the channel it names."""

    async def check(asker: Asker, arguments: dict[str, Any]) -> None:
        await asker.check_own_task(arguments[field])

    return Access(f"`{field}` is a task of the connection's participant", check)


def seen_task(field: str) -> Access:
    """`field` is a task of a participant of the connection, or of a channel that it is in."""

    async def check(asker: Asker, arguments: dict[str, Any]) -> None:
        await asker.check_seen_task(arguments[field])

    return Access(f"`{field}` is a task of its participant, or of a channel it is in", check)


def hub_process(reason: str) -> Access:
    """Refuses every connection; `reason` is the error."""

    async def check(asker: Asker, arguments: dict[str, Any]) -> None:
        raise AccessDeniedError(reason)

    return Access("the hub's own process alone", check)


async def _anybody(asker: Asker, arguments: dict[str, Any]) -> None:
    return


async def _own_turn(asker: Asker, arguments: dict[str, Any]) -> None:
    arguments["turn"] = asker.own_turn(arguments["turn"])


async def _own_sender(asker: Asker, arguments: dict[str, Any]) -> None:
    arguments["envelope"] = asker.own_envelope(arguments["envelope"])


ANYBODY = Access("every connection", _anybody)
OWN_TURN = Access("the attempt is under way on the connection", _own_turn)
OWN_SENDER = Access("the sender is registered by the connection", _own_sender)
