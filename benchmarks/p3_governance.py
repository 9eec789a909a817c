"""P3: guard, limits, approval by callback and ledger, against another governance toolkit."""

from __future__ import annotations

import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from agent_adapter import (
    ApprovalRequest,
    CallbackApproval,
    Executor,
    RunLimits,
    ToolContext,
    ToolRegistry,
)
from agent_adapter.store.opening import open_store
from benchmarks.measure import Batch, in_turns
from benchmarks.row import Row, Skipped

__all__ = ["run"]

WHAT = "guard, limits, approval, ledger in memory"

POLICY = """
apiVersion: governance.toolkit/v1
name: bench
agents: ["*"]
default_action: deny
rules:
  - name: ask
    condition: "action.type == 'add'"
    action: require_approval
    approvers: ["bench"]
"""


class _Guard:
    async def before(self, call: Any) -> None:
        """Let every call pass."""


async def _reviewer(request: ApprovalRequest) -> bool:
    return True


async def run(folder: Path, rounds: int) -> list[Row | Skipped]:
    """One row; skipped with the command when the other toolkit is not installed."""
    try:
        theirs = _governed()
    except ImportError:
        reason = "not installed: pip install agent-governance-toolkit-core==4.1.0"
        return [Skipped(id="P3", what=WHAT, reason=reason)]
    store = open_store("memory://")
    contenders = {"agent-governance-toolkit": theirs, "run_spec, full": _pipeline(store)}
    against, ours = await in_turns(contenders, rounds=rounds * 4, calls=25)
    await store.aclose()
    return [Row(id="P3", what=WHAT, ours=ours, against=against, limit=1)]


def _pipeline(store: Any) -> Batch:
    registry = ToolRegistry()

    @registry.tool(effects="write", confirm=True)
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    spec = registry.get("add")
    executor = Executor(
        registry,
        approval=CallbackApproval(_reviewer),
        store=store,
        limits=RunLimits(max_calls=1_000_000_000),
        hooks=[_Guard()],
    )
    number = 0

    async def batch(calls: int) -> float:
        nonlocal number
        number += 1
        contexts = [ToolContext(f"call_{n}", f"run_{number}_{n // 10}") for n in range(calls)]
        began = time.perf_counter()
        for ctx in contexts:
            await executor.run_spec(spec, {"a": 1, "b": 2}, ctx, call_id=ctx.call_id)
        return time.perf_counter() - began

    return batch


def _governed() -> Batch:
    """Policy, approval by callback and audit chain, as the toolkit's own wrapper has them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        approval = import_module("agentmesh.governance.approval")
        govern = import_module("agentmesh.governance.govern").govern

    def add(action: str, a: int, b: int) -> int:
        return a + b

    governed = govern(
        add,
        policy=POLICY,
        approval_handler=approval.CallbackApproval(
            lambda request: approval.ApprovalDecision(
                approved=True, approver="bench", reason="bench"
            )
        ),
    )

    async def batch(calls: int) -> float:
        began = time.perf_counter()
        for _ in range(calls):
            governed(action="add", a=1, b=2)
        return time.perf_counter() - began

    return batch
