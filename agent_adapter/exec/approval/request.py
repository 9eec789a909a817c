"""What ties an answer to one call: the binding, the request that shows it, and the stamp."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Iterable
from typing import Any, NoReturn

from agent_adapter.core.canonical import digest
from agent_adapter.core.inert import text_of
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest
from agent_adapter.exec.call import Call
from agent_adapter.store.base import Row

_process = secrets.token_bytes(16)


class Stamp:
    """Set on a decision by this library's ports: good once, for one binding, in this process.

    `said` is the digest of verdict and edits, so that the stamp cannot stand on another answer.
    """

    __slots__ = ("_process", "binding", "said", "used")

    def __init__(self, binding: str, said: str) -> None:
        self.binding = binding
        self.said = said
        self.used = False
        self._process = _process

    def use(self, binding: str, said: str) -> bool:
        """Whether the stamp is of this process, for this call, and was not used; uses it."""
        same = self.binding == binding and self.said == said
        good = self._process == _process and same and not self.used
        self.used = self.used or good
        return good

    def __copy__(self) -> Stamp:
        return self

    def __deepcopy__(self, memo: Any) -> Stamp:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a decision's stamp is never serialised")


def stamped(decision: ApprovalDecision, request: ApprovalRequest) -> ApprovalDecision:
    """`decision`, tied to the call that `request` asked about."""
    return dataclasses.replace(decision, stamp=Stamp(request.binding, _said(decision)))


def counts(decision: Any, call: Call) -> bool:
    """Whether a decision found in `ctx.approval` is one that this process made for this call."""
    if not isinstance(decision, ApprovalDecision):
        return False
    if isinstance(decision.stamp, Stamp):
        return decision.stamp.use(binding_of(call), _said(decision))
    return call.ctx.bound_by is not None


def _said(decision: ApprovalDecision) -> str:
    return digest([decision.verdict, decision.arguments])


def binding_of(call: Call) -> str:
    """The digest over run, call id, principal, tool and arguments (attack cases A2 to A6, A12)."""
    ctx = call.ctx
    parts = [
        call.run_id,
        call.position_key,
        ctx.call_id,
        ctx.tenant,
        ctx.principal,
        call.spec.fingerprint,
        call.digest,
    ]
    return digest(parts)


def request_of(
    call: Call,
    reason: str,
    *,
    taint: tuple[str, ...] = (),
    edits_allowed: bool = True,
) -> ApprovalRequest:
    """The question about this call, with everything a reviewer must see."""
    ctx = call.ctx
    arguments = call.arguments
    shown, key = text_of(arguments), call.key()
    earlier = tuple(
        f"{row['tool']} {row['call_key']} ({row['ending'] or 'open'})" for row in call.earlier
    )
    accepted = tuple(row["call_key"] for row in call.earlier)
    secrets = _whole_secrets(call)
    why, doubts = _with_reentry(call, reason), tuple(sorted(unclear(call.earlier)))
    return ApprovalRequest(
        tool=call.spec.name,
        description=call.spec.description,
        arguments=arguments,
        shown=shown,
        call_id=ctx.call_id or "",
        run_id=call.run_id,
        thread_id=ctx.thread_id,
        call_key=key,
        binding=binding_of(call),
        fingerprint=call.spec.fingerprint,
        digest=call.digest,
        reason=why,
        effects=call.spec.effects,
        principal=ctx.principal,
        requester=call.requester,
        tenant=ctx.tenant,
        attempt=ctx.attempt,
        n=call.n or 1,
        tags=tuple(call.spec.tags),
        taint=taint,
        earlier=earlier,
        accepted=accepted,
        doubts=doubts,
        edits_allowed=edits_allowed,
        payload=call.masked_payload(),
        conversation=call.conversation,
        asker=call.asker(),
        place=call.position_key,
        run_is_known=call.run_is_known,
        root_run_id=call.root_run_id,
        limits=call.limits,
        schema=call.spec.arguments.schema,
        secrets=secrets,
        policy_fingerprint=call.plan.policy_fingerprint,
        irreversible=call.spec.irreversible,
    )


def _whole_secrets(call: Call) -> tuple[str, ...]:
    """The arguments that are secret whole, by the names that the schema uses."""
    spec = call.spec
    return tuple(
        spec.arguments.public_name(name) for name in sorted(spec.secrets - spec.secret_parts.keys())
    )


def unclear(earlier: Iterable[Row]) -> frozenset[str]:
    """The keys of the earlier calls of which nobody knows whether they happened."""
    return frozenset(row["call_key"] for row in earlier if row["ending"] in (None, "unknown"))


def _with_reentry(call: Call, reason: str) -> str:
    """The reason, with what an approval does to the tools around this call."""
    outer, again = call.parent, []
    while outer is not None:
        if outer.spec.effects == "write" and not outer.spec.workflow:
            again.append(outer.spec.name)
        outer = outer.parent
    if not again:
        return reason
    return f"{reason}; {runs_again(' and '.join(again))}"


def runs_again(names: str) -> str:
    """What an approval does to tools that are entered again."""
    return (
        f"approving runs {names} again from its start: what it did outside of recorded calls"
        " happens again"
    )
