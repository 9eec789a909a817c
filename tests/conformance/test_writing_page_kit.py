"""The kit as a plug-in's author uses it."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

from agent_adapter.exec.executor import Executor
from tests.integrations import kit
from tests.integrations.kit import contract_tests
from tests.integrations.test_demo_contract import DemoHarness

ROOT = Path(kit.__file__).parent.parent


def test_a_mark_goes_on_everything_but_the_fixture() -> None:
    """`fixture, *tests = contract_tests(…)`: each of the eight tests can take a mark."""
    _fixture, *tests = contract_tests(DemoHarness)
    marked = [pytest.mark.contract(test) for test in tests]
    assert [test.__name__[:7] for test in marked] == [f"test_c{n}" for n in range(1, 9)]


def test_another_runner_is_one_argument() -> None:
    """`runner_factory=Executor` gives the same checks over the real executor."""
    fixture, *tests = contract_tests(DemoHarness, runner_factory=Executor)
    assert len(tests) == 8
    assert fixture.__name__ not in {item.__name__ for item in contract_tests(DemoHarness)}


@pytest.mark.parametrize(
    "path",
    [
        "integrations/kit.py",
        "integrations/_kit_support.py",
        "fakes/hooks.py",
        "fakes/approval.py",
    ],
)
def test_a_copied_file_needs_only_the_others(path: str) -> None:
    """Each of the four files imports the library, pytest, anyio, and the other files."""
    allowed = ("agent_adapter", "pytest", "anyio", "pydantic", "..fakes", ".", "__future__")
    foreign = []
    for line in (ROOT / path).read_text("utf-8").splitlines():
        if line.startswith(("from ", "import ")):
            module = line.split()[1]
            known = module.startswith(allowed) or _is_standard(module)
            foreign += [] if known else [module]
    assert foreign == []


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def test_the_harness_lists_its_optional_members() -> None:
    """The docstring of `Harness` says what each optional member does."""
    text = inspect.getdoc(kit.Harness) or ""
    members = (
        "native_call_ids cancels_tool approval_port() native_uses_port port_asks "
        "export_all(registry, executor) __aenter__ __aexit__"
    )
    assert [m for m in members.split(" ") if m and m not in text] == []
