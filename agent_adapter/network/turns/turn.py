"""`Turn`: one round of one participant, as its driver sees it."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from agent_adapter.core.errors import GuardrailBlocked, ProtocolError, ToolError, ToolNotFound
from agent_adapter.core.native import NO_POLICIES, NativePolicies
from agent_adapter.core.ports import PreparedCall
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.routing import Handoff
from agent_adapter.core.tool import ToolSpec, spec_of
from agent_adapter.exec.executor import Executor
from agent_adapter.exec.hooks import HookView
from agent_adapter.exec.scope import RunScope, current_scope
from agent_adapter.flow.context_vars import applied, check_updates
from agent_adapter.flow.envelope import EV_CONTEXT_SET, EV_TEXT, Envelope, envelope_problems
from agent_adapter.flow.reply import Reply
from agent_adapter.flow.routing import RoundCall, resolved_handoff
from agent_adapter.flow.state import WorkflowState
from agent_adapter.flow.wire import json_copy
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.channels.views import ViewMessage
from agent_adapter.store.base import Operation, Store

__all__ = ["Reply", "Staged", "Turn", "TurnChannel", "TurnPort", "ViewMessage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A change that a round staged before its packet.

    It is `{"set", "delete"}`, `{"say": text, "audience"}` or `{"close": reason}`.

    `call_key` is the key of the tool call that made it; nested calls are joined by `/`, outermost
    first. It is `None` outside of a tool.
    """

    call_key: str | None
    body: Mapping[str, Any]


class TurnPort(Protocol):
    """A round's access to its hub; writes of a superseded attempt raise `StaleTurn`."""

    async def stage(self, staged: Staged) -> None:
        """Store a change of this attempt durably, in the order of the calls."""
        ...

    async def finish(self, packet: Envelope | None, adopted: Sequence[str]) -> None:
        """End the turn with `packet`; `None` ends a silent round.

        Staged changes of earlier attempts are applied if their `call_key` is in `adopted`.
        """
        ...

    async def park(self, waits_for: Sequence[str]) -> None:
        """Park the turn until one of these approvals or calls is decided."""
        ...

    async def fail(self, error: BaseException) -> None:
        """Count a failed attempt: the turn is retried later, or its channel closes."""
        ...

    async def fence(self, store: Store) -> Operation[str | None] | None:
        """Raises `StaleTurn` if the attempt is not current; awaited before a call begins.

        Returns the check that the transaction of the call's intent in `store` repeats, or `None` if
        the hub's rows are in another store.
        """
        ...


