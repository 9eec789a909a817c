"""`import agent_adapter` is cheap: what is heavy or optional is loaded when it is first used."""

from __future__ import annotations

import ast
import compileall
import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import agent_adapter
from agent_adapter.core import errors

LAZY = ["agent_adapter", "agent_adapter.network", "agent_adapter.console"]
HEAVY = ["pydantic", "sqlalchemy", "alembic", "typer", "rich", "jsonschema", "opentelemetry"]
FRAMEWORKS = ["ag2", "agno", "langchain", "openai", "mcp", "starlette", "fastapi", "httpx"]


def _stated(package: str) -> dict[str, str]:
    """The names that a package imports for type checkers, and their modules."""
    path = Path(str(importlib.import_module(package).__file__))
    (branch,) = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.If)]
    return {
        str(alias.asname): str(node.module)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


HOMES = _stated("agent_adapter")


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


@pytest.mark.parametrize("name", sorted({home: name for name, home in HOMES.items()}.values()))
def test_name_resolves_alone(name: str) -> None:
    """A name of each module can be the first one that a program uses."""
    _fresh(f"import agent_adapter; agent_adapter.{name}")


def test_unknown_name_is_an_attribute_error() -> None:
    """A wrong name fails as it does in any module."""
    with pytest.raises(AttributeError, match="module 'agent_adapter' has no attribute 'nope'"):
        agent_adapter.nope  # noqa: B018  # reading it is the case


@pytest.mark.slow
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
    raised = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type)
        and issubclass(value, Exception)
        and value.__module__ == errors.__name__
    }
    assert raised <= set(agent_adapter.__all__)


def test_names_are_listed_before_they_are_loaded() -> None:
    """`dir` shows everything."""
    assert set(agent_adapter.__all__) <= set(dir(agent_adapter))


def test_star_import_brings_the_public_names() -> None:
    """`from agent_adapter import *` binds each public name and nothing else."""
    names: dict[str, object] = {}
    exec("from agent_adapter import *", names)
    assert sorted(names.keys() - {"__builtins__"}) == agent_adapter.__all__


@pytest.mark.parametrize("package", LAZY)
def test_names_come_from_the_imports_for_type_checkers(package: str) -> None:
    """A lazy package has exactly the names, from the modules, that type checkers see."""
    module, stated = importlib.import_module(package), _stated(package)
    assert module.__all__ == sorted(stated)
    for name, home in stated.items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)


@pytest.mark.parametrize("package", LAZY)
def test_names_need_no_source(package: str, tmp_path: Path) -> None:
    """A program that ships compiled modules alone has the same names."""
    shutil.copytree(
        Path(agent_adapter.__file__).parent,
        tmp_path / "agent_adapter",
        ignore=shutil.ignore_patterns("__pycache__", "static", "templates"),
    )
    compileall.compile_dir(tmp_path, quiet=2, legacy=True)
    for source in tmp_path.rglob("*.py"):
        source.unlink()
    found = _fresh(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import {package} as package\n"
        "assert package.__spec__.origin.endswith('.pyc')\n"
        "print(*package.__all__)"
    )
    assert found.split() == importlib.import_module(package).__all__
