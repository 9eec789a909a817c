"""One name, one meaning; a standard term if the field has one."""

from __future__ import annotations

import ast
from collections import defaultdict

import pytest

from tests.house.modules import modules

REPLACED = {
    "Book": "InFlightCalls",
    "AROUND": "current_scope",
    "Heap": "MemoryTable",
    "Known": "ChannelSnapshot",
    "Draft": "ChannelTransaction",
    "Desk": "HubContext",
    "Torn": "nothing: an operation that refuses raises",
    "RollbackRequired": "nothing: an operation that refuses raises",
    "Switchboard": "ChannelService",
    "turn_of": "build_turn",
    "heed": "apply_decision",
    "given": "provided_decision",
    "why": "confirm_reason",
    "Door": "Authenticator",
    "Rates": "TokenBucket",
    "offer_all": "nothing: it had no caller",
    "_BEAT_SECONDS": "nothing: it had no reader",
}
"""Names that read as riddles, and what the package says instead."""

REPLACED_MODULES = {
    "around": "scope",
    "book": "in_flight",
    "claims": "turn_types",
    "collecting": "generators",
    "draft": "transaction",
    "epochs": "owners",
    "heap": "memory",
    "hub_time": "scheduler",
    "insight": "queries",
    "known": "snapshot",
    "parts": "validate_options",
    "plainness": "json_types",
    "price": "call_attributes",
    "rounds": "turn_runner",
    "seeing": "views",
    "survey": "installed",
    "switchboard": "service",
    "written": "json_values",
}

SAME_NAME = {"Turn": "to be renamed in the wires"}
"""Public classes that share a name, and why they may."""


def _defined(tree: ast.Module) -> set[str]:
    """The classes, functions and constants of a module, methods included."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize("name", sorted(REPLACED))
def test_a_replaced_name_is_gone(name: str) -> None:
    """No class, function or variable has a name that a clearer one replaced."""
    where = [module for module, tree in modules().items() if name in _defined(tree)]
    assert where == [], f"{name} is now {REPLACED[name]}"


@pytest.mark.parametrize("name", sorted(REPLACED_MODULES))
def test_a_replaced_module_is_gone(name: str) -> None:
    """No module has a name that a clearer one replaced."""
    where = [module for module in modules() if module.rpartition(".")[2] == name]
    assert where == [], f"{name} is now {REPLACED_MODULES[name]}"


def test_a_process_that_owns_rows_is_no_epoch() -> None:
    """`owner_id` names the process; an epoch is a time."""
    found = {
        f"{module}.{name}"
        for module, tree in modules().items()
        if "migrations" not in module
        for name in _defined(tree)
        if "epoch" in name.lower()
    }
    assert found == set()


def test_public_classes_have_names_of_their_own() -> None:
    """A class's name has one meaning in the whole package."""
    homes: dict[str, list[str]] = defaultdict(list)
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module)
    assert {name for name, where in homes.items() if len(where) > 1} == SAME_NAME.keys()
