"""Whether a bridge was given what it needs: a framework it can read, a port it can ask."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

from agent_adapter.core.errors import IntegrationError
from agent_adapter.core.extras import check_installed, pip_command, requirement_of


def check_surface(extra: str, root: str, reads: Iterable[tuple[str, tuple[str, ...]]]) -> None:
    """Nothing when the framework of `extra` is installed, in range and has every name in `reads`.

    `reads` are modules with dotted paths inside of them; a path also goes through mapping keys.

    Raises:
        MissingDependency: `root` cannot be imported.
        IntegrationError: the version is out of range or a name is missing; names all three.
    """
    check_installed(extra, (root,))
    for module, paths in reads:
        try:
            found = importlib.import_module(module)
        except ImportError as exc:
            raise IntegrationError(_lacks(extra, module)) from exc
        for path in paths:
            if not _has(found, path):
                raise IntegrationError(_lacks(extra, f"{module}.{path}"))


def require_port(approval: object) -> None:
    """Nothing for an `ApprovalPort`; `TypeError` with the fix for anything else."""
    if not callable(getattr(approval, "request", None)):
        raise TypeError(
            f"an ApprovalPort is needed (it has `async request(request)`), not "
            f"{type(approval).__name__}; wrap a reviewer function in CallbackApproval(...)"
        )


def _has(owner: Any, path: str) -> bool:
    for part in path.split("."):
        if isinstance(owner, Mapping):
            if part not in owner:
                return False
            owner = owner[part]
        elif not hasattr(owner, part):
            return False
        else:
            owner = getattr(owner, part)
    return True


def _lacks(extra: str, name: str) -> str:
    wanted = ", ".join(str(requirement) for requirement in requirement_of(extra))
    return (
        f"{extra} {version(extra)} has no {name}, which the bridge reads (supported: {wanted}); "
        f"run: {pip_command(extra)}"
    )
