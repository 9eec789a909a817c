"""The project around the code: what its files promise each other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import agent_adapter

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
WITHOUT_EXTRA = {"generic": "openai"}
"""Integrations that need no package of their own, and an extra that their page names."""
PACKAGE = sorted((ROOT / "agent_adapter").rglob("*.py"))


def _integrations() -> list[str]:
    return sorted(PROJECT["project"]["entry-points"]["agent_adapter.integrations"])


def test_public_names_are_the_listed_ones() -> None:
    """A public name comes or goes only together with the list of public names."""
    listed = (ROOT / "docs" / "public-names.txt").read_text().split()
    assert listed == sorted(agent_adapter.__all__)


@pytest.mark.parametrize("name", sorted(agent_adapter.__all__))
def test_public_name_resolves(name: str) -> None:
    """Every listed name is there."""
    assert getattr(agent_adapter, name) is not None


def test_version_is_the_distribution_s() -> None:
    """The version is stated once, in the project file."""
    assert agent_adapter.__version__ == PROJECT["project"]["version"]


@pytest.mark.parametrize("name", _integrations())
def test_integration_is_whole(name: str) -> None:
    """An integration has its module or folder, extra, entry point, test, example and page."""
    places = (f"{name}.py", f"{name}/__init__.py")
    [_] = [place for place in places if (ROOT / "agent_adapter/integrations" / place).is_file()]
    wanted = [
        f"tests/integrations/test_{name}_contract.py",
        f"examples/{name}_tools.py",
        f"docs/integrations/{name}.md",
    ]
    assert [path for path in wanted if not (ROOT / path).is_file()] == []
    if name not in WITHOUT_EXTRA:
        assert name.replace("_", "-") in PROJECT["project"]["optional-dependencies"]


@pytest.mark.parametrize("name", _integrations())
def test_integration_page_has_the_headings(name: str) -> None:
    """Every integration's page has the same parts in the same order."""
    page = (ROOT / "docs" / "integrations" / f"{name}.md").read_text()
    headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert headings == [
        "Functions",
        "Wiring",
        "Approval",
        "Trust assumptions",
        "Calls and errors",
        "Files",
    ]
    extra = WITHOUT_EXTRA.get(name, name.replace("_", "-"))
    assert f'pip install "agent-adapter[{extra}]"' in page.split("## ")[0]
    assert "sequenceDiagram" in page


@pytest.mark.parametrize("extra", sorted(PROJECT["project"]["optional-dependencies"]))
def test_range_is_stated_once(extra: str) -> None:
    """A framework's range stands in the project file and in no module."""
    for requirement in PROJECT["project"]["optional-dependencies"][extra]:
        package, bounds = re.fullmatch(r"([A-Za-z0-9_.-]+)(.+)", requirement).groups()  # type: ignore[union-attr]
        assert [path for path in PACKAGE if f"{package}{bounds}" in path.read_text()] == []


def test_ci_runs_the_readme_s_test_command_and_nothing_else() -> None:
    """What CI runs is what the README says."""
    script = ROOT / ".ci" / "run"
    lines = [line for line in script.read_text().splitlines() if line and line[0] != "#"]
    assert lines[-1] == "exec make test"
    assert all(line.startswith(("set ", "cd ", "exec ")) for line in lines)
    assert "make test" in (ROOT / "README.md").read_text()
    assert os.access(script, os.X_OK)


def test_make_without_a_target_shows_the_targets() -> None:
    """`make` alone lists what can be made."""
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    for target in ("setup", "demo", "test", "lint", "types", "bench", "docs", "agentdojo"):
        assert f"make {target} " in done.stdout


def test_contributing_fits_on_one_screen() -> None:
    """The guide for contributors is read because it is short."""
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 50


def test_licence_is_apache() -> None:
    """The licence file is the one that the project file names."""
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert "Version 2.0, January 2004" in (ROOT / "LICENSE").read_text()


def test_package_is_typed() -> None:
    """Type checkers of users see our types."""
    assert (ROOT / "agent_adapter" / "py.typed").exists()


def test_change_notes_have_known_kinds() -> None:
    """Every change note ends up in the changelog."""
    kinds = {kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]}
    for note in (ROOT / "changelog.d").glob("*.md"):
        if note.name != "README.md":
            assert note.suffixes[-2].lstrip(".") in kinds, note.name


def test_a_public_name_without_a_docstring_fails_lint(tmp_path: Path) -> None:
    """The linter refuses a public function that promises nothing."""
    pytest.importorskip("ruff")
    module = tmp_path / "module.py"
    module.write_text('"""A module."""\n\n\ndef bare() -> None:\n    return None\n')
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--config", str(ROOT / "pyproject.toml"), module],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "D103" in done.stdout


def test_every_room_is_a_layer() -> None:
    """The layer check names every room of the package, and is told to refuse others."""
    contract = PROJECT["tool"]["importlinter"]["contracts"][0]
    package = ROOT / "agent_adapter"
    rooms = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    assert contract["exhaustive"] is True
    assert rooms <= set(re.findall(r"\w+", " ".join(contract["layers"])))


def test_an_upward_import_fails_lint(tmp_path: Path) -> None:
    """A lower room that imports a higher one breaks the build."""
    pytest.importorskip("importlinter")
    shutil.copytree(ROOT / "agent_adapter", tmp_path / "agent_adapter")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "agent_adapter" / "core" / "errors.py").open("a") as module:
        module.write("\nimport agent_adapter.store.base\n")
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [command, "--no-cache"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "agent_adapter.core.errors -> agent_adapter.store.base" in done.stdout
