"""Operations between the two ends of a connection: entries of the table in `links.operations`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.links.access import ANYBODY, OWN_TURN, member, own, own_parked
from agent_adapter.network.links.bounds import Count, Id, Ids, Seconds, Text
from agent_adapter.network.links.operation import operation
from agent_adapter.network.rules import Rule
from agent_adapter.network.turns.turn_types import TurnRef


class LinkOperations(Protocol):
    """Operations between the two ends of a connection; `RemoteHub` makes the rest of `HubLike`."""

    # Repeatable: after a cut it attaches the participant to the new connection.
    @operation(ANYBODY, repeatable=True)
    async def register(
        self,
        passport: Passport,
        resume: Resume,
        rule: Rule | None = None,
        cursors: Mapping[str, str] | None = None,
        seen_at: Id | None = None,
        running: Sequence[TurnRef] = (),
    ) -> Passport:
        """Register a participant, or take it up again after a cut.

        `cursors` names the last envelope received per channel, `seen_at` the time of the newest,
        `running` the attempts under way; with `cursors` the hub sends what was missed.
        """
        ...

    @operation(own("agent_id"))
    async def leave(self, agent_id: Id) -> None:
        """Stop delivering to a participant; its attempts under way are released."""
        ...

    @operation(member("channel_id"), repeatable=True)
    async def read_wal(
        self, channel_id: Id, since: Count = 0, until: Count | None = None
    ) -> dict[str, Any]:
        """A page of a log as `{"envelopes", "more"}`; entries not for the connection are blank."""
        ...

    @operation(member("channel_id"), repeatable=True)
    async def adapter_state(self, channel_id: Id) -> dict[str, Any]:
        """A channel's metadata and folded state as `{"metadata", "state"}`."""
        ...

    @operation(OWN_TURN)
    async def fail_turn(
        self,
        turn: TurnRef,
        error: Id,
        message: Text,
        error_class: Id | None = None,
        outage: bool = False,
    ) -> None:
        """Count a failed attempt; `error` is the kind of the error, `error_class` its class.

        `outage` says that a provider is away, so that the attempt is repeated for longer.
        """
        ...

    @operation(ANYBODY, repeatable=True)
    async def read_events(
        self, after: Id | None = None, kinds: Ids | None = None, wait: Seconds = 0.0
    ) -> dict[str, Any]:
        """Events that the connection may see, as `{"events", "cursor"}`; waits for the first.

        Without `after` the answer is the newest cursor.
        """
        ...

    @operation(own("agent_id"), repeatable=True)
    async def set_by_hand(self, agent_id: Id, by_hand: bool) -> None:
        """Start no turns of the participant: its process takes them by hand; or start them again.

        For a participant whose agent is replaced by a handler.
        """
        ...

    @operation(own_parked("turn_id"))
    async def take_turn(self, turn_id: Id) -> bool:
        """Start a due turn of a participant that takes its turns by hand; whether it was due.

        Waits until no other round of the channel runs.
        """
        ...

    @operation(ANYBODY)
    async def turn_over(self, turn: TurnRef, error: Id, message: Text) -> None:
        """The attempt has ended at the other end; `error` is the kind of its error, or empty."""
        ...
