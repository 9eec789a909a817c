"""`Call`: the state of one call, from its arguments to its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic_core import from_json, to_json

from agent_adapter.core.canonical import SecretValue, digest
from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import AgentAdapterError, ToolArgsInvalid
from agent_adapter.core.identity import Reentry
from agent_adapter.core.inert import MAX_NAME, bounded
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import ApprovalDecision, RunLimits
from agent_adapter.core.validation import dump
from agent_adapter.exec.ids import new_id
from agent_adapter.exec.keyed import is_keyed
from agent_adapter.exec.runtime import Runtime
from agent_adapter.exec.scope import RunScope, current_scope, sub_run_id
from agent_adapter.exec.timing import Countdown
from agent_adapter.store.approvals import Take
from agent_adapter.store.base import Row, Store
from agent_adapter.store.intents import Intent
from agent_adapter.store.keys import (
    RUN_SCOPE,
    TENANT_MARK,
    asker_of,
    conversation_key,
    place_of,
    run_key,
)

UNREAD: Row = {}
"""A row that was not looked up yet."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Call:
    """The state of one call; each step of the pipeline reads and fills in a part of it.

    It is also what hooks see (`spec`, `arguments`, `ctx`).
    """

    # What a call is before a step fills it in: most calls leave most of it as it is here, and an
    # attribute that is not set costs nothing.
    scope: RunScope | None = None
    parent: Call | None = None
    depth = 1
    requester: str | None = None
    conversation: str | None = None
    position_key: str | None = None
    values: dict[str, Any] | None = None
    injected: Mapping[str, Any] = _NOTHING
    decision: ApprovalDecision | None = None
    approval: dict[str, Any] | None = None
    take: Take | None = None
    accepted: frozenset[str] = frozenset()
    doubts: frozenset[str] = frozenset()
    earlier: tuple[Row, ...] = ()
    asked: str | None = None
    denial: Row | None = UNREAD
    labels: tuple[str, ...] | None = None
    call_key: str | None = None
    n: int | None = None
    claim: tuple[Any, int] | None = None
    once_key: str | None = None
    cost = 0.0
    entered = False
    done = False
    matched = False
    nested = False
    foreign = False
    left: Row | None = None
    going_on: str | None = None
    entry: int | None = None
    waits: AgentAdapterError | None = None
    countdown: Countdown | None = None
    records: Store | None = None
    _digest: str | None = None
    _intent: Intent | None = None
    _payload: bytes | None = None
    _raw_digest: str | None = None

    def __init__(
        self,
        runtime: Runtime,
        spec: ToolSpec,
        args: Mapping[str, Any],
        ctx: ToolContext,
        call_id: str | None,
    ) -> None:
        if ctx.call_ref is not None:
            raise AgentAdapterError(f"{ctx!r} served a call: make a new one for each call")
        ctx.call_ref = self
        self.runtime = runtime
        self.spec = spec
        self.plan = runtime.plans.get(spec) or runtime.plan(spec)
        self.given = args
        self.ctx = ctx
        if call_id is not None:
            ctx.call_id = call_id
        self.limits: RunLimits | None = runtime.limits
        if (around := current_scope.get()) is not None:
            around.place(self)
        # Most bare calls name nothing; asking each name for its length costs them a microsecond.
        if ctx.call_id or ctx.run_id or ctx.thread_id or ctx.principal or ctx.tenant:
            ctx.bound_names()
        self._find_run(ctx)
        if not ctx.call_id:  # some models send an empty id
            ctx.call_id = new_id("call")

    def _find_run(self, ctx: ToolContext) -> None:
        """Find the call's run, its place in the run, and what it inherits."""
        if ctx.run_id is None:
            # It names the call's entries in the ledger; no rule is kept for a run like that.
            ctx.run_id = new_id("run")
            ctx.run_is_known = False
        given = ctx.found_identity
        run = ctx.run_id if given is None else given.run
        name = ctx.run_id if run is None else run if len(run) <= MAX_NAME else bounded(run)
        # Without a tenant a run's name is its key; this is asked for every call.
        plain = ctx.tenant == "" and not name.startswith(TENANT_MARK)
        self.run_id: str = name if plain else run_key(ctx.tenant, name)
        dialogue = ctx.thread_id if given is None else given.conversation
        if self.parent is None:
            self.run_is_known = ctx.run_is_known if given is None else run is not None
            self.root_run_id = self.run_id
            self.requester = ctx.principal
            if dialogue is not None:
                self.conversation = conversation_key(ctx.tenant, dialogue)
            elif self.run_is_known:
                self.conversation = RUN_SCOPE + self.run_id
        if ctx.position is not None:
            anchor = None if given is None else given.anchor
            within = self.run_id if anchor is None else run_key(ctx.tenant, anchor)
            self.position_key = place_of(within, ctx.position)

    def is_bare(self) -> bool:
        """Whether nothing but to validate, to run and to record is to be done for this call.

        That is so where `Plan.direct` says it of the tool: this is about who calls it, and how.
        """
        ctx = self.ctx
        return (
            self.scope is None
            and self.parent is None
            and self.values is None
            and self.position_key is None
            and ctx.approval is None
            and ctx.attempt == 1
            and not ctx.reexecutes
            and ctx.incomplete is None
        )

    def run_scope(self) -> RunScope | None:
        """The run scope in which this call's tool runs."""
        return self.scope

    def place(self, call: Call) -> None:
        """Place a call made by this call's tool: in the run named after this call."""
        ctx = call.ctx
        if ctx.run_id is not None:
            ctx.extras.setdefault("native_run_id", ctx.run_id)
        self.nested = True
        ctx.run_id = sub_run_id(self.key())
        # Inside a tool calls are identified by arrival: they recur when the tool runs again.
        ctx.forget_identity()
        ctx.thread_id = ctx.thread_id or self.ctx.thread_id
        ctx.said = self.ctx.said  # what a tool tells an agent of its own is not the user's
        ctx.parent_call_id = self.ctx.call_id
        ctx.principal = self.ctx.principal
        ctx.tenant = self.ctx.tenant
        ctx.attempt = self.entry or self.ctx.attempt
        call.parent = self
        call.scope = self.scope
        if call.scope is not None:
            ctx.extras.update(call.scope.extras)
        call.limits = self.limits or call.limits
        call.depth = self.depth + 1
        call.root_run_id = self.root_run_id
        call.run_is_known = self.run_is_known
        call.conversation = self.conversation
        call.requester = self.requester

    @property
    def arguments(self) -> dict[str, Any]:
        """The validated arguments as JSON values: a copy, secrets masked."""
        return self.spec.masked(self.bound, self.runtime.store.key)

    @property
    def bound(self) -> dict[str, Any]:
        """The values that are passed to the function."""
        return self.values or {}

    @property
    def guards(self) -> tuple[Any, ...]:
        """The hooks of the run scope that the result must pass; none for a call inside a tool."""
        return self.scope.guards if self.scope is not None and self.parent is None else ()

    @property
    def raw_digest(self) -> str:
        """The digest of the given arguments: the same at every attempt."""
        if self._raw_digest is None:
            given: Any = dict(self.given)
            for name in self.spec.secrets & given.keys():
                given[name] = SecretValue(given[name])
            # A type that is not JSON's own may hold secrets anywhere.
            self._raw_digest = self._hash(given if self.spec.plain else SecretValue(given))
        return self._raw_digest

    @property
    def digest(self) -> str:
        """The digest of the validated arguments, to which a decision is bound."""
        if self._digest is None:
            self._digest = self.digest_of(self.bound)
            if not self.spec.plain:
                self._refuse_unstable()
        return self._digest

    def digest_of(self, values: Mapping[str, Any]) -> str:
        """The digest of some validated arguments of this tool."""
        hidden = {name: SecretValue(values[name]) for name in self.spec.secrets if name in values}
        return self._hash({**values, **hidden})

    def rebind(self, values: dict[str, Any]) -> None:
        """Run with other validated arguments."""
        self.values = values
        self._digest = self._payload = None

    def refusable(self) -> tuple[str, str, str, str]:
        """The key under which a refusal of this call is kept."""
        return self.ctx.tenant, self.run_id, self.spec.name, self.digest

    def before_asking(self) -> tuple[list[str], tuple[str, str, str, str] | None]:
        """Where its labels are, and what a refusal would stick to if the port does not look."""
        # A port that keeps its records in this store looks for refusals itself.
        keeps = getattr(self.runtime.approval, "store", None) is self.runtime.store
        return self.scopes(), None if keeps or not self.run_is_known else self.refusable()

    def key(self) -> str:
        """The call's identity; claimed here if no step has asked the store for one."""
        return self.call_key or self.runtime.in_flight.claim(self)

    def masked_payload(self) -> bytes:
        """The validated arguments as JSON bytes, secrets masked; written once."""
        if self._payload is None:
            if self.values is None:
                return b"{}"
            if self.spec.plain and not self.spec.secrets:
                self._payload = dump(self.spec.arguments, self.values)
            else:
                self._payload = to_json(self.arguments)
        return self._payload

    @property
    def run_name(self) -> str | None:
        """The run's own name where its key is another."""
        given = self.ctx.found_identity
        name = self.ctx.run_id if given is None or given.run is None else given.run
        return None if name == self.run_id else name

    def whose(self) -> dict[str, str]:
        """The principal and the tenant as the ledger keeps them; unknown ones are left out."""
        ctx = self.ctx
        known = {"principal": ctx.principal, "tenant": ctx.tenant, "run_name": self.run_name}
        return {name: value for name, value in known.items() if value}

    def intent(self) -> Intent:
        """The facts that the store gets when the call begins: one object, brought up to date."""
        intent = self._intent
        if intent is None:
            intent = self._intent = self._new_intent()
        # Edits, a price and an identity come after the first look-up.
        intent.arguments = self.masked_payload()
        intent.call_key, intent.n = self.call_key, self.n
        intent.cost, intent.once_key = self.cost, self.once_key
        intent.accepted, intent.approval = self.accepted, self.approval
        intent.going_on, intent.doubts = self.going_on, self.doubts
        return intent

    def _new_intent(self) -> Intent:
        ctx = self.ctx
        return Intent(
            run_id=self.run_id,
            tool=self.spec.name,
            digest=self.raw_digest,
            effects=self.spec.effects,
            fingerprint=self.plan.fingerprint,
            arguments=b"",
            tenant=ctx.tenant,
            place=self.position_key,
            conversation=self.conversation,
            asker=self.asker(),
            thread_id=ctx.thread_id,
            principal=ctx.principal,
            attempt=ctx.attempt,
            reexecutes=ctx.reexecutes,
            replayed=self._taken_back(),
            repeats_failed=self.spec.native and self.spec.effects != "write",
            workflow=self.spec.workflow,
            keyed=self.position_key is not None and is_keyed(ctx),
            call_id=ctx.call_id,
            root_run_id=self.root_run_id,
            parent_call_key=self.parent.key() if self.parent is not None else None,
            run_name=self.run_name,
        )

    def _taken_back(self) -> bool:
        """Whether the run was taken back to before this call, and is still its first attempt."""
        found = self.ctx.found_identity
        if found is None:  # made inside a tool
            return self.parent is not None and self.parent._taken_back()
        return found.reentry == Reentry.REPLAYED and found.attempt == 1

    def asker(self) -> str:
        """The key of the caller, as far as it is known."""
        if self.ctx.principal is None and self.conversation is not None:
            return self.conversation
        return asker_of(self.ctx.tenant, self.ctx.principal)

    def adopt(self, ctx: ToolContext) -> None:
        """Run this prepared call under the context that the framework made for the run."""
        ctx.edited = self.ctx.edited
        self.ctx = ctx
        ctx.call_ref = self
        self._intent = None

    def found_at(self, place: str | None) -> None:
        """Set the place at which the call was made before, found only now."""
        if place is not None:
            self.position_key, self._intent = place, None

    def count_entry(self, before: int) -> None:
        """Note that its tool was entered `before` times, unless that is known already."""
        if self.entry is None:
            self.entry = max(before + 1, self.ctx.attempt)

    def release(self) -> None:
        """Free the identity that the call claimed; it will not run."""
        self.runtime.in_flight.release(self)

    def is_same(self, other: Call) -> bool:
        """Whether this call was prepared for `other`."""
        mine, theirs = self.ctx, other.ctx
        return (
            self.spec is other.spec
            and self.run_id == other.run_id
            and self.position_key == other.position_key
            and mine.call_id == theirs.call_id
            and mine.principal == theirs.principal
            and mine.tenant == theirs.tenant
            and self.raw_digest == other.raw_digest
        )

    def scopes(self) -> list[str]:
        """The scopes that this call reads labels from and puts them on."""
        run = RUN_SCOPE + self.root_run_id
        if self.conversation is None or self.conversation == run:
            return [run]
        return [run, self.conversation]

    def _hash(self, value: Any) -> str:
        try:
            return digest(value, self.runtime.store.key)
        except (TypeError, ValueError, RecursionError) as exc:
            raise ToolArgsInvalid(self.spec.name, [f"(arguments): {exc}"]) from None

    def _refuse_unstable(self) -> None:
        """Refuse arguments that change when they are read back: no decision could bind them."""
        if self.spec.secrets:
            return
        again = self.spec.validate(from_json(self.spec.dump(self.bound)))
        if self.digest_of(again) != self._digest:
            raise ToolArgsInvalid(
                self.spec.name,
                ["(arguments): they read back differently after validation and cannot be bound"],
            )
