"""C15: what the model is told of how a call ended, the same in every integration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_adapter.core.errors import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalPending,
    ApprovalWithdrawn,
    GuardrailBlocked,
    ToolArgsIncomplete,
    ToolInDoubt,
)
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.exec.record import withheld

from ._kit_support import FakeRunner, Probe, RunnerFactory, expect, outcome_of, ports_of

__all__ = ["ENDINGS", "check_told"]

_REASON = "contract reason"

ENDINGS: Mapping[str, tuple[Exception, tuple[str, ...]]] = {
    "denied": (
        ApprovalDenied(f"contract_add was denied by ann: {_REASON}"),
        ("approval-denied", _REASON, "do not ask for it again"),
    ),
    "expired": (
        ApprovalExpired(f"contract_add: approval apr_1 is expired: {_REASON}"),
        ("approval-expired", _REASON, "do not ask for it again"),
    ),
    "withdrawn": (
        ApprovalWithdrawn(f"contract_add: the question was withdrawn: {_REASON}"),
        ("approval-withdrawn", _REASON, "do not ask for it again"),
    ),
    "in doubt": (
        ToolInDoubt("contract_add was begun before", call_key="call_contract"),
        ("tool-in-doubt", "may have happened", "do not repeat"),
    ),
    "withheld": (
        withheld(GuardrailBlocked(_REASON)),
        ("guardrail-blocked", _REASON, "was done"),
    ),
    "incomplete": (
        ToolArgsIncomplete("contract_add", "length"),
        ("tool-args-incomplete", "length"),
    ),
    "pending": (
        ApprovalPending("apr_contract"),
        ("apr_contract", "a person is asked", "nothing has run"),
    ),
}
"""How a call can end for a model beside its result, and the words that it must read.

A harness names in `cannot_tell` those that its framework cannot reach, each with its reason."""


class _Ending(FakeRunner):
    """A runner whose calls all end with one error."""

    error: Exception

    async def run_spec(self, *args: Any, **options: Any) -> Any:
        """Raise it."""
        raise self.error


async def check_told(harness: Any, factory: RunnerFactory) -> None:
    """C15: denied, expired, withdrawn, pending, in doubt, withheld, edited, recorded, cut off."""
    declared: Mapping[str, str] = getattr(harness, "cannot_tell", {})
    for ending, (error, words) in ENDINGS.items():
        if ending in declared:
            expect(len(declared[ending]) > 10, "C15", f"{ending}: no reason is declared")
            continue
        runner = _Ending()
        runner.error = error
        native = harness.export(Probe().adding(), runner)
        call = harness.call(native, {"a": 2, "b": 3}, call_id=f"call_contract_15_{ending}")
        ended = await outcome_of(call)
        if isinstance(ended.raw, ApprovalPending) and ending == "pending":
            continue  # the program is told, and goes on when the person has decided
        told = str(ended.raw) if ended.raised else harness.shown(ended.raw)
        missing = [word for word in words if word not in told]
        expect(not missing, "C15", f"{ending}: the model reads {told!r}, without {missing}")
        if ending != "pending":  # a question is no failure: each framework may take it as it likes
            expect(harness.is_error(ended.raw), "C15", f"{ending}: not an error: {ended.raw!r}")
    await _check_edited(harness, factory, declared)
    await _check_recorded(harness, factory)


async def _check_edited(harness: Any, factory: RunnerFactory, declared: Mapping[str, str]) -> None:
    if not harness.edits_supported or factory is FakeRunner or "edited" in declared:
        return
    edited = ApprovalDecision.approve(reviewer="contract", arguments={"a": 20, "b": 30})
    by_executor, _ = ports_of(harness, edited)
    native = harness.export(Probe().adding(confirm=True), factory(approval=by_executor))
    ended = await outcome_of(harness.approve_flow(native, {"a": 2, "b": 3}, edited))
    told = str(ended.raw) if ended.raised else harness.shown(ended.raw)
    missing = [word for word in ("a person changed", "20", "30", "50") if word not in told]
    expect(not missing, "C15", f"edited: the model reads {told!r}, without {missing}")


async def _check_recorded(harness: Any, factory: RunnerFactory) -> None:
    """A result that may come from the ledger reads as one that was made just now."""
    runner = factory()
    native = harness.export(Probe().adding(effects="idempotent"), runner)
    said = []
    for _ in range(2):
        ended = await outcome_of(
            harness.call(native, {"a": 2, "b": 3}, call_id="call_contract_15r")
        )
        said.append(str(ended.raw) if ended.raised else harness.shown(ended.raw))
    expect(said[0] == said[1], "C15", f"recorded: the model reads {said[1]!r}, not {said[0]!r}")
