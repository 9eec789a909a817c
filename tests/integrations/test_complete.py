"""What every integration consists of; each failure names the parts that one lacks."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agent_adapter.integrations.base import IntegrationBase, ToolImporter
from agent_adapter.integrations.discovery import available_integrations

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "agent_adapter" / "integrations"
_PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT: dict[str, Any] = _PYPROJECT["project"]
TOOLS: dict[str, Any] = _PYPROJECT["tool"]

WITHOUT_IMPORT = {
    "generic": "its tools are ours",
    "google_genai": "a declaration has no code, and its callables are plain functions",
}
"""Integrations without `import_tool`, and why."""

WITHOUT_EXTRA = {"generic": "it needs no package; its clients bring their own"}
"""Integrations without an extra, and why."""

SHARED = {
    "base",
    "blocks",
    "discovery",
    "imports",
    "installed",
    "langchain_core",
    "part_text",
    "quarantine",
    "requirements",
    "wires",
}
"""Modules and folders that integrations share."""


def names() -> list[str]:
    """Every module or folder that is an integration, and every entry point."""
    modules = {module.name for module in pkgutil.iter_modules([str(PACKAGE)])} - SHARED
    return sorted(modules | set(PROJECT["entry-points"]["agent_adapter.integrations"]))


def _is_module(name: str) -> bool:
    """Whether `name` is one file or one folder, and not both."""
    return (PACKAGE / f"{name}.py").is_file() != (PACKAGE / name / "__init__.py").is_file()


def _says(path: str, text: str) -> bool:
    return re.search(text, (ROOT / path).read_text(), re.IGNORECASE) is not None


def lacking(name: str) -> list[str]:
    """The parts that the integration `name` lacks."""
    files = {
        "contract test": ROOT / "tests" / "integrations" / f"test_{name}_contract.py",
        "example": ROOT / "examples" / f"{name}_tools.py",
        "page": ROOT / "docs" / "integrations" / f"{name}.md",
    }
    missing = [part for part, path in files.items() if not path.is_file()]
    entries = PROJECT["entry-points"]["agent_adapter.integrations"]
    claims = {
        "module or folder": _is_module(name),
        "extra": name.replace("_", "-") in PROJECT["optional-dependencies"]
        or name in WITHOUT_EXTRA,
        "entry point": entries.get(name) == f"agent_adapter.integrations.{name}:INTEGRATION",
        "line of the contract that keeps integrations apart": f"agent_adapter.integrations.{name}"
        in _apart(),
        "run of the example": _says("tests/examples/test_examples.py", f'"{name}_tools.py"'),
        "line of the page's navigation": _says("mkdocs.yml", f"integrations/{name}.md"),
        "change note": _noted(name),
    }
    missing += [part for part, there in claims.items() if not there]
    integration = available_integrations(refresh=True).get(name)
    if integration is None:
        return [*missing, "discovery"]
    if not isinstance(integration, ToolImporter) and name not in WITHOUT_IMPORT:
        missing.append("import_tool, or a reason in WITHOUT_IMPORT")
    return missing


def _apart() -> list[str]:
    """The modules of the import contract "No integration imports another"."""
    contracts = TOOLS["importlinter"]["contracts"]
    [found] = [contract for contract in contracts if contract["id"] == "integrations"]
    modules: list[str] = found["modules"]
    return modules


def _noted(name: str) -> bool:
    notes = [ROOT / "CHANGELOG.md", *(ROOT / "changelog.d").glob("*.*.md")]
    spoken = _versions().TITLES.get(name, name).replace(" ", r"\s")
    return any(re.search(rf"\b{spoken}\b", note.read_text(), re.IGNORECASE) for note in notes)


@pytest.mark.parametrize("name", names())
def test_integration_lacks_nothing(name: str) -> None:
    """Module or folder, extra, entry point, contract test, example, page, change note, importer."""
    assert lacking(name) == []


def test_lacking_names_what_is_not_there() -> None:
    """An integration of which there is nothing lacks everything."""
    assert {"module or folder", "extra", "entry point", "example", "page", "discovery"} <= set(
        lacking("nothing-of-the-kind")
    )


@pytest.mark.parametrize("name", sorted(WITHOUT_IMPORT))
def test_reason_against_an_importer_is_needed(name: str) -> None:
    """A reason goes when the importer comes."""
    assert not isinstance(available_integrations()[name], ToolImporter)


@pytest.mark.parametrize("name", names())
def test_integration_names_itself(name: str) -> None:
    """Name, extra and what must be importable."""
    integration: Any = available_integrations()[name]
    assert isinstance(integration, IntegrationBase)
    assert integration.name == name
    assert integration.extra == (None if name in WITHOUT_EXTRA else name.replace("_", "-"))
    assert bool(integration.requires) == (name not in WITHOUT_EXTRA)


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_module_is_small(path: Path) -> None:
    """No module of an integration passes 320 lines."""
    assert len(path.read_text().splitlines()) <= 320


def _versions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("versions", ROOT / "tools" / "versions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_shows_the_versions_of_the_extras() -> None:
    """The table is what `python tools/versions.py` prints."""
    assert _versions().table(PROJECT) in (ROOT / "README.md").read_text()
