"""`import agent_adapter` is cheap: what is heavy or optional is loaded when it is first used."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import agent_adapter
from agent_adapter.core import errors

HEAVY = ["pydantic", "sqlalchemy", "alembic", "typer", "rich", "jsonschema", "opentelemetry"]
FRAMEWORKS = ["ag2", "agno", "langchain", "openai", "mcp", "starlette", "fastapi", "httpx"]


def _fresh(code: str) -> str:
    """What `code` prints in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _loaded(code: str) -> set[str]:
    listing = "import sys, json; print(json.dumps(sorted({n.split('.')[0] for n in sys.modules})))"
    return set(json.loads(_fresh(f"{code}\n{listing}")))


def test_import_loads_nothing_heavy() -> None:
    """Neither a framework nor a database, a web package or Pydantic."""
    assert _loaded("import agent_adapter").isdisjoint([*HEAVY, *FRAMEWORKS])


def test_defining_a_tool_loads_no_framework_and_no_database() -> None:
    """Tools need Pydantic and nothing that is optional."""
    code = "import agent_adapter as aa\n@aa.tool\ndef f(x: int) -> int:\n    'Does.'\n    return x"
    assert _loaded(code).isdisjoint([*FRAMEWORKS, "sqlalchemy", "alembic", "typer", "rich"])


@pytest.mark.parametrize("name", sorted(agent_adapter.__all__))
def test_name_resolves_alone(name: str) -> None:
    """Every name can be the first one that is used."""
    _fresh(f"import agent_adapter; agent_adapter.{name}")


def test_unknown_name_is_an_attribute_error() -> None:
    """A wrong name fails as it does in any module."""
    with pytest.raises(AttributeError, match="module 'agent_adapter' has no attribute 'nope'"):
        agent_adapter.nope  # noqa: B018  # reading it is the case


def test_type_checkers_refuse_a_name_that_is_not_there(tmp_path: Path) -> None:
    """A misspelled name is an error before the program runs, and a real one has its type."""
    pytest.importorskip("mypy")
    (tmp_path / "uses.py").write_text(
        "import agent_adapter as aa\n"
        "store: aa.Store = aa.open_store('memory://')\n"
        "port: aa.ApprovalPort = aa.CallbackApproval(lambda request: True)\n"
        "aa.Exekutor()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), str(tmp_path / "uses.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    (wrong,) = [line for line in done.stdout.splitlines() if "uses.py" in line]
    assert 'uses.py:4: error: Module has no attribute "Exekutor"' in wrong


def test_every_error_can_be_imported_from_the_package() -> None:
    """What can be raised can be caught by its short name."""
    assert set(errors.__all__) <= set(agent_adapter.__all__)


def test_names_are_listed_before_they_are_loaded() -> None:
    """`dir` shows everything."""
    assert set(agent_adapter.__all__) <= set(dir(agent_adapter))


def test_type_checkers_see_the_same_names() -> None:
    """The imports for type checkers and the table of homes say the same."""
    tree = ast.parse(Path(agent_adapter.__file__).read_text())
    seen = {
        alias.name: node.module
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == agent_adapter._HOMES
    assert list(agent_adapter._HOMES) == sorted(agent_adapter._HOMES)
