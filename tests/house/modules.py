"""The package's modules, parsed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "agent_adapter"


@cache
def modules() -> dict[str, ast.Module]:
    """Each module of the package under its dotted name."""
    return {_name(path): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def statements(tree: ast.AST) -> int:
    """How many statements a tree has; docstrings and comments are none."""
    return sum(isinstance(node, ast.stmt) and not _is_text(node) for node in ast.walk(tree))


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def imports(name: str) -> Iterator[str]:
    """The modules of the package that a module imports, for type checkers and inside functions too.

    A package's own `__init__` counts only if a name is taken from it.
    """
    known = modules()
    for node in ast.walk(known[name]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in known else node.module
