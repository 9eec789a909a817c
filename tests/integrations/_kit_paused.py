"""C11: a paused state that a framework serialises is a request, whatever is changed in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from agent_adapter.core.types import ApprovalDecision, ApprovalRequest

from ._kit_support import Probe, RunnerFactory, expect, outcome_of, ports_of

__all__ = ["TAMPERS", "check_paused"]

TAMPERS = ("arguments", "call-id", "approved", "run")
"""What `tampered` changes: other arguments, another id, marked as approved, another run."""

_ARGS = {"a": 2, "b": 3}
_Key = tuple[Any, Any, str]


async def check_paused(harness: Any, factory: RunnerFactory) -> None:
    """C11: nothing that is done to a serialised pause makes a tool run without the port."""
    for kind in ("unchanged", "replayed", *TAMPERS):
        probe = Probe()
        by_executor, gate = ports_of(harness, ApprovalDecision.pending("apr_contract"))
        if gate is None:
            raise AssertionError("C11: the harness has no port that decides")
        native = harness.export(probe.adding(confirm=True), factory(approval=by_executor))
        state = await harness.paused(native, dict(_ARGS), call_id=f"call_contract_11_{kind}")
        expect(not probe.calls, "C11", f"{kind}: the tool ran before it was approved")
        approved: list[ApprovalRequest] = []
        gate.answer = _deciding(approved, willing=kind != "approved")
        if kind in TAMPERS:
            state = await harness.tampered(native, state, kind)
        for _ in range(2 if kind == "replayed" else 1):
            await outcome_of(harness.resumed(native, state))
        _check_covered(kind, probe, approved)
        if kind == "unchanged":
            expect(probe.calls == [_ARGS], "C11", f"an approved pause ran as {probe.calls!r}")


def _deciding(
    approved: list[ApprovalRequest], *, willing: bool
) -> Callable[[ApprovalRequest], ApprovalDecision]:
    def decide(request: ApprovalRequest) -> ApprovalDecision:
        if not willing or request.arguments != _ARGS:
            return ApprovalDecision.deny(reviewer="contract", reason="not what was shown")
        approved.append(request)
        return ApprovalDecision.approve(reviewer="contract")

    return decide


def _check_covered(kind: str, probe: Probe, approved: list[ApprovalRequest]) -> None:
    """Each run has an approval of its own: for its call id, its run and its arguments."""
    given = Counter(_key(r.call_id, r.run_id, r.arguments) for r in approved)
    ran = Counter(
        _key(ctx.call_id, ctx.identity.run or ctx.run_id, args)
        for ctx, args in zip(probe.contexts, probe.calls, strict=True)
    )
    stolen = sorted((ran - given).elements())
    expect(not stolen, "C11", f"{kind}: ran without the port as {stolen}, approved: {list(given)}")


def _key(call_id: Any, run_id: Any, args: Any) -> _Key:
    return (call_id, run_id, json.dumps(args, sort_keys=True))
