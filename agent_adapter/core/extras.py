"""Optional packages: the requirements of an extra, and the command that installs it.

The ranges are stated once, in the project file, and read back from the installed metadata.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from functools import cache
from importlib import metadata

from packaging.requirements import Requirement

from agent_adapter.core.errors import IntegrationError, MissingDependency

DISTRIBUTION = "agent-adapter"
"""The name of this library as it is installed."""


def requirement_of(extra: str) -> list[Requirement]:
    """The packages and ranges of `extra`; `IntegrationError` for an extra that does not exist."""
    return [Requirement(text) for text in _stated(extra)]


def pip_command(extra: str) -> str:
    """The command that installs `extra`."""
    return f'pip install "{DISTRIBUTION}[{extra}]"'


def check_installed(extra: str, roots: Iterable[str] = ()) -> None:
    """Check that the packages of `extra` are installed, in range, and that `roots` can be imported.

    Raises:
        MissingDependency: a package or a root is missing; the message has the pip command.
        IntegrationError: an installed version is outside the range; the message has both.
    """
    for requirement in requirement_of(extra):
        try:
            installed = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            raise MissingDependency(
                f"{requirement.name} is not installed; run: {pip_command(extra)}"
            ) from None
        if not requirement.specifier.contains(installed, prereleases=True):
            raise IntegrationError(
                f"{requirement.name} {installed} is installed, but {DISTRIBUTION} works with "
                f"{requirement.name}{requirement.specifier}; run: {pip_command(extra)}"
            )
    for root in roots:
        if not _importable(root):
            raise MissingDependency(f"{root} cannot be imported; run: {pip_command(extra)}")


@cache
def _stated(extra: str) -> tuple[str, ...]:
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        raise IntegrationError(
            f"{DISTRIBUTION} is not installed, only importable, so its extras cannot be read; "
            "install it, for example with `pip install -e .`"
        ) from None
    extras = sorted(distribution.metadata.get_all("Provides-Extra") or ())
    if extra not in extras:
        raise IntegrationError(
            f"{DISTRIBUTION} has no extra {extra!r}; there are {', '.join(extras) or 'none'}"
        )
    return tuple(_of_extra(distribution.requires or (), extra))


def _of_extra(requirements: Iterable[str], extra: str) -> Iterable[str]:
    """The requirements that `extra` adds, without their markers."""
    for text in requirements:
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or marker.evaluate({"extra": ""}):
            continue
        if marker.evaluate({"extra": extra}):
            requirement.marker = None
            yield str(requirement)


def _importable(root: str) -> bool:
    try:
        return importlib.util.find_spec(root) is not None
    except (ImportError, ValueError):
        return False
