"""Modules import each other in one direction."""

from __future__ import annotations

from tests.house.modules import imports, modules


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The groups of nodes that reach each other (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for target in sorted(edges[node]):
            if target not in order:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], order[target])
        if low[node] == order[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in edges:
        if node not in order:
            visit(node)
    return sorted(found)


def test_a_circle_is_found() -> None:
    """The search reports what reaches itself, and nothing else."""
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}
    assert circles(edges) == [["b", "c"]]


def test_modules_import_in_one_direction() -> None:
    """No two modules need each other, not even for their types."""
    edges = {name: set(imports(name)) - {name} for name in modules()}
    assert circles(edges) == []
