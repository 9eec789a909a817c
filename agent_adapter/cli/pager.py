"""Long output on a terminal: through `AGENT_ADAPTER_PAGER`, `PAGER` or `less`."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping

from agent_adapter.cli.streams import out

_VARIABLES = ("AGENT_ADAPTER_PAGER", "PAGER")
_LESS = "FRX"
"""How less behaves unless `LESS` says otherwise: leave if all fits, keep colours and the screen."""


def show(text: str, height: int) -> None:
    """Print `text`; with a pager if it has more lines than the terminal and a pager is there."""
    command = pager_of(os.environ)
    if command is None or text.count("\n") < height:
        out().write(text)
        out().flush()
    else:
        _page(command, text)


def pager_of(environ: Mapping[str, str]) -> list[str] | None:
    """The pager's command; `None` for none: an empty variable, `cat`, or no `less`."""
    for name in _VARIABLES:
        if name in environ:
            words = shlex.split(environ[name])
            return words if words and words[0] != "cat" and shutil.which(words[0]) else None
    found = shutil.which("less")
    return None if found is None else [found]


def _page(command: list[str], text: str) -> None:
    environ = {"LESS": _LESS, **os.environ}
    process = subprocess.Popen(  # noqa: S603  # the user's own pager
        command, stdin=subprocess.PIPE, stdout=out(), env=environ, text=True, encoding="utf-8"
    )
    # Who leaves the pager has read enough.
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        process.communicate(text)
    process.wait()
