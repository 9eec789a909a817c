"""Turns and errors as JSON, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent_adapter.core import errors
from agent_adapter.core.errors import AgentAdapterError, NetworkError, ProtocolError
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.turns.turn_types import StagedChange, StartedTurn, TurnRef

HIDDEN = "hidden"
"""The event type in place of an envelope that its reader may not see."""


class RemoteFailure(NetworkError):
    """A participant's turn failed in its own process; the text names the error there."""

    kind = "far-failure"


def hidden(channel_id: str) -> Envelope:
    """A placeholder for an envelope that its reader may not see: it keeps the log's numbering."""
    return Envelope(channel_id, "", [], HIDDEN, {})


def started_to_wire(started: StartedTurn, adapter: ChannelAdapter) -> dict[str, Any]:
    """A started turn as JSON, without the owner's id: that stays in the hub."""
    return {
        "turn_id": started.turn_id,
        "attempt": started.attempt,
        "agent_id": started.agent_id,
        "n": started.n,
        "trigger": None if started.trigger is None else started.trigger.to_dict(),
        "metadata": started.metadata.to_dict(),
        "state": adapter.state_to_dict(started.state),
        "seq": started.seq,
        "spoken": started.spoken,
        "staged": [
            {"attempt": item.attempt, "call_key": item.call_key, "body": dict(item.body)}
            for item in started.staged
        ],
    }


def started_from_wire(data: Mapping[str, Any], adapter: ChannelAdapter) -> StartedTurn:
    """The started turn that `started_to_wire` wrote."""
    metadata = ChannelMetadata.from_dict(data["metadata"])
    trigger = data["trigger"]
    return StartedTurn(
        ref=TurnRef(
            turn_id=data["turn_id"],
            channel_id=metadata.channel_id,
            attempt=data["attempt"],
            owner_id="",
        ),
        agent_id=data["agent_id"],
        n=data["n"],
        trigger=None if trigger is None else Envelope.from_dict(trigger),
        metadata=metadata,
        state=adapter.state_from_dict(metadata, data["state"]),
        seq=data["seq"],
        spoken=data["spoken"],
        staged=tuple(StagedChange(**item) for item in data["staged"]),
    )


def error_to_wire(error: BaseException) -> tuple[str, str]:
    """The kind and text of an error; of a foreign one only the class, as its text may be secret."""
    if isinstance(error, NetworkError):
        return error.kind, str(error)
    if isinstance(error, AgentAdapterError):
        return NetworkError.kind, f"{error.kind}: {error}"
    return NetworkError.kind, f"the hub failed with {type(error).__name__}; its log says more"


def error_from_wire(kind: str, message: str) -> NetworkError:
    """The error that `error_to_wire` wrote."""
    return _BY_KIND.get(kind, NetworkError)(message)


def failure_from_wire(kind: str, message: str) -> NetworkError:
    """A failure of a turn: the hub retries all but a `ProtocolError`."""
    return ProtocolError(message) if kind == ProtocolError.kind else RemoteFailure(message)


def _network_errors(base: type[NetworkError]) -> Iterator[type[NetworkError]]:
    yield base
    for item in base.__subclasses__():
        if item.__module__ == errors.__name__:
            yield from _network_errors(item)


_BY_KIND = {item.kind: item for item in _network_errors(NetworkError)}
