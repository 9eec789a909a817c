"""Channels, participants and envelopes as the tests of clients and adapters write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_adapter.flow import EV_TEXT, Envelope, TransitionGraph
from agent_adapter.network.channels.metadata import (
    ChannelManifest,
    ChannelMetadata,
    ChannelState,
    Participant,
    ParticipantRole,
)
from agent_adapter.network.hub.admission import Registration
from agent_adapter.network.identity import Passport
from agent_adapter.network.rules import Rule


def metadata(
    type: str = "workflow", ids: Sequence[str] = ("a", "b", "c"), **knobs: Any
) -> ChannelMetadata:
    """A running channel of participants whose names are their ids in capitals."""
    other = ParticipantRole.RESPONDENT if len(ids) == 2 else ParticipantRole.PARTICIPANT
    roles = [ParticipantRole.INITIATOR, *[other] * len(ids)]
    people = [Participant(id, roles[n], n, name=id.upper()) for n, id in enumerate(ids)]
    return ChannelMetadata(
        "ch",
        ChannelManifest(type),
        ids[0],
        people,
        ChannelState.ACTIVE,
        "2026-01-01T00:00:00Z",
        knobs=knobs,
    )


def workflow(graph: TransitionGraph | None = None, **knobs: Any) -> ChannelMetadata:
    """A workflow channel of a, b and c, which speak in that order unless `graph` says else."""
    chosen = graph or TransitionGraph.sequence(["a", "b", "c"])
    return metadata(graph=chosen.to_dict(), **knobs)


def said(sender: str, text: str = "hello", event: str = EV_TEXT, **fields: Any) -> Envelope:
    """Something that `sender` says."""
    data = fields.pop("data", {"text": text})
    audience = fields.pop("audience", None)
    return Envelope("ch", sender, audience, event, data, **fields)


def identity(name: str, rule: Rule | None = None) -> Registration:
    """A registered participant whose id is its name in small letters."""
    return Registration(Passport(name=name, agent_id=name.lower()), rule=rule or Rule())
