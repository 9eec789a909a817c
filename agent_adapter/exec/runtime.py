"""`Runtime`: what a call needs of its executor, and `Plan`: what it needs of the pipeline."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agent_adapter.core.ports import ApprovalPort, ToolRunner
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import RunLimits
from agent_adapter.exec.approval.question import Question
from agent_adapter.exec.events import Events
from agent_adapter.exec.in_flight import InFlightCalls
from agent_adapter.exec.step import step
from agent_adapter.store.base import Store

log = logging.getLogger(__name__)

MAX_RESULT_BYTES = 64 * 1024 * 1024
"""How large a result may be as it is kept; a larger one is withheld."""

_MOST_PLANS = 10_000

Flight = asyncio.Task[tuple[str, bytes, Any]]
"""An execution that several callers may wait for: its result as tag, bytes and value."""


class Plan:
    """The steps that have work for one tool.

    `begins` says that an intent must be durable before the function is entered, `looks_up` that the
    store is asked for the call's identity first, `contexts` are the parameters that take the
    context where nothing else is injected (`None` otherwise), `flat` means that every argument
    is a scalar, `marks` that the result taints its run, `sources` that it may be trusted. `direct`
    says that a call has nothing to do but to validate, to run an async function and to record.
    """

    __slots__ = (
        "after",
        "before",
        "begins",
        "contexts",
        "direct",
        "fingerprint",
        "flat",
        "looks_up",
        "marks",
        "policy_fingerprint",
        "sources",
    )

    def __init__(self, spec: ToolSpec, hooks: tuple[Any, ...], limits: RunLimits | None) -> None:
        self.before = _bound(hooks, spec, "before")
        self.after = _bound(hooks, spec, "after")
        # A framework's own tool may do anything: its attempt is checked, and its end is durable.
        self.begins = spec.effects == "write" or limits is not None or spec.native
        self.fingerprint = spec.fingerprint
        self.policy_fingerprint = spec.policy_fingerprint
        self.looks_up = spec.effects == "idempotent" or (spec.workflow and not self.begins)
        self.flat = not spec.secrets and _is_flat(spec)
        self.marks = spec.trust == "untrusted"
        self.sources = spec.source
        only_contexts = all(injection.kind == "context" for injection in spec.injected)
        self.contexts = tuple(i.name for i in spec.injected) if only_contexts else None
        hooked = self.before or self.after or limits is not None
        self.direct = self.flat and not hooked and _is_direct(spec)


class Runtime:
    """The parts of one executor that its calls use.

    `asking` are the open questions by binding, `flights` the shared executions of cached reads.
    `waits` says since when a run waits for a person, and for how many answers.
    `store_undecided` is true if no store was given.
    """

    __slots__ = (
        "approval",
        "asking",
        "events",
        "flights",
        "hooks",
        "in_flight",
        "keeps_large_results",
        "limits",
        "max_result_bytes",
        "plans",
        "runner",
        "store",
        "store_undecided",
        "waits",
    )

    def __init__(
        self,
        *,
        store: Store,
        in_flight: InFlightCalls,
        approval: ApprovalPort | None,
        limits: RunLimits | None,
        hooks: Iterable[Any],
        events: Events,
        store_undecided: bool = False,
        max_result_bytes: int = MAX_RESULT_BYTES,
        keeps_large_results: bool = False,
    ) -> None:
        self.store = store
        self.in_flight = in_flight
        self.approval = approval
        self.limits = limits
        self.hooks = tuple(hooks)
        self.events = events
        self.store_undecided = store_undecided
        self.max_result_bytes = max_result_bytes
        self.keeps_large_results = keeps_large_results
        self.asking: dict[str, Question] = {}
        self.flights: dict[tuple[int, str], Flight] = {}
        self.waits: dict[str, tuple[float, int]] = {}
        self.plans: dict[ToolSpec, Plan] = {}
        self.runner: ToolRunner | None = None

    def plan(self, spec: ToolSpec) -> Plan:
        """The plan of `spec`, worked out at its first call."""
        plan = self.plans.get(spec)
        if plan is None:
            if len(self.plans) >= _MOST_PLANS:
                self.plans.clear()
            plan = self.plans[spec] = Plan(spec, self.hooks, self.limits)
        return plan

    async def step(self, call: Any, name: str, fn: Callable[..., Any], args: Sequence[Any]) -> Any:
        """What `fn(*args)` gives, recorded as a call that the tool of `call` makes."""
        if self.runner is None:
            raise RuntimeError("this runtime belongs to no executor")
        return await step(self.runner, call, name, fn, args)

    def warn_of_memory(self) -> None:
        """Warn once that no store was given, and what that means for writes."""
        self.store_undecided = False
        log.warning(
            "this Executor keeps its ledger in memory: a crash forgets which writes ran; "
            "give it store=open_store()"
        )


def _bound(hooks: Iterable[Any], spec: ToolSpec, method: str) -> tuple[Any, ...]:
    """The `method` of every hook that has it and applies to this tool."""
    found = []
    for hook in hooks:
        applies = getattr(hook, "applies_to", None)
        bound = getattr(hook, method, None)
        if bound is not None and (applies is None or applies(spec)):
            found.append(bound)
    return tuple(found)


_SAYS_NOTHING_OF_CALLS = {"targets", "tags", "version", "egress", "irreversible", "sinks"}
"""Policy that other steps than those of a call go by, or only steps that ask a person."""


def _is_direct(spec: ToolSpec) -> bool:
    """Whether no step of the pipeline but validation, the function and the record has work.

    Every other policy must be as it is by default, also one that is added later.
    """
    usual = all(
        getattr(spec, option.name) == option.default
        for option in dataclasses.fields(spec)
        if option.repr
        and option.default is not dataclasses.MISSING
        and option.name not in _SAYS_NOTHING_OF_CALLS | {"effects"}
    )
    slow = spec.arguments.may_be_slow
    own = spec.native or spec.injected or spec.secret_parts or spec.collects is not None
    return usual and spec.effects == "read" and spec.is_async and not (slow or own)


def _is_flat(spec: ToolSpec) -> bool:
    parts = spec.json_schema().get("properties", {}).values()
    kinds = {part.get("type") for part in parts}
    return spec.plain and kinds <= {"string", "integer", "number", "boolean", "null"}