class Turn:
    """One round of one participant: what it reads, and how it acts on its channel.

    Attributes:
        turn_id: the turn's id; also the run id of the round's tool calls.
        channel_id: the channel's id.
        agent_id: the participant's id; `agent_name` is the Passport name.
        attempt: 1, or higher for a repeated round.
        trigger: the envelope that it answers; `None` for a channel's first turn.
        messages: the view of the channel before the trigger, oldest first.
        input_text: the trigger as text for the participant.
        metadata: the channel's metadata; `adapter` is the adapter of its type.
        participants: ids of the channel's participants by Passport name.
        executor: runs the round's tool calls.
        channel: the channel, bound to the turn; see `TurnChannel`.
        tools: native tools or specs that the channel type adds to the participant's own.
        agent_client: the participant's client; `hub_client` is the client it was registered with.
        native: the policies of the participant's own tools.
        calls: the tool calls made through `call`, in order.
        said: the texts that the round sends before what it returns.
    """

    def __init__(
        self,
        *,
        turn_id: str,
        channel_id: str,
        agent_id: str,
        agent_name: str,
        state: Any,
        participants: Mapping[str, str],
        executor: Executor,
        port: TurnPort,
        adapter: ChannelAdapter,
        metadata: Any,
        attempt: int = 1,
        trigger: Envelope | None = None,
        messages: Sequence[ViewMessage] = (),
        input_text: str = "",
        tools: Sequence[Any] = (),
        agent_client: Any = None,
        hub_client: Any = None,
        staged_before: Iterable[Staged] = (),
        tenant: str = "",
        native: NativePolicies = NO_POLICIES,
    ) -> None:
        self.turn_id = turn_id
        self.channel_id = channel_id
        self.agent_id = agent_id
        self.agent_name = agent_name
        self.participants = dict(participants)
        self.executor: Any = executor
        self.port = port
        self.adapter = adapter
        self.attempt = attempt
        self.trigger = trigger
        self.messages: Sequence[Any] = tuple(messages)
        self.input_text = input_text
        self.metadata = metadata
        self.tools: Sequence[Any] = tuple(tools)
        self.agent_client = agent_client
        self.hub_client = hub_client
        self.tenant = tenant
        self.native = native
        self.calls: list[RoundCall] = []
        self.adopted: list[str] = []
        self.said: list[Envelope] = []
        self.channel: Any = TurnChannel(self)
        self._state = state
        self._results: dict[tuple[str | None, str], Any] = {}
        self._changes: list[Mapping[str, Any]] = []
        self._staged_before = tuple(staged_before)

    def state(self) -> Any:
        """A copy of the channel's folded state, including this round's changes so far."""
        if not isinstance(self._state, WorkflowState):
            return copy.copy(self._state)
        state = WorkflowState.from_dict(
            self._state.to_dict(graph=False), graph_data=self._state.graph_data
        )
        for change in self._changes:
            state.context_vars = applied(change, state.context_vars)
        return state

    @property
    def context_vars(self) -> dict[str, Any]:
        """The channel's variables, including this round's changes."""
        found: dict[str, Any] = getattr(self.state(), "context_vars", {})
        return found

    async def stage(self, body: Mapping[str, Any]) -> None:
        """Stage a change of this round; its tools see it at once."""
        await self.port.stage(Staged(call_key=_calls_around(), body=body))
        self._note(body)

    async def call(self, tool: Any, /, **arguments: Any) -> Any:
        """Run one tool in this turn, at most once over all attempts of the round.

        `tool` is a tool function, a `ToolSpec` or a name in the executor's registry. A `Handoff` or
        `Finish` that it returns, or a graph that names the tool, routes the turn.
        """
        spec = self._spec(tool)
        try:
            result = await self.executor.run_spec(spec, arguments)
        except BaseException:
            self.calls.append(RoundCall(tool=spec.name, ok=False, arguments=arguments))
            raise
        self.calls.append(RoundCall(tool=spec.name, result=result, arguments=arguments))
        return result

    @asynccontextmanager
    async def scope(self) -> AsyncIterator[RunScope]:
        """A run scope: every tool call inside belongs to this turn, in any framework or executor.

        Its `blocked` lists the calls that wait for a person.
        """
        scope = RunScope(
            run_id=self.turn_id,
            thread_id=self.channel_id,
            tenant=self.tenant,
            attempt=self.attempt,
            overrides=True,
            extras={
                "channel": self.channel,
                "channel_state": self.state,
                "agent_client": self.agent_client,
                "hub": self.hub_client,
                "turn": self,
            },
            guards=(_Watch(self),),
            replayed=self._replayed,
            fence=self.port.fence,
        )
        token = current_scope.set(scope)
        try:
            yield scope
        finally:
            current_scope.reset(token)

    def result_of(self, call_id: str | None, tool: str) -> Any:
        """The value that a tool call of this round returned; `None` if it did not return.

        For drivers of frameworks that keep results only as text.
        """
        return self._results.get((call_id, tool))

    def spoken_state(self) -> Any:
        """The channel's folded state after the texts that this round has sent."""
        state = self.state()
        for text in self.said:
            state = self.adapter.fold(text, state)
        return state

    def _note(self, body: Mapping[str, Any]) -> None:
        if "say" in body:
            text = self.adapter.build_text_envelope(
                self.channel_id, self.agent_id, body["say"], audience=body["audience"]
            )
            self.said.append(text)
        elif "close" not in body:
            self._changes.append(body)

    def _replayed(self, call: PreparedCall, call_key: str, value: Any) -> None:
        """Adopt the staged changes of an earlier attempt's call whose outcome is reused."""
        if call.ctx.parent_call_id is None:
            self._results[call.ctx.call_id, call.spec.name] = value
        for staged in self._staged_before:
            path = staged.call_key or ""
            if call_key not in path.split("/"):
                continue
            self._note(staged.body)
            if path not in self.adopted:
                self.adopted.append(path)

    def _spec(self, tool: Any) -> ToolSpec:
        if not isinstance(tool, str):
            return spec_of(tool)
        registry: ToolRegistry | None = self.executor.registry
        if registry is None:
            raise ToolNotFound(f"{tool}: this hub's executor has no registry; pass the tool itself")
        return registry.get(tool)


