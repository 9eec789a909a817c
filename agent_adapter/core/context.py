"""`ToolContext`: the caller, the run and the ids of a call."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.core.identity import Identity, Position, Reentry
from agent_adapter.core.inert import MAX_NAME, bounded

Texts = str | Sequence[str]
Said = Texts | Callable[[], Texts | Awaitable[Texts]] | None
"""What the user said: texts, or a function that finds them when they are asked for."""

SERVED: Any = "served"
"""The `call_ref` of a context whose call is over, and that nothing of the call can have kept."""

_NAMES = ("call_id", "run_id", "thread_id", "principal", "tenant", "parent_call_id")


class ToolContext:
    """The surroundings of one call; a second call needs a context of its own.

    Attributes:
        call_id: the framework's id of this call; generated if there is none.
        run_id: the run of the call; generated per call if none is given. A generated id names the
            call's entries in the ledger; no rule is kept for it.
        thread_id: the conversation, which may outlive the run.
        extras: further facts from the integration, such as native ids.
        approval: a one-use token, or a decision that an integration's `bind_context` put here.
        attempt: 1, or higher when a whole run is run again.
        parent_call_id: the call whose tool started this one.
        principal: on whose behalf the call is made.
        tenant: whose data the call may see; a foreign id answers "not found".
        said: what the user said in the conversation, or a function that finds it; `None` if the
            integration does not know. Asked only for tools with `confirm="provenance"`.
        reexecutes: whether the framework repeats a call by itself, with the same native id.
        incomplete: the provider's reason why arguments may be missing; the call is refused.
        position: where in its run the model made the call; `None` identifies calls by arrival.
        bound_by: the integration whose `bind_context` made this context.
        idempotency_key: the call's one identity, set before the function is entered.
        deadline: when the call times out, on the event loop's clock; `None` without a time-out.
        try_number: which retry of this call is running, from 1.
        found_identity: the identity that the integration found; `None` if it found none.
        run_is_known: whether the run is real; `False` if the executor generated its id.
        edited: the arguments that a person set instead, as JSON values with secrets masked; `None`
            if the call ran as requested, or its recorded outcome was returned.
        call_ref: the executor's own record of the call, set when a call starts.
    """

    __slots__ = (
        "_sink",
        "approval",
        "attempt",
        "bound_by",
        "call_id",
        "call_ref",
        "deadline",
        "edited",
        "extras",
        "found_identity",
        "idempotency_key",
        "incomplete",
        "parent_call_id",
        "position",
        "principal",
        "reexecutes",
        "run_id",
        "run_is_known",
        "said",
        "tenant",
        "thread_id",
        "try_number",
    )

    def __init__(
        self,
        call_id: str | None = None,
        run_id: str | None = None,
        thread_id: str | None = None,
        extras: dict[str, Any] | None = None,
        approval: Any = None,
        *,
        attempt: int = 1,
        parent_call_id: str | None = None,
        principal: str | None = None,
        tenant: str = "",
        reexecutes: bool = False,
        bound_by: str | None = None,
        incomplete: str | None = None,
    ) -> None:
        self.call_id = call_id
        self.run_id = run_id
        self.thread_id = thread_id
        self.extras: dict[str, Any] = {} if extras is None else extras
        self.approval = approval
        self.attempt = attempt
        self.parent_call_id = parent_call_id
        self.principal = principal
        self.tenant = tenant
        self.reexecutes = reexecutes
        self.bound_by = bound_by
        self.incomplete = incomplete
        self.position: Position | None = None
        self.run_is_known = True
        self.said: Said = None
        self.found_identity: Identity | None = None
        self.idempotency_key: str | None = None
        self.deadline: float | None = None
        self.try_number = 1
        self.edited: dict[str, Any] | None = None
        self.call_ref: Any = None
        self._sink: Callable[[Any, ToolContext], None] | None = None

    def bound_names(self) -> None:
        """Bound every id and name to 256 characters, a longer one by its hash."""
        for name in _NAMES:
            value = getattr(self, name)
            if isinstance(value, str) and len(value) > MAX_NAME:
                setattr(self, name, bounded(value))

    @property
    def identity(self) -> Identity:
        """The identity of the call: as its integration set it, else derived from the ids above."""
        if self.found_identity is not None:
            return self.found_identity
        run = self.run_id if self.run_is_known else None
        reentry = Reentry.RESUMED if self.reexecutes else Reentry.NEW
        return Identity(
            run=run,
            conversation=self.thread_id if self.thread_id is not None else run,
            tenant=self.tenant,
            position=self.position,
            reentry=Reentry.REPLAYED if self.attempt > 1 else reentry,
            attempt=self.attempt,
        )

    @identity.setter
    def identity(self, found: Identity) -> None:
        self.found_identity = found
        self.position = found.position
        self.attempt = found.attempt
        self.tenant = found.tenant or self.tenant

    def forget_identity(self) -> None:
        """Identify the call by its ids and the surrounding run."""
        self.found_identity = self.position = None

    def send_events_to(self, sink: Callable[[Any, ToolContext], None]) -> None:
        """Pass emitted events to `sink`; the executor sets it if there are subscribers."""
        self._sink = sink

    async def step(self, name: str, fn: Callable[..., Any], /, *args: Any) -> Any:
        """What `fn(*args)` gives, as a call of its own inside this one: at most once.

        A tool that is entered again gets the recorded value. `fn` is sync (it runs in a worker
        thread) or async; `args` and the value are JSON values. Raises what a tool's call raises:
        `ToolFailed` for an exception of `fn`, which is its `__cause__`, and `ToolInDoubt` where it
        was begun before and its outcome is unknown.
        """
        if self.call_ref is SERVED:
            raise AgentAdapterError(f"{self!r}: its call has ended, so it takes no more steps")
        runtime = getattr(self.call_ref, "runtime", None)
        if runtime is not None:
            return await runtime.step(self.call_ref, name, fn, args)
        value = fn(*args)  # no executor: nothing is recorded
        return await value if inspect.isawaitable(value) else value

    def emit(self, event: Any) -> None:
        """Pass `event` to the executor's subscribers; dropped if there are none."""
        if self._sink is not None:
            self._sink(event, self)

    def __repr__(self) -> str:
        return (
            f"ToolContext(call_id={self.call_id!r}, run_id={self.run_id!r}, "
            f"thread_id={self.thread_id!r}, attempt={self.attempt})"
        )
