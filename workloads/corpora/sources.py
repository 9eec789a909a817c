"""One tool of a corpus, and the commands that fetch a corpus into a folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

INSTALL_SECONDS = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTool:
    """A tool as its author published it, and calls of it that its author calls right."""

    corpus: str
    name: str
    description: str
    schema: Mapping[str, Any]
    number: int = 1
    calls: tuple[Mapping[str, Any], ...] = field(default=())

    @property
    def place(self) -> str:
        """Where it comes from, for a report; `number` counts the tools of one name."""
        return f"{self.corpus}/{self.name}#{self.number}"


def base_python() -> str:
    """The Python that the environment was made from; it has pip."""
    found = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}"
    return str(found) if found.exists() else sys.executable


def run(command: Sequence[str], folder: Path) -> None:
    """Run `command` in `folder`; raises `RuntimeError` with the end of what it printed."""
    done = subprocess.run(  # noqa: S603  # fixed commands of this package
        command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS
    )
    if done.returncode:
        said = (done.stdout + done.stderr)[-800:].strip()
        raise RuntimeError(f"{' '.join(command[:4])} … failed: {said}")
