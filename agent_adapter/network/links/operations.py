"""The operations of a hub: the table of what its clients may request.

An entry is a method with `@operation(who may, …)`: its name, its parameters with their bounds, its
result. The table drives the hub's server (dispatch, validation, authorisation), `RemoteHub` (which
asks for each over a connection), the type `HubLike` and the page docs/network/protocol.md. To add
an operation, declare it here and give `Hub` the method.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.events.feed import Subscription
from agent_adapter.network.hub.task_records import TaskMetadata
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.links.access import (
    ANYBODY,
    OWN_SENDER,
    OWN_TURN,
    hub_process,
    member,
    opener,
    own,
    own_parked,
    own_task,
    owner_in,
    seen_task,
)
from agent_adapter.network.links.bounds import Count, Id, Ids, Limit, State, Text, Window
from agent_adapter.network.links.link_operations import LinkOperations
from agent_adapter.network.links.operation import HubOperation, operation, operations_of
from agent_adapter.network.rules import Rule
from agent_adapter.network.turns.turn_types import PendingTurn, Receiver, RunTurn, TurnRef

_RULES = hub_process(
    "a rule is set where the hub runs: a participant cannot loosen its own rule over a connection"
)


class HubLike(Protocol):
    """A hub as its clients see it: `Hub` itself, or a `RemoteHub` over a connection.

    Methods without `@operation` work in this process, or are made of `LinkOperations`.
    """

    adapters: AdapterRegistry

    # --- participants -------------------------------------------------------------------------

    async def register_identity(
        self, passport: Passport, resume: Resume, rule: Rule | None = None
    ) -> Passport:
        """The passport with its id; the same id again for a name that is not connected."""
        ...

    @operation(own("agent_id"))
    async def unregister(self, agent_id: Id) -> None:
        """Remove a participant; its name is free again."""
        ...

    def attach(self, agent_id: str, receiver: Receiver) -> None:
        """Deliver envelopes and turns of a participant to `receiver`."""
        ...

    async def detach(self, agent_id: str) -> None:
        """Stop delivering; the participant stays registered."""
        ...

    @operation(ANYBODY, repeatable=True)
    async def get_agent(self, name_or_id: Id) -> Passport:
        """The passport of a participant; `NotFoundError` lists the known names."""
        ...

    @operation(ANYBODY, repeatable=True)
    async def list_agents(
        self,
        *,
        capability: Id | None = None,
        query: Id | None = None,
        kind: Id | None = None,
        limit: Limit = 50,
    ) -> list[Passport]:
        """Participants with a capability, of a kind, or whose name or résumé contains `query`."""
        ...

    @operation(ANYBODY, repeatable=True)
    async def get_resume(self, agent_id: Id) -> Resume:
        """The résumé of a participant."""
        ...

    @operation(own("agent_id"), repeatable=True)
    async def get_rule(self, agent_id: Id) -> Rule:
        """The rule of a participant."""
        ...

    @operation(ANYBODY, repeatable=True)
    async def get_skill(self, agent_id: Id) -> str | None:
        """The page that a participant publishes about itself."""
        ...

    @operation(own("agent_id"))
    async def set_resume(self, agent_id: Id, resume: Resume) -> None:
        """Replace a participant's résumé; the observed record stays."""
        ...

    @operation(_RULES)
    async def set_rule(self, agent_id: Id, rule: Rule) -> None:
        """Replace the rule of a participant."""
        ...

    @operation(own("agent_id"))
    async def set_skill(self, agent_id: Id, skill_md: str | None) -> None:
        """Replace the page that a participant has published about itself."""
        ...

    # --- channels -----------------------------------------------------------------------------

    @operation(own("creator_id"))
    async def create_channel(
        self,
        *,
        creator_id: Id,
        manifest_type: Id,
        manifest_version: Count = 1,
        participants: Ids,
        required_acks: Count | None = None,
        ttl: Id | int | None = None,
        knobs: Mapping[str, Any] | None = None,
        intent: Text | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ChannelMetadata:
        """Open a channel; returns when it is active."""
        ...

    @operation(OWN_SENDER)
    async def post_envelope(
        self,
        envelope: Envelope,
        *,
        turn: TurnRef | None = None,
        adopted: Ids = (),
        answers: Id | None = None,
    ) -> str:
        """Accept an envelope; its id.

        `turn` names the attempt whose packet it is, `answers` the turn that a person answers.
        """
        ...

    @operation(member("channel_id"), own("sender_id"))
    async def close_channel(
        self, channel_id: Id, reason: Text = "", *, sender_id: Id | None = None
    ) -> ChannelMetadata:
        """Close a channel in a participant's name; one that has ended stays as it is."""
        ...

    @operation(opener("channel_id"), own("sender_id"))
    async def reopen(self, channel_id: Id, *, sender_id: Id | None = None) -> ChannelMetadata:
        """Let a channel go on that has ended while somebody was expected to speak."""
        ...

    @operation(member("channel_id"), repeatable=True)
    async def get_channel(self, channel_id: Id) -> ChannelMetadata:
        """Everything about a channel except its messages."""
        ...

    @operation(own("agent_id"), repeatable=True)
    async def list_channels(
        self, *, agent_id: Id | None = None, state: State | None = None, limit: Limit = 50
    ) -> list[ChannelMetadata]:
        """Channels, newest first; over a connection those of its participants."""
        ...

    @operation(member("channel_id"), own("sender_id"), repeatable=True)
    async def may_send(self, channel_id: Id, sender_id: Id, event_type: Id | None = None) -> bool:
        """Whether the channel would accept a message of a participant now."""
        ...

    async def read_wal(
        self, channel_id: str, since: int = 0, until: int | None = None
    ) -> list[Envelope]:
        """The log from entry `since`, counted from 0, up to and without `until`."""
        ...

    @operation(member("channel_id"), own("participant_id"), repeatable=True)
    async def window(
        self, channel_id: Id, participant_id: Id, recent_n: Window, pinned: bool = False
    ) -> Sequence[Envelope]:
        """The newest texts and packets it may see, oldest first; if `pinned`, the first one too."""
        ...

    async def folded_state(self, channel_id: str) -> Any:
        """The folded state of a channel, as a copy."""
        ...

    # --- turns --------------------------------------------------------------------------------

    @operation(own("agent_id"), repeatable=True)
    async def pending_turns_for(self, agent_id: Id) -> list[PendingTurn]:
        """Turns of a participant that have not ended, oldest first."""
        ...

    @operation(own("agent_id"))
    async def resume_turns(self, agent_id: Id) -> int:
        """Start the turns of a participant that can run; returns how many wait for it."""
        ...

    @operation(OWN_TURN)
    async def stage(self, turn: TurnRef, /, call_key: Id | None, body: Mapping[str, Any]) -> None:
        """Keep a change of the running attempt until its packet."""
        ...

    @operation(OWN_TURN)
    async def end_silent_turn(self, turn: TurnRef, /, adopted: Ids = ()) -> None:
        """End a turn without a packet."""
        ...

    @operation(OWN_TURN)
    async def park_turn(self, turn: TurnRef, /, waits_for: Ids) -> None:
        """Set a turn aside until one of these approvals or calls is decided."""
        ...

    @operation(own_parked("turn_id"))
    async def wake_turn(self, turn_id: Id) -> None:
        """Make a parked turn due: what it waits for was decided outside the hub's store."""
        ...

    async def fail_turn(self, turn: TurnRef, /, error: BaseException) -> None:
        """Count a failed attempt."""
        ...

    @operation(OWN_TURN, repeatable=True)
    async def check_turn(self, turn: TurnRef, /) -> None:
        """`StaleTurn` unless the attempt may still write."""
        ...

    @operation(OWN_TURN)
    async def release_turn(self, turn: TurnRef, /) -> None:
        """Give a turn back without counting the attempt."""
        ...

    async def run_turn(self, turn_id: str, run_turn: RunTurn) -> None:
        """Run a due turn with `run_turn`, in place of its participant's own runner."""
        ...

    # --- tasks --------------------------------------------------------------------------------

    @operation(own("owner_id"), owner_in("channel_id"))
    async def start_task(
        self, task_id: Id, owner_id: Id, title: Text, channel_id: Id | None = None
    ) -> TaskMetadata:
        """Keep a new task; a known `task_id` gives the existing task."""
        ...

    @operation(own_task("metadata"))
    async def observe_task(self, metadata: TaskMetadata) -> TaskMetadata:
        """Keep a task that its owner has begun, or what its owner says of a known one."""
        ...

    @operation(own_task("task_id"), own("owner_id"))
    async def update_task(
        self,
        task_id: Id,
        owner_id: Id | None = None,
        *,
        state: Id | None = None,
        note: Text | None = None,
        progress: Mapping[str, Any] | None = None,
        result: Any = None,
        error: Text | None = None,
    ) -> TaskMetadata:
        """Change a task of its owner; one that has ended stays as it is."""
        ...

    @operation(seen_task("task_id"), repeatable=True)
    async def read_task(self, task_id: Id) -> TaskMetadata:
        """A task; `NotFoundError` for an unknown one."""
        ...

    @operation(seen_task("task_id"), repeatable=True)
    async def get_task(self, task_id: Id) -> TaskMetadata:
        """A task; `NotFoundError` for an unknown one."""
        ...

    @operation(ANYBODY, repeatable=True)
    async def list_tasks(
        self,
        owner_id: Id | None = None,
        *,
        agent_id: Id | None = None,
        channel_id: Id | None = None,
        state: Id | None = None,
        limit: Limit = 50,
    ) -> list[TaskMetadata]:
        """Tasks, newest first; over a connection its own, and those of its channels."""
        ...

    @operation(own("owner_id"))
    async def record_observation(
        self,
        *,
        owner_id: Id,
        capability: Id,
        outcome: Id,
        latency_ms: Count | None = None,
        task_id: Id | None = None,
    ) -> None:
        """Count how a use of a capability has ended; over a connection of a task of its own."""
        ...

    @operation(own_task("task_id"))
    async def checkpoint_task(self, task_id: Id, state: Mapping[str, Any]) -> None:
        """Keep what a task continues from, in place of what was kept before."""
        ...

    @operation(own_task("task_id"), repeatable=True)
    async def read_task_checkpoint(self, task_id: Id) -> dict[str, Any] | None:
        """What `checkpoint_task` kept last; `None` if nothing was kept."""
        ...

    # --- events -------------------------------------------------------------------------------

    def subscribe(
        self, kinds: str | Iterable[str] | None = None, *, after: str | None = None
    ) -> Subscription:
        """The events of these kinds behind `after`; without it those from now on."""
        ...


OPERATIONS: Mapping[str, HubOperation] = operations_of(HubLike) | operations_of(LinkOperations)
"""Every operation, by the name that a request gives as its `op`."""
