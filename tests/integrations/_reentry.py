"""The re-entry matrix: what is done to a run, to which call, and what must come of it.

A `World` holds the tools and counts what they did. A `Driver` makes one framework play a script:
each turn is a list of `(call id, tool, arguments)`. What a framework cannot offer stands in
`CANNOT`, with the reason that its page states.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import agent_adapter as aa

Reentry = Literal["pause", "node-retry", "run-retry", "tool-retry", "crash", "time-out", "travel"]
REENTRIES: tuple[Reentry, ...] = (
    "pause",
    "node-retry",
    "run-retry",
    "tool-retry",
    "crash",
    "time-out",
    "travel",
)
DEPTHS = ("direct", "inside", "sub-agent")
EFFECTS = ("read", "idempotent", "write", "confirm")
IDS = ("unique", "equal", "empty", "none")

Turn = list[tuple[Any, str, dict[str, Any]]]
BED = {"bed": "north"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the matrix."""

    framework: str
    reentry: Reentry
    depth: str
    effects: str
    ids: str

    def __str__(self) -> str:
        parts = (self.framework, self.reentry, self.depth, self.effects, self.ids)
        return "-".join(part.replace(" ", "_") for part in parts)

    @property
    def writes(self) -> bool:
        """Whether the call may be made once only."""
        return self.effects in ("write", "confirm")


class _Stalling(aa.Executor):
    """An executor whose process ends where it is armed: a call has ended, nobody was told."""

    world: World

    async def run_spec(self, spec: Any, args: Any, ctx: Any = None, **options: Any) -> Any:
        """The call's value; never, once it is armed and the call is the target."""
        value = await super().run_spec(spec, args, ctx, **options)
        if self.world.armed and spec.name == self.world.target:
            self.world.armed = False
            await self.world.stall()
        return value


class World:
    """The tools of one cell, the store that outlives a crash, and what was done."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.store = aa.open_store("memory://")
        self.inbox = aa.Inbox(self.store)
        self.acted = 0
        self.gated = 0
        self.hang = False
        self.fails: list[Exception] = []
        self.sub: Any = None
        self.armed = False
        self.stuck = asyncio.Event()
        self.released = asyncio.Event()
        self.registry = aa.ToolRegistry()
        self._register()
        self.executor = self.new_executor()
        self._numbers = itertools.count(1)

    def new_executor(self) -> aa.Executor:
        """What a new process makes."""
        port = aa.DeferredApproval(self.store)
        self.executor = _Stalling(self.registry, store=self.store, approval=port)
        self.executor.world = self
        return self.executor

    async def stall(self) -> None:
        """Wait for good: whoever made the call goes away."""
        self.stuck.set()
        await self.released.wait()

    def _register(self) -> None:
        cell, tool = self.cell, self.registry.tool
        effects: Any = "write" if cell.writes else cell.effects
        again = aa.RetryPolicy(attempts=2, on=(OSError,), wait_initial=0.0, wait_max=0.0)
        retries = again if cell.reentry == "tool-retry" else None
        own = retries if cell.depth == "direct" and not cell.writes else None

        async def water(bed: str) -> str:
            """Water a bed."""
            self.acted += 1
            number = self.acted
            if self.hang:
                self.hang = False
                await self.stall()
            if self.fails and cell.depth == "direct":
                raise self.fails.pop()
            return f"watered {bed} ({number})"

        tool(effects=effects, confirm=cell.effects == "confirm", retries=own)(water)

        @tool(effects="idempotent", retries=retries if cell.depth != "direct" else None)
        async def outer(bed: str) -> str:
            """Water a bed by another tool."""
            said: str = await self.executor.run("water", {"bed": bed})
            if self.fails:
                raise self.fails.pop()
            return said

        @tool(effects="idempotent")
        async def delegate(bed: str) -> str:
            """Have another agent water a bed."""
            said: str = await self.sub(self.turn("outer"))
            return said

        @tool(confirm=True)
        async def gate() -> str:
            """Open the gate."""
            self.gated += 1
            return "opened"

    @property
    def target(self) -> str:
        """The tool that the model calls."""
        return {"direct": "water", "inside": "outer", "sub-agent": "delegate"}[self.cell.depth]

    def turn(self, *tools: str) -> Turn:
        """A message of the model that calls these tools."""
        calls: Turn = []
        for place, name in enumerate(tools):
            style = self.cell.ids
            unique = f"call_{next(self._numbers)}"
            id = {"unique": unique, "equal": f"call_{place}", "empty": "", "none": None}[style]
            takes_bed = name in ("water", "outer", "delegate")
            calls.append((id, name, dict(BED) if takes_bed else {}))
        return calls

    async def approve_all(self) -> int:
        """A person says yes to all that waits; how many that were."""
        records = await self.inbox.list()
        for record in records:
            await self.inbox.approve(record.id, reviewer="ann")
        return len(records)

    async def asked(self) -> int:
        """How many questions about the call there ever were."""
        return len([r for r in await self.inbox.list(None) if r.tool == "water"])

    async def rows(self) -> list[Any]:
        """The ledger's calls of the tool that acts."""
        await self.store.flush()
        return list(await self.store.read(lambda tx: tx.select("calls", {"tool": "water"})))


