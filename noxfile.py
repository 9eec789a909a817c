"""The project's sessions, each in an environment of its own."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_external_run = True
nox.options.sessions = ["lint", "types", "tests", "contract", "plugin", "wheel"]

ROOT = Path(__file__).parent
PLUGIN = ROOT / "tests" / "fixtures" / "demo_integration"
KIT = (
    "integrations/kit.py",
    "integrations/_kit_support.py",
    "fakes/hooks.py",
    "fakes/approval.py",
)
"""What a plug-in's author copies into their own `tests/` package."""
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
FRAMEWORKS = sorted(PROJECT["project"]["entry-points"]["agent_adapter.integrations"])
CLIENTS = "anthropic,google-genai,openai"
"""The extras of the clients that the plain loop drives."""
GROUPS = nox.project.dependency_groups(PROJECT, "test")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format and layers."""
    session.install("-e", ".", "ruff", "import-linter")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", "--no-cache")


@nox.session
def types(session: nox.Session) -> None:
    """Check types strictly, with the frameworks installed."""
    everything = nox.project.dependency_groups(PROJECT, "dev", "agentdojo")
    extras = ",".join(sorted(PROJECT["project"]["optional-dependencies"]))
    session.install("-e", f".[{extras}]", *everything)
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """Run what needs no framework, with no framework installed."""
    session.install("-e", ".[ws]", *GROUPS)
    session.run("python", "-m", "pytest", "-m", "not contract", *session.posargs)


@nox.session
@nox.parametrize("framework", FRAMEWORKS)
def contract(session: nox.Session, framework: str) -> None:
    """Run one integration's contract with only its own framework installed."""
    extra = CLIENTS if framework == "generic" else framework.replace("_", "-")
    session.install("-e", f".[{extra}]", *GROUPS)
    paths = sorted(str(path) for path in ROOT.glob(f"tests/integrations/test_{framework}_*.py"))
    if not paths:
        session.error(f"no test file tests/integrations/test_{framework}_*.py")
    session.run("python", "-m", "pytest", "-m", "contract", *paths, *session.posargs)


@nox.session
@nox.parametrize("framework", FRAMEWORKS)
def lowest(session: nox.Session, framework: str) -> None:
    """Run one integration's contract with the oldest release of its framework that is stated."""
    extra = CLIENTS if framework == "generic" else framework.replace("_", "-")
    stated = PROJECT["project"]["optional-dependencies"]
    ranges = [text for name in extra.split(",") for text in stated[name]]
    pins = [re.sub(r">=([^,]+).*", r"==\1", text) for text in ranges]
    session.install("-e", f".[{extra}]", *pins, *GROUPS)
    paths = sorted(str(path) for path in ROOT.glob(f"tests/integrations/test_{framework}_*.py"))
    session.run("python", "-m", "pytest", "-m", "contract", *paths, *session.posargs)


@nox.session
def plugin(session: nox.Session) -> None:
    """Build the demo plug-in, install it as its users would, and run its own tests."""
    dist = Path(session.create_tmp()) / "dist"
    _build(session, ROOT, dist)
    _build(session, PLUGIN, dist)
    session.install(*GROUPS, *(str(wheel) for wheel in sorted(dist.glob("*.whl"))))
    project = Path(tempfile.mkdtemp(prefix="demo-integration-"))
    try:
        # Outside the source tree, so that only what was installed can be imported.
        _vendor(project)
        session.chdir(project)
        session.run("python", "-m", "pytest", "-p", "no:cacheprovider", *session.posargs)
    finally:
        session.chdir(ROOT)
        shutil.rmtree(project)


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the wheel, install it in a clean environment, import it and run its command."""
    dist = Path(session.create_tmp()) / "dist"
    _build(session, ROOT, dist)
    session.install(*(str(path) for path in dist.glob("*.whl")))
    session.chdir(dist)
    session.run("python", "-c", "import agent_adapter as aa; print(aa.__version__, aa.__file__)")
    session.run("agent-adapter", "--help")
    session.run("agent-adapter", "integrations")


def _vendor(project: Path) -> None:
    """Lay a plug-in's project out as its author has it: its tests, the kit beside them."""
    shutil.copy(PLUGIN / "pyproject.toml", project)
    shutil.copytree(PLUGIN / "tests", project / "tests")
    for name in KIT:
        copy = project / "tests" / name
        copy.parent.mkdir(exist_ok=True)
        (copy.parent / "__init__.py").touch()
        shutil.copy(ROOT / "tests" / name, copy)


def _build(session: nox.Session, source: Path, dist: Path) -> None:
    """Build the wheel of one project into a folder."""
    session.install("build", "hatchling")
    session.run("python", "-m", "build", "--wheel", "--outdir", str(dist), str(source), silent=True)
