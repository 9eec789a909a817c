"""Protocols that several layers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from agent_adapter.core.context import ToolContext
    from agent_adapter.core.native import NativePolicies, NativeTools
    from agent_adapter.core.tool import ToolSpec
    from agent_adapter.core.types import ApprovalDecision, ApprovalRequest, Grant, RunLimits

Clock = Callable[[], float]
"""Seconds since the epoch."""

NewId = Callable[[str], str]
"""`new_id("run")` gives `run_…`, never the same twice."""


@runtime_checkable
class ApprovalPort(Protocol):
    """Decides calls that need approval."""

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        """Approved, denied or pending; an exception counts as denied."""
        ...


class HookCall(Protocol):
    """What a hook sees of a call; `arguments` is its own copy."""

    spec: ToolSpec
    arguments: dict[str, Any]
    ctx: ToolContext


class PreparedCall(Protocol):
    """A validated and guarded call; `arguments` is a copy of what runs.

    `asked` is the reason for which a person must approve it; empty if none is needed.
    """

    @property
    def spec(self) -> ToolSpec:
        """The tool."""
        ...

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as JSON values, secrets masked."""
        ...

    @property
    def ctx(self) -> ToolContext:
        """The surroundings of the call."""
        ...

    @property
    def asked(self) -> str | None:
        """The reason for which a person must approve the call."""
        ...


@runtime_checkable
class ToolRunner(Protocol):
    """Runs one call of one tool; the executor is one, so is the contract kit's fake.

    `prepare` and `issue` are for a framework's own approval gate, which asks before the framework
    runs the call. A runner that only forwards `run_spec` is refused there.
    """

    async def run_spec(
        self,
        spec: ToolSpec,
        args: Mapping[str, Any],
        ctx: ToolContext | None = None,
        *,
        call_id: str | None = None,
    ) -> Any:
        """The tool's value, or an error of `agent_adapter.core.errors`."""
        ...

    async def prepare(
        self,
        spec: ToolSpec,
        args: Mapping[str, Any],
        ctx: ToolContext | None = None,
        *,
        call_id: str | None = None,
    ) -> PreparedCall:
        """The call that `run_spec` would run, once validated and guarded; nothing runs yet."""
        ...

    async def issue(
        self, prepared: PreparedCall, port: ApprovalPort, *, edits_allowed: bool = False
    ) -> Grant:
        """A grant to run a prepared call once; asks `port` first if the call needs approval."""
        ...


@runtime_checkable
class ScopingRunner(ToolRunner, Protocol):
    """A runner that can make calls belong to a run with limits of its own."""

    def run_scope(
        self,
        run_id: str,
        principal: str | None = None,
        limits: RunLimits | None = None,
        *,
        thread_id: str | None = None,
    ) -> AbstractAsyncContextManager[Any]:
        """Calls inside it without a run of their own belong to `run_id`."""
        ...


class Hook(Protocol):
    """Code around every call; each method is optional, sync or async.

    A hook that raises or hangs in `before` blocks the call; in `after` it withholds the result.
    `applies_to(spec) -> bool` is asked once per tool.
    """

    def before(self, call: HookCall) -> Mapping[str, Any] | None:
        """Arguments to run with instead (validated again), or `None` for no change."""
        ...

    def after(self, call: HookCall, result: Any) -> Any:
        """The result to return, usually `result` itself."""
        ...


class SeenMessage(Protocol):
    """One message of a channel as a participant sees it."""

    @property
    def text(self) -> str:
        """The text to show, with its sender if there are several."""
        ...

    @property
    def own(self) -> bool:
        """Whether the reading participant sent it."""
        ...

    @property
    def summary(self) -> bool:
        """Whether it stands for older messages that are not shown."""
        ...


class TurnView(Protocol):
    """What a driver reads of one turn; `agent_adapter.network.turns.turn.Turn` is one.

    `executor` runs the round's tool calls, `channel` and `state()` are what tools receive by
    injection, `tools` are added to the agent's own for this round, `native` makes the specs under
    which the agent's own tools run.
    """

    turn_id: str
    channel_id: str
    agent_id: str
    agent_name: str
    attempt: int
    messages: Sequence[Any]
    input_text: str
    metadata: Any
    tools: Sequence[Any]
    executor: Any
    channel: Any
    agent_client: Any
    hub_client: Any
    native: NativePolicies

    def state(self) -> Any:
        """The channel's folded state, including the changes of this round."""
        ...

    def result_of(self, call_id: str | None, tool: str) -> Any:
        """The value that a call of this round returned; `None` if it did not return."""
        ...


@runtime_checkable
class AgentDriver(Protocol):
    """An integration that can run its framework's agents as participants of a channel."""

    def drives(self, agent: Any) -> bool:
        """Whether `agent` is one of this framework's; looks at its type and imports nothing."""
        ...

    async def drive(self, agent: Any, turn: TurnView) -> Any:
        """Run one round of `agent`; returns an `agent_adapter.flow.reply.Reply`.

        Every tool call of the round belongs to the turn. Exceptions of the agent are raised.
        """
        ...


@runtime_checkable
class NativeToolOwner(Protocol):
    """A driver that runs its agents' own tools through the turn's executor."""

    def native_tools(self, agent: Any) -> NativeTools:
        """The own tools of `agent`, as far as they are known before a round."""
        ...
