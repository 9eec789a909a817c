"""One call of a real task, held for a person and run after a restart, over three processes.

`ask` runs a task with each framework until its payment is held, and ends. `approve` is a process of
its own that decides what waits in the inbox. `resume` is a third that runs what was approved, tries
to run it again, and lets the suite's checker judge the account.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agent_adapter import ApprovalPending, DeferredApproval, Executor, ToolRegistry, open_store
from agent_adapter.exec.approval.inbox import Inbox
from agent_adapter.store.base import Store
from workloads.agentdojo.environment import bound_environment
from workloads.agentdojo.replay import World, judge, open_world, script_of
from workloads.agentdojo.report import RECORDED
from workloads.agentdojo.scripted import Played, Script
from workloads.agentdojo.suites import load_suites
from workloads.agentdojo.tools import registry_of, suite_tools

__all__ = ["STEPS", "run_step"]

SUITE = "banking"
TASK = "user_task_0"
HELD_TOOL = "banking_send_money"
REVIEWER = "treasurer"


async def run_step(step: str, url: str) -> dict[str, Any]:
    """One step over the store at `url`; what it saw, as JSON values."""
    store = open_store(url)
    try:
        return await STEPS[step](store)
    finally:
        await store.aclose()


async def _ask(store: Store) -> dict[str, Any]:
    """Each framework runs the task; the payment of each is held and no account changes."""
    registry, world, script = _prepare()
    seen: dict[str, Any] = {}
    for name, play in ASKING.items():
        world = _world()
        with bound_environment(world.now):
            seen[name] = await play(script, registry, store)
        seen[f"{name}_paid"] = _payments(world)
    return seen


async def _ask_ag2(script: Script, registry: ToolRegistry, store: Store) -> list[str]:
    from workloads.agentdojo import ag2_agent

    port = DeferredApproval(store)
    executor = Executor(registry, approval=port, store=store)
    await ag2_agent.play(script, suite_tools(registry, SUITE), executor, approval=port)
    return [record.id for record in await Inbox(store).list()]


async def _ask_agno(script: Script, registry: ToolRegistry, store: Store) -> list[str]:
    from agent_adapter.integrations.agno import resolve_requirements
    from workloads.agentdojo import agno_agent

    port = DeferredApproval(store)
    executor = Executor(registry, approval=port, store=store)
    agent = agno_agent.build_agent(script, suite_tools(registry, SUITE), executor)
    output = await agent.arun(script.prompt)
    try:
        await resolve_requirements(output, port, registry)
    except ApprovalPending as pending:
        return list(pending.ids)
    return []


async def _ask_langgraph(script: Script, registry: ToolRegistry, store: Store) -> list[str]:
    from workloads.agentdojo import langgraph_agent

    port = DeferredApproval(store)
    executor = Executor(registry, approval=port, store=store)
    before = {record.id for record in await Inbox(store).list()}
    await langgraph_agent.play(script, suite_tools(registry, SUITE), executor, approval=port)
    return [record.id for record in await Inbox(store).list() if record.id not in before]


async def _approve(store: Store) -> dict[str, Any]:
    """A person reads what waits and says yes to each."""
    inbox = Inbox(store)
    waiting = await inbox.list()
    for record in waiting:
        await inbox.approve(record.id, reviewer=REVIEWER, reason="the bill is ours")
    return {"approved": [record.id for record in waiting]}


async def _resume(store: Store) -> dict[str, Any]:
    """Each approved payment runs once in a world of its own; a second try pays nothing."""
    registry, _, script = _prepare()
    executor = Executor(registry, store=store)
    results = []
    for record in await Inbox(store).list("approved"):
        world = _world()
        with bound_environment(world.now):
            await executor.resume(record.id)
            paid = _payments(world)
            again = await _second_try(executor, record.id)
        played = Played(output=script.output, calls=tuple(script.calls), errors=())
        results.append(
            {
                "id": record.id,
                "paid": paid,
                "paid_after_second_try": _payments(world),
                "second_try": again,
                "checker": judge(SUITE, _task(), world, played),
            }
        )
    return {"resumed": results}


async def _second_try(executor: Executor, record: str) -> str:
    try:
        value = await executor.resume(record)
    except Exception as exc:  # whatever it says, the account must not change
        return f"{type(exc).__name__}: {exc}"
    return f"{RECORDED}{value}"


def _prepare() -> tuple[ToolRegistry, World, Script]:
    world = _world()
    registry = registry_of({SUITE: _suites()[SUITE]}, confirm=[HELD_TOOL])
    return registry, world, script_of(SUITE, _task(), world)


def _world() -> World:
    return open_world(_suites()[SUITE], _task())


def _task() -> Any:
    return _suites()[SUITE].user_tasks[TASK]


@cache
def _suites() -> dict[str, Any]:
    return load_suites()


def _payments(world: World) -> int:
    return len(world.now.bank_account.transactions) - len(world.before.bank_account.transactions)


ASKING = {"ag2": _ask_ag2, "agno": _ask_agno, "langgraph": _ask_langgraph}
"""How each framework asks; the payment of each is held."""

STEPS: dict[str, Callable[[Store], Awaitable[dict[str, Any]]]] = {
    "ask": _ask,
    "approve": _approve,
    "resume": _resume,
}


async def in_own_process(step: str, url: str) -> dict[str, Any]:
    """Run `step` in a new interpreter, as after a restart."""
    command = [sys.executable, "-m", "workloads.agentdojo.held", step, "--store", url]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    written, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"step {step!r} of the held call ended with {process.returncode}")
    seen: dict[str, Any] = json.loads(written)
    return seen


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one step and print what it saw as JSON."""
    parser = argparse.ArgumentParser(prog="python -m workloads.agentdojo.held", description=__doc__)
    parser.add_argument("step", choices=list(STEPS))
    parser.add_argument("--store", required=True, help="URL of the store, such as sqlite:///x.db")
    options = parser.parse_args(arguments)
    print(json.dumps(asyncio.run(run_step(options.step, options.store))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
