"""Plug-ins, found by entry point; one bad plug-in never stops the others."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugins(Generic[T]):
    """The entries of an entry-point group.

    Attributes:
        found: the usable entries, by entry-point name.
        skipped: the reason for each unusable entry, by its name.
    """

    found: dict[str, T]
    skipped: dict[str, str]


class UnusablePlugin(Exception):
    """An entry is skipped; the text is the reason."""


def load_plugins(
    entries: Iterable[EntryPoint],
    accept: Callable[[str, Any], T],
    *,
    package: str,
    noun: str,
    log: logging.Logger,
) -> Plugins[T]:
    """Load the entries of a group; each unusable one causes one warning.

    `accept(name, loaded)` returns the value to keep, or raises `UnusablePlugin`. `package` holds
    the built-in ones, one module each, whose names are reserved. `noun` names a plug-in in
    warnings.
    """
    plugins: Plugins[T] = Plugins(found={}, skipped={})
    for entry in sorted(entries, key=lambda each: _order(each, package)):
        try:
            _check_name(entry, plugins.found, package, noun)
            plugins.found[entry.name] = load_plugin(entry, accept)
        except UnusablePlugin as exc:
            plugins.skipped.setdefault(entry.name, str(exc))
            warn_skipped(log, noun, entry, str(exc))
    return plugins


def load_plugin(entry: EntryPoint, accept: Callable[[str, Any], T]) -> T:
    """The accepted value of an entry; `UnusablePlugin` has the reason if there is none."""
    # A plug-in that exits while it is imported must not end the program; an interrupt must.
    try:
        return accept(entry.name, entry.load())
    except UnusablePlugin:
        raise
    except (Exception, SystemExit) as exc:
        raise UnusablePlugin(f"loading {entry.value!r} failed: {_text_of(exc)}") from exc


def warn_skipped(log: logging.Logger, noun: str, entry: EntryPoint, reason: str) -> None:
    """Log that an entry is skipped, where it comes from and why."""
    origin = f"{entry.value} of {distribution_of(entry) or 'an unknown distribution'}"
    log.warning("skipped the %s %r (%s): %s", noun, entry.name, origin, reason)


def distribution_of(entry: EntryPoint) -> str:
    """The name of the distribution that registers an entry; `""` if unknown."""
    return entry.dist.name if entry.dist is not None else ""


def built_in_names(package: str) -> frozenset[str]:
    """The modules of a package: names that plug-ins cannot use."""
    return frozenset(each.name for each in pkgutil.iter_modules(import_module(package).__path__))


def _order(entry: EntryPoint, package: str) -> tuple[bool, str, str, str]:
    """Built-in entries first, then by distribution and value: a stable order."""
    return (not _is_ours(entry, package), distribution_of(entry), entry.value, entry.name)


def _check_name(entry: EntryPoint, taken: dict[str, T], package: str, noun: str) -> None:
    if entry.name in taken:
        raise UnusablePlugin("its name is already taken")
    # A built-in may be absent from the metadata; its name stays reserved.
    if not _is_ours(entry, package) and entry.name.replace("-", "_") in built_in_names(package):
        raise UnusablePlugin(f"its name belongs to a built-in {noun}")


def _text_of(exc: BaseException) -> str:
    try:
        return f"{type(exc).__name__}: {exc}"
    except Exception:  # the plug-in's own `__str__` may fail too
        return type(exc).__name__


def _is_ours(entry: EntryPoint, package: str) -> bool:
    return entry.value.startswith(package + ".")
