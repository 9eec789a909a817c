"""Where a command prints: stdout has its output only, whatever the code of a target prints."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO

_STDOUT = 1
_STDERR = 2


class _Reserved:
    """Stdout kept for the command; everybody else who writes there reaches stderr."""

    def __init__(self) -> None:
        self.before = sys.stdout
        self.results: TextIO = sys.stdout
        self._saved: int | None = None
        own = sys.__stdout__
        with contextlib.suppress(OSError, ValueError):
            if own is not None and own is self.before and own.fileno() == _STDOUT:
                self._take_descriptor()
        sys.stdout = sys.stderr

    def _take_descriptor(self) -> None:
        # A target may write to the descriptor itself, or start programs that do.
        self.before.flush()
        saved = os.dup(_STDOUT)
        os.dup2(_STDERR, _STDOUT)
        self._saved = saved
        self.results = os.fdopen(
            saved, "w", encoding=self.before.encoding, errors=self.before.errors, buffering=1
        )

    def release(self) -> None:
        """Give stdout back."""
        self.results.flush()
        sys.stdout = self.before
        if self._saved is not None:
            os.dup2(self._saved, _STDOUT)
            self.results.close()


_reserved: _Reserved | None = None


def reserve_stdout() -> None:
    """From now on only `out()` reaches stdout; what a target prints goes to stderr.

    It stays so until the process ends: a target may print from threads and when Python exits.
    """
    global _reserved
    if _reserved is None:
        _reserved = _Reserved()


def out() -> TextIO:
    """The stream for the output of the command."""
    return sys.stdout if _reserved is None else _reserved.results


@contextlib.contextmanager
def restored_stdout() -> Iterator[None]:
    """Give a reserved stdout back at the end, to a caller in the same process."""
    global _reserved
    try:
        yield
    finally:
        if _reserved is not None:
            _reserved.release()
            _reserved = None
