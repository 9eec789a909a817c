"""Extras are read from the installed metadata, and what is missing comes with its command."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agent_adapter.core import extras
from agent_adapter.core.errors import IntegrationError, MissingDependency
from agent_adapter.core.extras import check_installed, pip_command, requirement_of

ROOT = Path(__file__).parents[2]
STATED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def _canonical(requirement: Requirement) -> tuple[str, str]:
    return canonicalize_name(requirement.name), str(requirement.specifier)


@pytest.mark.parametrize("extra", sorted(STATED))
def test_ranges_are_those_of_the_project_file(extra: str) -> None:
    """Nothing states a range a second time."""
    stated = {_canonical(Requirement(text)) for text in STATED[extra]}
    assert {_canonical(requirement) for requirement in requirement_of(extra)} == stated


def test_unknown_extra_lists_what_exists() -> None:
    """A wrong extra is answered with the extras that there are."""
    with pytest.raises(IntegrationError, match="agent-adapter has no extra 'nope'; there are ag2"):
        check_installed("nope")


def test_missing_package_comes_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to run."""
    monkeypatch.setattr(extras, "_stated", lambda extra: ("not-there-at-all>=1",))
    with pytest.raises(MissingDependency) as caught:
        check_installed("ag2")
    assert str(caught.value) == (
        'not-there-at-all is not installed; run: pip install "agent-adapter[ag2]"'
    )


def test_version_out_of_range_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed version and the range are in the message."""
    monkeypatch.setattr(extras, "_stated", lambda extra: ("pydantic>=99",))
    installed = metadata.version("pydantic")
    with pytest.raises(IntegrationError) as caught:
        check_installed("ag2")
    assert str(caught.value) == (
        f"pydantic {installed} is installed, but agent-adapter works with pydantic>=99; "
        f"run: {pip_command('ag2')}"
    )


@pytest.mark.parametrize("root", ["not_there_at_all", "not_there.at_all", "json.not_there"])
def test_root_that_cannot_be_imported_is_missing(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package without its module is as good as missing."""
    monkeypatch.setattr(extras, "_stated", lambda extra: ("pydantic>=2",))
    check_installed("ag2", ("pydantic", "json.decoder"))
    with pytest.raises(MissingDependency, match=f"{root} cannot be imported; run: pip install"):
        check_installed("ag2", (root,))
