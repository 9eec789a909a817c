"""An approval that outlives the program: one process asks, another decides, a third runs the call.

    python examples/deferred_approval.py            # the three steps, each in a process of its own
    python examples/deferred_approval.py ask        # prints the record: apr_…
    python examples/deferred_approval.py approve apr_…
    python examples/deferred_approval.py resume apr_…

The three share nothing but one SQLite file (`AGENT_ADAPTER_EXAMPLE_DB`, else `deferred.db` here).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import agent_adapter as aa

registry = aa.ToolRegistry()


@registry.tool(confirm=True)
def transfer(account: str, amount: int) -> str:
    """Sends money."""
    return f"sent {amount} to {account} (process {os.getpid()})"


def store_of() -> aa.Store:
    """The SQLite file that the processes share."""
    return aa.open_store(f"sqlite:///{os.environ.get('AGENT_ADAPTER_EXAMPLE_DB', 'deferred.db')}")


async def ask() -> None:
    """Make the call; it waits for a decision, and this process ends."""
    store = store_of()
    executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)
    try:
        print(await executor.run("transfer", {"account": "DE02", "amount": 5}))
    except aa.ApprovalPending as pending:
        print(pending.id)


async def approve(record: str) -> None:
    """Decide as a person does with `agent-adapter approvals` or the console."""
    inbox = aa.Inbox(store_of())
    waiting = await inbox.get(record)
    await inbox.approve(record, reviewer="ann", reason="checked the account")
    print(f"approved {waiting.tool}{waiting.arguments}")


async def resume(record: str) -> None:
    """Run the approved call exactly as requested; a second run returns the recorded outcome."""
    store = store_of()
    executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)
    print(await executor.resume(record))


def story() -> None:
    """The three steps, each in a new process; the last is done twice and runs the tool once."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["AGENT_ADAPTER_EXAMPLE_DB"] = str(Path(folder) / "deferred.db")
        record = step("ask")
        print(f"asked: {record}")
        for name in ("approve", "resume", "resume"):
            print(f"{name}: {step(name, record)}")


def step(*arguments: str) -> str:
    """What one step of this file prints, run in a process of its own."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


STEPS = {"ask": ask, "approve": approve, "resume": resume}


if __name__ == "__main__":
    if len(sys.argv) == 1:
        story()
    else:
        asyncio.run(STEPS[sys.argv[1]](*sys.argv[2:]))  # type: ignore[operator]  # by name
