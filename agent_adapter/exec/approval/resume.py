"""An approved record, turned back into the call that it was filed for."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import from_json

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    AgentAdapterError,
    ApprovalDenied,
    ApprovalExpired,
    ApprovalPending,
)
from agent_adapter.core.inert import short
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import RunLimits
from agent_adapter.exec import replay, stages, taint
from agent_adapter.exec.approval import decide
from agent_adapter.exec.approval.ports.deferred import decision_of, released, unsigned
from agent_adapter.exec.approval.request import request_of
from agent_adapter.exec.approval.signing import Signers
from agent_adapter.exec.call import Call
from agent_adapter.exec.masking import has_mask
from agent_adapter.exec.replay import Recorded
from agent_adapter.exec.runtime import Runtime
from agent_adapter.exec.scope import current_scope
from agent_adapter.store import approvals, reopening
from agent_adapter.store.base import Row, Store, Transaction
from agent_adapter.store.identity import look_up


async def resumed(
    runtime: Runtime, registry: ToolRegistry | None, record_id: str, tenant: str
) -> tuple[Call, Recorded | None]:
    """The call of that record with its answer accepted, and its recorded end if it ran already.

    Raises the error that the record's state stands for.
    """
    records = getattr(runtime.approval, "store", None) or runtime.store
    row = await records.read(_as_it_stands(record_id, tenant))
    if row is None:
        raise ApprovalDenied(f"no approval {short(record_id)} in {records.url}")
    if row["state"] == "expired":
        # Written down here: a clock that is set back must not revive it.
        await records.write(_expired(record_id, tenant))
        raise ApprovalExpired(f"approval {row['id']} of {row['tool']} expired")
    row = await released(records, row)
    if row["state"] != "answered":
        decide.refuse(row["tool"], decision_of(row))
    if registry is None:
        raise AgentAdapterError("resume needs an Executor with the registry that has the tool")
    spec = registry.get(row["tool"])
    seen = json.loads(row["request"])
    _refuse_changed(spec, row)
    call = _as_asked(runtime, spec, row, seen)
    call.call_key, call.n = row["call_key"], seen["n"]
    call.records = records if records is not runtime.store else None
    call.asked = seen["reason"]
    if row["state"] == "answered":
        await _refuse_unsigned(records, row, call)
        await stages.prepare(call, call.given, guard=False, ask=False)
        await decide.accept(call, decision_of(row))
        return call, None
    if row["state"] == "taken":
        return call, await _ended(call, record_id)
    await stages.prepare(call, call.given, guard=False, ask=False)
    if call.digest != row["digest"]:
        raise ApprovalDenied(f"the arguments of {record_id} no longer read as they were shown")
    await _refuse_labelled(records, row, call)
    await _refuse_unsigned(records, row, call)
    await decide.accept(call, decision_of(row))
    return call, None


def _refuse_changed(spec: ToolSpec, row: Row) -> None:
    """Raise `ApprovalDenied` if the record does not hold the whole call of today's tool."""
    if spec.fingerprint != row["fingerprint"]:
        raise ApprovalDenied(f"{spec.name} has changed since approval {row['id']} was asked for")
    if row["payload"] is not None and has_mask(from_json(row["payload"])):
        raise ApprovalDenied(
            f"{spec.name} takes secrets, which the record does not hold: make the call again with "
            "the same arguments, and it will find its approval"
        )
    if row["payload"] is None:
        raise ApprovalDenied(f"the run of approval {row['id']} was erased")


async def _refuse_unsigned(records: Store, row: Row, call: Call) -> None:
    """Where signatures are required: refuse a record without one, or signed for another call."""
    signers: Signers | None = getattr(call.runtime.approval, "signers", None)
    if signers is None:
        return
    request = request_of(call, "", taint=call.labels or ())
    problem = await unsigned(records, signers, row, request)
    if problem is not None:
        raise ApprovalDenied(f"{call.spec.name} was not run: {problem}")


async def _refuse_labelled(records: Store, row: Row, call: Call) -> None:
    """Ask again about a call whose run has read something since it was approved."""
    labels = await taint.labels(call)
    if set(json.loads(row["request"]).get("taint", ())).issuperset(labels):
        return
    again = await records.write(lambda tx: reopening.with_labels(tx, row, labels))
    raise ApprovalPending(again["id"], again["decide_by"])


def _as_asked(runtime: Runtime, spec: ToolSpec, row: Row, seen: dict[str, Any]) -> Call:
    """The call in its own run, whatever tool or scope it is resumed from."""
    token = current_scope.set(None)
    try:
        call = Call(runtime, spec, from_json(row["payload"]), _context(row, seen), seen["call_id"])
    finally:
        current_scope.reset(token)
    # What it counts against and is stopped by is kept with the record (0.1 kept less).
    call.run_id, call.conversation = row["run_id"], row["conversation"]
    call.root_run_id = seen.get("root_run_id") or row["run_id"]
    call.run_is_known = row["run_known"] != 0
    call.position_key = seen.get("place")
    call.accepted = frozenset(seen.get("accepted", ()))
    call.doubts = frozenset(seen.get("doubts", ()))
    limits = seen.get("limits")
    call.limits = call.limits if limits is None else RunLimits(**limits)
    return call


async def _ended(call: Call, record_id: str) -> Recorded:
    intent = call.intent()
    begun = await call.runtime.store.read(lambda tx: look_up(tx, intent))
    if begun.row is None or begun.state == "again":
        raise ApprovalDenied(f"approval {record_id} was used, and its call did not run: ask again")
    found = await replay.settle(call, begun)
    if found is None:
        raise replay.doubt(call.spec, begun.row)
    return found


def _context(row: Row, seen: dict[str, Any]) -> ToolContext:
    return ToolContext(
        run_id=row["run_id"],
        thread_id=row["thread_id"],
        principal=row["principal"],
        tenant=row["tenant"],
        attempt=seen["attempt"],
    )


def _expired(record_id: str, tenant: str) -> Any:
    def op(tx: Transaction) -> None:
        row = approvals.get(tx, record_id, tenant)
        if row is not None:
            approvals.expire(tx, row)

    return op


def _as_it_stands(record_id: str, tenant: str) -> Any:
    def op(tx: Transaction) -> Row | None:
        row = approvals.get(tx, record_id, tenant)
        return None if row is None else approvals.as_of(tx, row)

    return op
