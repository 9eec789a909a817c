"""Back ends, found by entry point: its name is a URL scheme, its value a function that opens a URL.

One is imported when a URL asks for it, so a broken plug-in never stops the others.
"""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol

from agent_adapter.core.errors import MissingDependency, StoreError
from agent_adapter.core.extras import DISTRIBUTION
from agent_adapter.core.ports import Clock
from agent_adapter.store.base import Store

GROUP = "agent_adapter.stores"
"""The entry-point group that back ends register in."""

_log = logging.getLogger(__name__)


class Backend(Protocol):
    """Opens the store of a URL."""

    def __call__(self, url: str, /, *, clock: Clock, key: bytes | None) -> Store:
        """The store; `StoreError` names the place, the reason and the fix."""
        ...


def backend_of(scheme: str) -> Backend | None:
    """What opens URLs of that scheme; `None` where nothing does.

    Raises:
        MissingDependency: the back end needs packages that are not installed; the message has the
            pip command.
        StoreError: the back end cannot be loaded.
    """
    # Built-in schemes are looked up in this library's own metadata: no plug-in can take one, and
    # opening a file does not read the metadata of every installed package.
    entry = _built_in().get(scheme)
    if entry is None and scheme in _folders():
        raise StoreError(
            f"the installed metadata of {DISTRIBUTION} does not list its store {scheme!r};"
            " install the package again (in a checkout: make setup)"
        )
    entry = entry or _plugged_in().get(scheme)
    return None if entry is None else _loaded(entry)


def schemes() -> list[str]:
    """Every scheme that has a back end, sorted."""
    return sorted({*_built_in(), *_plugged_in()})


@cache
def _built_in() -> dict[str, EntryPoint]:
    try:
        ours = metadata.distribution(DISTRIBUTION).entry_points
    except metadata.PackageNotFoundError:
        return {}
    return {entry.name: entry for entry in ours.select(group=GROUP)}


@cache
def _folders() -> frozenset[str]:
    """The schemes that belong to this library, whatever its installed metadata says."""
    folders = pkgutil.iter_modules([str(Path(__file__).parent)])
    return frozenset(each.name for each in folders if each.ispkg) - {"sql"}


def _plugged_in() -> dict[str, EntryPoint]:
    reserved = {*_built_in(), *_folders()}
    found: dict[str, EntryPoint] = {}
    for entry in sorted(_of_others(), key=_order):
        if entry.name in reserved:
            _skip(entry, "its scheme belongs to a built-in store")
        elif entry.name in found:
            _skip(entry, "its scheme is already taken")
        else:
            found[entry.name] = entry
    return found


def _of_others() -> Iterable[EntryPoint]:
    return (each for each in entry_points(group=GROUP) if _distribution(each) != DISTRIBUTION)


def _order(entry: EntryPoint) -> tuple[str, str, str]:
    """The first of two that claim a scheme is always the same."""
    return (_distribution(entry), entry.value, entry.name)


def _loaded(entry: EntryPoint) -> Backend:
    # A plug-in that exits while it is imported must not end the program; an interrupt must.
    try:
        backend = entry.load()
    except (Exception, SystemExit) as exc:
        if isinstance(exc, ModuleNotFoundError) and entry.extras:
            wanted = f"{_distribution(entry)}[{','.join(entry.extras)}]"
            raise MissingDependency(
                f"{entry.name}:// needs {exc.name}, which is not installed;"
                f' run: pip install "{wanted}"'
            ) from exc
        raise _unusable(entry, f"loading {entry.value!r} failed: {_text_of(exc)}") from exc
    if not callable(backend):
        raise _unusable(entry, f"{entry.value!r} is no function (but {type(backend).__name__})")
    opens: Backend = backend
    return opens


def _unusable(entry: EntryPoint, why: str) -> StoreError:
    _skip(entry, why)
    return StoreError(f"{entry.name}:// cannot be opened: {why}")


def _skip(entry: EntryPoint, why: str) -> None:
    # Once per entry: a scan happens at every URL that is not of a built-in.
    reported = (entry.name, entry.value)
    if reported not in _reported:
        _reported.add(reported)
        origin = f"{entry.value} of {_distribution(entry) or 'an unknown distribution'}"
        _log.warning("skipped the store %r (%s): %s", entry.name, origin, why)


_reported: set[tuple[str, str]] = set()


def _text_of(exc: BaseException) -> str:
    try:
        return f"{type(exc).__name__}: {exc}"
    except Exception:  # the plug-in's own `__str__` may fail too
        return type(exc).__name__


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else ""
