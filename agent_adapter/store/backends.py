"""Back ends, found by entry point: its name is a URL scheme, its value a function that opens a URL.

One is imported when a URL asks for it, so a broken plug-in never stops the others.
"""

from __future__ import annotations

import logging
import pkgutil
from functools import cache
from importlib import metadata
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol

from agent_adapter.core.errors import MissingDependency, StoreError
from agent_adapter.core.extras import DISTRIBUTION
from agent_adapter.core.plugins import UnusablePlugin, distribution_of, load_plugin, warn_skipped
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
    return None if entry is None else _opened(entry)


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
    foreign = (each for each in entry_points(group=GROUP) if distribution_of(each) != DISTRIBUTION)
    # Sorted, so that of two entries with one scheme the same one is always used.
    for entry in sorted(foreign, key=lambda each: (distribution_of(each), each.value)):
        if entry.name in reserved:
            _skip(entry, "its scheme belongs to a built-in store")
        elif entry.name in found:
            _skip(entry, "its scheme is already taken")
        else:
            found[entry.name] = entry
    return found


def _opened(entry: EntryPoint) -> Backend:
    try:
        return load_plugin(entry, lambda _, loaded: _checked(entry, loaded))
    except UnusablePlugin as exc:
        if isinstance(exc.__cause__, ModuleNotFoundError) and entry.extras:
            wanted = f"{distribution_of(entry)}[{','.join(entry.extras)}]"
            raise MissingDependency(
                f"{entry.name}:// needs {exc.__cause__.name}, which is not installed;"
                f' run: pip install "{wanted}"'
            ) from exc
        _skip(entry, str(exc))
        raise StoreError(f"{entry.name}:// cannot be opened: {exc}") from exc


def _checked(entry: EntryPoint, loaded: Any) -> Backend:
    if not callable(loaded):
        raise UnusablePlugin(f"{entry.value!r} is no function (but {type(loaded).__name__})")
    backend: Backend = loaded
    return backend


def _skip(entry: EntryPoint, reason: str) -> None:
    # Once per entry: a scan happens at every URL that is not of a built-in.
    reported = (entry.name, entry.value)
    if reported not in _reported:
        _reported.add(reported)
        warn_skipped(_log, "store", entry, reason)


_reported: set[tuple[str, str]] = set()
