"""Turns and errors as JSON, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_adapter.core import errors
from agent_adapter.core.errors import AgentAdapterError, NetworkError, ProtocolError
from agent_adapter.core.records import Record
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.turns.turn_types import StagedChange, StartedTurn, TurnRef

HIDDEN = "hidden"
"""The event type in place of an envelope that its reader may not see."""


class RemoteFailure(NetworkError):
    """A participant's turn failed in its own process; the text has the error."""

    kind = "far-failure"
    remote_class: str | None = None
    outage = False


def hidden(channel_id: str) -> Envelope:
    """A placeholder for an envelope that its reader may not see: it keeps the log's numbering."""
    return Envelope(channel_id, "", [], HIDDEN, {})


@dataclass(frozen=True, slots=True)
class TurnRecord(Record):
    """A started turn as JSON, without the owner's id, which stays in the hub."""

    turn_id: str
    attempt: int
    agent_id: str
    n: int
    trigger: Envelope | None
    metadata: ChannelMetadata
    state: dict[str, Any]
    seq: int
    spoken: int
    staged: list[StagedChange]


def started_to_wire(started: StartedTurn, adapter: ChannelAdapter) -> dict[str, Any]:
    """A started turn as JSON."""
    return TurnRecord(
        turn_id=started.turn_id,
        attempt=started.attempt,
        agent_id=started.agent_id,
        n=started.n,
        trigger=started.trigger,
        metadata=started.metadata,
        state=adapter.state_to_dict(started.state),
        seq=started.seq,
        spoken=started.spoken,
        staged=list(started.staged),
    ).to_dict()


def started_from_wire(data: Mapping[str, Any], adapters: AdapterRegistry) -> StartedTurn:
    """The started turn that `started_to_wire` wrote; `ProtocolError` names each invalid field."""
    read = TurnRecord.from_dict(data)
    metadata = read.metadata
    adapter = adapters.get(metadata.manifest.type, metadata.manifest.version)
    return StartedTurn(
        ref=TurnRef(
            turn_id=read.turn_id,
            channel_id=metadata.channel_id,
            attempt=read.attempt,
            owner_id="",
        ),
        agent_id=read.agent_id,
        n=read.n,
        trigger=read.trigger,
        metadata=metadata,
        state=adapter.state_from_dict(metadata, read.state),
        seq=read.seq,
        spoken=read.spoken,
        staged=tuple(read.staged),
    )


def error_to_wire(error: BaseException) -> tuple[str, str]:
    """The kind and text of an error; of a foreign one only the class, as its text may be secret."""
    if isinstance(error, NetworkError):
        return error.kind, str(error)
    if isinstance(error, AgentAdapterError):
        return NetworkError.kind, f"{error.kind}: {error}"
    return NetworkError.kind, f"the hub failed with {type(error).__name__}; see its log"


def error_from_wire(kind: str, message: str) -> NetworkError:
    """The error that `error_to_wire` wrote."""
    return _BY_KIND.get(kind, NetworkError)(message)


def failure_from_wire(
    kind: str, message: str, error_class: str | None = None, *, outage: bool = False
) -> NetworkError:
    """A failure of a turn: the hub retries all but a `ProtocolError`."""
    if kind == ProtocolError.kind:
        return ProtocolError(message)
    failure = RemoteFailure(message)
    failure.remote_class, failure.outage = error_class, outage
    return failure


def _network_errors(base: type[NetworkError]) -> Iterator[type[NetworkError]]:
    yield base
    for item in base.__subclasses__():
        if item.__module__ == errors.__name__:
            yield from _network_errors(item)


_BY_KIND = {item.kind: item for item in _network_errors(NetworkError)}
