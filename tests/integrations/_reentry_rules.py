"""What is done to a run in each row of the re-entry matrix, and what the rules say comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ._reentry import Cell, Driver, World, within

PATIENCE = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Counts of a cell: effects, questions, and rows of the ledger; `read` is in the last text."""

    acted: tuple[int, int]
    asked: int
    rows: tuple[int, int]
    read: str


async def pause(world: World, driver: Driver) -> None:
    """Two turns, each with a call beside one that waits for a person."""
    for _ in range(2):
        await driver.ask(world.turn(world.target, "gate"))
        await driver.settled()
    assert world.gated == 2, world.gated


async def node_retry(world: World, driver: Driver) -> None:
    """The node that made the calls fails after them, and is run again."""
    await driver.ask(world.turn(world.target))
    await driver.settled()
    driver.fails = [OSError("the node failed")]
    await driver.ask(world.turn(world.target))
    await driver.settled()
    assert not driver.fails, "the node was not retried"


async def run_retry(world: World, driver: Driver) -> None:
    """The run is made again from its start, and then does one thing more."""
    await driver.again(world.turn(world.target), world.turn(world.target))
    await driver.settled()


async def tool_retry(world: World, driver: Driver) -> None:
    """The tool fails once after its effect and is tried again; the next turn has no failure."""
    world.fails = [OSError("once")]
    for _ in range(2):
        await driver.ask(world.turn(world.target))
        await driver.settled()
        world.fails = []


async def crash(world: World, driver: Driver) -> None:
    """The process ends when the call has ended, before the framework is told."""
    await driver.ask(world.turn(world.target))
    await driver.settled()
    world.armed = True
    await _until_stuck(world, driver)
    world.new_executor()
    await within(PATIENCE, driver.go_on())
    await driver.settled()


async def time_out(world: World, driver: Driver) -> None:
    """The client gives up while the tool works, and asks for the same again."""
    await driver.ask(world.turn(world.target))
    await driver.settled()
    world.hang = True
    await _until_stuck(world, driver)
    await within(PATIENCE, driver.go_on())


async def _until_stuck(world: World, driver: Driver) -> None:
    """One more turn, up to where the world stalls; whoever asked for it is then gone."""
    step: Any = driver.ask(world.turn(world.target))
    for _ in range(3):
        work, stuck = asyncio.ensure_future(step), asyncio.ensure_future(world.stuck.wait())
        await asyncio.wait({work, stuck}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if world.stuck.is_set():
            stuck.cancel()
            work.cancel()
            await asyncio.wait({work, stuck}, timeout=PATIENCE)
            driver.waiting = False
            if driver.abandons:
                world.released.set()
            return
        stuck.cancel()
        await work
        held = driver.held()
        await world.approve_all()
        assert driver.waiting or held, driver.read
        step = driver.go_on() if driver.waiting else driver.ask(world.turn(*held))
    raise AssertionError("it was never stuck")


async def travel(world: World, driver: Driver) -> None:
    """Somebody goes back to before the calls, and on from there."""
    for _ in range(2):
        await driver.ask(world.turn(world.target))
        await driver.settled()
    await within(PATIENCE, driver.rewind())


SCENES: dict[str, Callable[[World, Driver], Awaitable[None]]] = {
    "pause": pause,
    "node-retry": node_retry,
    "run-retry": run_retry,
    "tool-retry": tool_retry,
    "crash": crash,
    "time-out": time_out,
    "travel": travel,
}


def expected(cell: Cell, *, abandons: bool) -> Expected:
    """What the rules say of a cell: two turns ask for the call, so it is made twice.

    A write is made once for each, and once more only where a person is asked about just that. A
    read or an idempotent call may be made again.
    """
    asks = 2 if cell.effects == "confirm" else 0
    acted = (2, 2) if cell.writes else (2, 4)
    rows, read = acted, "watered north"
    if cell.reentry == "time-out" and abandons:
        pass  # the tool ends after all, and its outcome is the answer
    elif cell.reentry in ("time-out", "travel") and cell.writes:
        asks += 1  # whether it is to be made again
        read = "a person is asked"
    return Expected(acted=acted, asked=asks, rows=rows, read=read)
