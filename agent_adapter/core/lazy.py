"""Load the public names of a package when they are first used.

A package states each name once, as an import for type checkers:

    TYPE_CHECKING = False
    if TYPE_CHECKING:
        from package.module import Name as Name
    else:
        from agent_adapter.core.lazy import lazy_names

        __getattr__, __dir__ = lazy_names(__name__)
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of `package`, and its `__all__`, from its own imports.

    A name is imported when it is first asked for, then stays in the package. A name that the
    package does not state raises `AttributeError`.
    """
    module = sys.modules[package]
    homes: dict[str, str] = {}

    def __getattr__(name: str) -> Any:
        if name == "__path__":  # asked of every module that is no package, on each import
            raise AttributeError(name)
        homes.update(homes or _unimported(module))
        if name == "__all__":
            value: Any = sorted(homes)
        elif name in homes:
            from importlib import import_module

            value = getattr(import_module(homes[name]), name)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(module, name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(module), *module.__all__})

    return __getattr__, __dir__


def _unimported(module: ModuleType) -> dict[str, str]:
    """The names that a module imports in branches that did not run, and where they come from.

    Read from the compiled module rather than from its text: an application that ships no sources,
    or is frozen into one file, still has the code.
    """
    from dis import get_instructions

    homes, home = {}, ""
    for step in get_instructions(module.__spec__.loader.get_code(module.__name__)):  # type: ignore[union-attr]
        if step.opname == "IMPORT_NAME":
            home = step.argval
        elif step.opname == "IMPORT_FROM" and step.argval not in vars(module):
            homes[step.argval] = home
    return homes
