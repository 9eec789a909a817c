"""The page of what is recorded names every table and every kind of ledger entry."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import agent_adapter
from agent_adapter.store.tables import TABLES

PACKAGE = Path(agent_adapter.__file__).parent
PAGE = PACKAGE.parent / "docs" / "recorded.md"


def _kinds() -> Iterator[str]:
    """The texts given as the kind of an entry, wherever one is appended."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or len(node.args) < 3:
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            if name in ("append", "_write", "baseline"):
                given = node.args[2:4]
                given += [
                    side for each in given if isinstance(each, ast.IfExp) for side in _sides(each)
                ]
                yield from (
                    each.value
                    for each in given
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                )


def _sides(chosen: ast.IfExp) -> tuple[ast.expr, ast.expr]:
    return chosen.body, chosen.orelse


def test_every_table_is_on_the_page() -> None:
    """Each in the first column of a row."""
    text = PAGE.read_text(encoding="utf-8")
    assert [table.name for table in TABLES if f"\n| `{table.name}`" not in text] == []


def test_every_kind_of_entry_is_on_the_page() -> None:
    """Each as code."""
    text = PAGE.read_text(encoding="utf-8")
    kinds = set(_kinds())
    assert len(kinds) > 20
    assert sorted(kind for kind in kinds if f"`{kind}`" not in text) == []