class Driver(ABC):
    """One framework with a scripted model.

    `script` are the turns that its model has still to play; `waiting` is whether its run is paused
    for a person and goes on by `go_on`. `read` are the results of the target that the model read,
    `newest` the tool and the result of each call of the last turn.
    """

    abandons = False
    """Whether a tool goes on when its run is cancelled."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.script: list[Turn] = []
        self.waiting = False
        self.fails: list[Exception] = []
        self.read: list[str] = []
        self.newest: list[tuple[str, str]] = []
        world.sub = self.sub

    @abstractmethod
    async def ask(self, *turns: Turn) -> None:
        """A message of the user; the model plays `turns`, until it ends or is paused."""

    @abstractmethod
    async def go_on(self) -> None:
        """Go on after a pause or a crash, with what a new process would have."""

    @abstractmethod
    async def sub(self, turn: Turn) -> str:
        """Another agent of the framework that plays one turn, inside a tool; what it read."""

    async def open(self) -> None:  # noqa: B027  # most drivers open nothing
        """Open what the test's own task must close."""

    async def close(self) -> None:  # noqa: B027  # and close nothing
        """Leave what is open."""

    async def rewind(self) -> None:
        """Go back to before the last calls and on from there."""
        raise NotImplementedError

    async def again(self, *turns: Turn) -> None:
        """Make the whole run again, with the evidence that this framework gives of it."""
        raise NotImplementedError

    async def settled(self) -> None:
        """Go on until nobody is waited for; where a run cannot pause, the user says "go on"."""
        world = self.world
        for _ in range(6):
            held = self.held()
            if not await world.approve_all() and not self.waiting and not held:
                return
            if self.waiting:
                await self.go_on()
            elif held:
                await self.ask(world.turn(*held))
        raise AssertionError("it waits for ever")

    def note(self, *results: tuple[str, str]) -> None:
        """Keep what the model read of the newest turn's calls, given as tool and text."""
        self.newest = list(results)
        self.read += [text for name, text in results if name == self.world.target]

    def held(self) -> list[str]:
        """The tools of the newest turn whose result says that a person is asked."""
        return [name for name, text in self.newest if "a person is asked" in text]


Reason = str
CANNOT: dict[tuple[str, Reentry], Reason] = {}
"""What a framework cannot offer, with the reason."""

NO_ID: dict[tuple[str, str], Reason] = {}
"""Styles of ids that a framework cannot carry, with the reason."""


def declare(framework: str, reasons: dict[Reentry, Reason], ids: dict[str, Reason]) -> None:
    """Write down what `framework` cannot offer."""
    for reentry, reason in reasons.items():
        CANNOT[framework, reentry] = reason
    for style, reason in ids.items():
        NO_ID[framework, style] = reason


def cannot(cell: Cell) -> Reason | None:
    """Why there is no such cell."""
    reason = CANNOT.get((cell.framework, cell.reentry)) or NO_ID.get((cell.framework, cell.ids))
    return reason or next((why for (_, fits), why in SPECIAL.items() if fits(cell)), None)


SPECIAL: dict[tuple[str, Callable[[Cell], bool]], Reason] = {
    (
        "a direct write with `retries`, in every framework",
        lambda cell: cell.reentry == "tool-retry" and cell.depth == "direct" and cell.writes,
    ): "a write is never retried: `retries` is refused where the tool is defined",
    (
        "pause and ids: empty, in ag2",
        lambda cell: (cell.framework, cell.reentry, cell.ids) == ("ag2", "pause", "empty"),
    ): "it pairs results with calls by id: of two calls without one it shows one result",
    (
        "run retry and a confirmed write, in agno and agno team",
        lambda cell: (
            cell.framework.startswith("agno")
            and (cell.reentry, cell.effects) == ("run-retry", "confirm")
        ),
    ): "a pause ends the making of the run: what follows goes on from the pause",
}
"""Single cells that there are not, with what they are and the reason."""


async def within(seconds: float, work: Any) -> Any:
    """What `work` gives; it must end in time."""
    return await asyncio.wait_for(work, seconds)


def text_of(value: Any) -> str:
    """A result as the model reads it."""
    return value if isinstance(value, str) else json.dumps(value)
