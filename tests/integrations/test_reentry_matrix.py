"""Every way in which a call comes again, in every framework: effects, questions, ledger, text."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("ag2")
pytest.importorskip("agno")
pytest.importorskip("anthropic")
pytest.importorskip("autogen_agentchat")
pytest.importorskip("google.genai")
pytest.importorskip("langchain")
pytest.importorskip("langgraph")
pytest.importorskip("mcp")
pytest.importorskip("openai")

from ..sampling import sample
from . import _reentry_agents as agents
from . import _reentry_graphs as graphs
from . import _reentry_providers as providers
from ._reentry import DEPTHS, EFFECTS, IDS, REENTRIES, Cell, Driver, World, cannot, within
from ._reentry_rules import SCENES, expected

pytestmark = [pytest.mark.anyio, pytest.mark.contract]

DRIVERS: dict[str, Callable[[World], Driver]] = {
    "langgraph": graphs.LangGraphDriver,
    "langchain": graphs.LangChainDriver,
    "agno": agents.AgnoDriver,
    "agno team": agents.AgnoTeamDriver,
    "ag2": agents.Ag2Driver,
    "autogen": agents.AutoGenDriver,
    "mcp": agents.McpDriver,
    "openai chat": providers.ChatDriver,
    "openai responses": providers.ResponsesDriver,
    "anthropic": providers.AnthropicDriver,
    "gemini": providers.GeminiDriver,
    "executor": providers.ExecutorDriver,
    "channel turn": providers.ChannelDriver,
}

CELLS = [
    Cell(framework=framework, reentry=reentry, depth=depth, effects=effects, ids=ids)
    for framework, reentry, depth, effects, ids in itertools.product(
        DRIVERS, REENTRIES, DEPTHS, EFFECTS, IDS
    )
]
POSSIBLE = [cell for cell in CELLS if cannot(cell) is None]
TAKEN = random.Random(24).sample(POSSIBLE, sample("cells", quick=400, full=len(POSSIBLE)))


@pytest.mark.parametrize("cell", TAKEN, ids=str)
async def test_cell(cell: Cell) -> None:
    """What the rules say of this cell."""
    world = World(cell)
    driver = DRIVERS[cell.framework](world)
    await driver.open()
    try:
        await within(60, SCENES[cell.reentry](world, driver))
        await _check(cell, world, driver)
    finally:
        await driver.close()


async def _check(cell: Cell, world: World, driver: Driver) -> None:
    wanted = expected(cell, abandons=driver.abandons)
    rows = await world.rows()
    asked = await world.asked()
    seen: dict[str, Any] = {"acted": world.acted, "asked": asked, "rows": len(rows)}
    seen |= {"waiting": driver.waiting, "read": driver.read}
    assert wanted.acted[0] <= world.acted <= wanted.acted[1], seen
    assert asked == wanted.asked, seen
    assert wanted.rows[0] <= len(rows) <= wanted.rows[1], seen
    last = "a person is asked" if driver.waiting else driver.read[-1]
    assert wanted.read in last, seen
