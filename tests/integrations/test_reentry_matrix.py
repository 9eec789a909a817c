"""Every way in which a call comes again, in every framework: effects, questions, ledger, text."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
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
from ._reentry import (
    CANNOT,
    DEPTHS,
    EFFECTS,
    IDS,
    NO_ID,
    REENTRIES,
    SPECIAL,
    Cell,
    Driver,
    World,
    cannot,
    within,
)
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


def table() -> str:
    """What the frameworks cannot offer, as the page on calls prints it."""
    reasons = CANNOT | NO_ID
    rows: dict[tuple[str, str], list[str]] = {}
    for (framework, what), reason in reasons.items():
        title = f"ids: {what}" if (framework, what) in NO_ID else what.replace("-", " ")
        rows.setdefault((title, reason), []).append(framework)
    lines = ["| what | not in | because |", "|---|---|---|"]
    lines += [f"| {what} | {', '.join(who)} | {why} |" for (what, why), who in rows.items()]
    return "\n".join(lines) + "\n"


def test_the_page_says_what_is_left_out() -> None:
    """Nothing is skipped silently: each cell that is left out has its reason on the page."""
    page = Path(__file__).parents[2] / "docs" / "calls.md"
    assert table() in page.read_text()
    for (what, _), why in SPECIAL.items():
        assert f"* {what}: {why}" in page.read_text()
    assert all(cannot(cell) for cell in CELLS if cell not in POSSIBLE)
