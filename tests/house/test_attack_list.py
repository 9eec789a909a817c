"""Every attack of the threat model has a test of its number, through each framework named there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "threat-model.md"
LAST = 37

THROUGH = {
    "executor": "tests/exec/test_*.py",
    "registry": "tests/core/test_*.py",
    "command line": "tests/cli/test_*.py",
    "console": "tests/console/test_*.py",
    "browser": "tests/browser/test_*.py",
    "network": "tests/network/test_*.py",
    "AG2": "tests/integrations/test_ag2_*.py",
    "Agno": "tests/integrations/test_agno_*.py",
    "AutoGen": "tests/integrations/test_autogen_*.py",
    "LangChain": "tests/integrations/test_langchain_*.py",
    "LangGraph": "tests/integrations/test_langgraph_*.py",
    "MCP": "tests/integrations/test_mcp_*.py",
    "OpenAI, Anthropic, Gemini": "tests/integrations/test_provider_*.py",
    "generic loop": "tests/integrations/test_generic_*.py",
}
"""Where the tests of each place of the page are."""


def attacks() -> dict[str, list[str]]:
    """The places through which each attack of the page is tried."""
    rows = re.findall(r"^\| (A\d+) \| [^|]+ \| ([^|]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len({number for number, _ in rows}) == len(rows), "an attack is listed twice"
    return {number: [item.strip() for item in places.split(";")] for number, places in rows}


@cache
def numbers_in(pattern: str) -> frozenset[str]:
    """The attacks that docstrings of tests in these files name."""
    found: set[str] = set()
    for file in ROOT.glob(pattern):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _is_test(node.name):
                found.update(re.findall(r"\bA\d+\b", ast.get_docstring(node) or ""))
    return frozenset(found)


def _is_test(name: str) -> bool:
    return name.startswith("test_")


def test_the_list_is_whole() -> None:
    """It names A1 to A37, each once: it cannot become shorter."""
    assert list(attacks()) == [f"A{n}" for n in range(1, LAST + 1)]


@pytest.mark.parametrize("number", [f"A{n}" for n in range(1, LAST + 1)])
def test_an_attack_is_tried_through_each_of_its_places(number: str) -> None:
    """A test whose docstring has its number exists for the executor or hub and each framework."""
    places = attacks()[number]
    unknown = [place for place in places if place not in THROUGH]
    assert not unknown, f"{number}: no tests are known for {unknown}"
    missing = [place for place in places if number not in numbers_in(THROUGH[place])]
    assert not missing, f"{number}: no test's docstring names it in {missing}"


def test_the_tests_that_the_page_names_exist() -> None:
    """Each row of the threats names a test file of this repository."""
    named = re.findall(r"`(tests/[\w/.]+\.py)`", PAGE.read_text("utf-8"))
    assert named and [name for name in named if not (ROOT / name).exists()] == []