class TurnChannel:
    """A channel bound to one turn, as `ChannelInject` passes it to tools."""

    __slots__ = ("_turn",)

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    @property
    def channel_id(self) -> str:
        """The channel's id."""
        return self._turn.channel_id

    @property
    def metadata(self) -> Any:
        """The channel's metadata at the start of the round."""
        return self._turn.metadata

    @property
    def state(self) -> Any:
        """The channel's lifecycle state at the start of the round."""
        return getattr(self._turn.metadata, "state", None)

    async def send(
        self,
        content: str,
        *,
        audience: list[str] | None = None,
        causation_id: str | None = None,
        event_type: str = EV_TEXT,
        event_data: dict[str, Any] | None = None,
        depth: int | None = None,
    ) -> None:
        """Change the channel's variables: the only event that a round may send before its packet.

        Tools of this round see the change at once; it is written with the packet, in one operation.
        Raises `ProtocolError` for any other event, and for a key that the speaker may not change.
        """
        if event_type != EV_CONTEXT_SET:
            raise ProtocolError(
                f"a tool cannot send {event_type} during its own turn: what the round returns is "
                "the turn's message; return the text instead"
            )
        if audience is not None:
            raise ProtocolError("a channel's variables belong to all: audience must be None")
        if causation_id is not None or depth is not None:
            raise ProtocolError(
                "the change is part of the round's packet: causation_id and depth must be None"
            )
        turn = self._turn
        where = "the change of variables"
        body: dict[str, Any] = json_copy(dict(event_data or {}), where, ProtocolError)
        problems = envelope_problems(
            Envelope(turn.channel_id, turn.agent_id, None, EV_CONTEXT_SET, body)
        )
        if problems:
            raise ProtocolError(f"the {event_type} is malformed: {'; '.join(problems)}")
        acl = (getattr(turn.metadata, "knobs", None) or {}).get("context_acl")
        check_updates(body, turn.context_vars, writer=turn.agent_name, acl=acl)
        await turn.stage(body)

    async def say(self, content: str, *, audience: list[str] | None = None) -> None:
        """Send a text besides what the round returns; it is written before that, with it.

        Only in channels of texts; `ProtocolError` where the participant may not speak.
        """
        turn = self._turn
        text = turn.adapter.build_text_envelope(
            turn.channel_id, turn.agent_id, content, audience=audience
        )
        if text.event_type != EV_TEXT:
            raise ProtocolError(
                f"a {turn.metadata.manifest.type} channel takes one message per turn; return the "
                "text instead"
            )
        turn.adapter.validate_send(turn.metadata, text, turn.spoken_state())
        await turn.stage({"say": content, "audience": audience})

    async def info(self) -> Any:
        """The channel's metadata, read again from the hub if the turn has one."""
        hub = self._turn.hub_client
        return self.metadata if hub is None else await hub.get_channel(self.channel_id)

    async def close(self, reason: str = "") -> None:
        """Close the channel with `reason` after this round's packet."""
        await self._turn.stage({"close": reason})

    def is_terminal(self) -> bool:
        """Whether the channel had ended at the start of the round."""
        check = getattr(self._turn.metadata, "is_terminal", None)
        return bool(check()) if check is not None else False


class _Watch:
    """A guard that keeps every result of the round and refuses a `Handoff` to a stranger."""

    __slots__ = ("_turn",)

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def after(self, call: HookView, result: Any) -> Any:
        """Returns `result`; `GuardrailBlocked` if its handoff target is not a participant."""
        for part in result if isinstance(result, (list, tuple)) else (result,):
            if isinstance(part, Handoff):
                try:
                    resolved_handoff(part.target, self._turn.participants)
                except ToolError as exc:
                    raise GuardrailBlocked(str(exc)) from None
        self._turn._results[call.ctx.call_id, call.spec.name] = result
        return result


def _calls_around() -> str | None:
    """The keys of the enclosing tool calls, outermost first, joined by `/`."""
    around: Any = current_scope.get()
    keys: list[str] = []
    while around is not None and not isinstance(around, RunScope):
        keys.append(around.key())
        around = around.parent
    return "/".join(reversed(keys)) or None
