"""Loads the registry that a TARGET names."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_adapter.cli.exit_codes import USAGE, CommandError
from agent_adapter.core.errors import ToolDefinitionError

if TYPE_CHECKING:
    from agent_adapter.core.registry import ToolRegistry

Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="A registry: module:attribute, or a Python file (file.py or file.py:attribute).",
        show_default=False,
    ),
]
"""`TARGET`."""


def load_registry(target: str) -> ToolRegistry:
    """The registry that `target` names; this runs the target's module.

    Without an attribute: the module's only registry, else the default registry that
    `@agent_adapter.tool` fills.
    """
    where, attribute = _split(target)
    module = _module(where, target)
    if attribute:
        return _named(module, attribute, target)
    return _only(module, target)


def import_module(where: str) -> ModuleType:
    """The module of that name, or the Python file at that path; importing runs it."""
    return _module(where, where)


def _split(target: str) -> tuple[str, str]:
    where, colon, attribute = target.rpartition(":")
    # `C:\\shop.py` on Windows: the drive letter is not a module.
    if not colon or (len(where) == 1 and Path(target).suffix):
        return target, ""
    return where, attribute


def _module(where: str, target: str) -> ModuleType:
    is_path = where.endswith(".py") or "/" in where or "\\" in where
    try:
        return _from_file(Path(where)) if is_path else _from_name(where, target)
    except (CommandError, ToolDefinitionError):
        raise
    except Exception as exc:
        text = " ".join(str(exc).split())
        raise CommandError(
            f"{where} cannot be read as a module: {type(exc).__name__}: {text};"
            f" run `python {where}` for the traceback"
            if is_path
            else f"{where} cannot be imported: {type(exc).__name__}: {text};"
            f' run `python -c "import {where}"` for the traceback'
        ) from exc


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise CommandError(f"no file {path}: give an existing Python file, or module:attribute")
    path = path.resolve()
    name = f"_agent_adapter_target_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is not a Python file: give one that ends in .py")
    _importable_from(path.parent)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _from_name(name: str, target: str) -> ModuleType:
    _importable_from(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        if exc.name is None or not (name == exc.name or name.startswith(f"{exc.name}.")):
            raise
        raise CommandError(
            f"no module {exc.name!r} for the target {target!r}: check the name, or start in"
            " the folder that holds it"
        ) from None


def _importable_from(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _named(module: ModuleType, attribute: str, target: str) -> ToolRegistry:
    from agent_adapter.core.registry import ToolRegistry

    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            found = ", ".join(_registries(module)) or "none"
            raise CommandError(f"{target}: no attribute {part!r}; registries there: {found}")
        value = getattr(value, part)
    if callable(value) and not isinstance(value, ToolRegistry):
        value = value()
    if not isinstance(value, ToolRegistry):
        raise CommandError(
            f"{target} is {type(value).__name__}, not a ToolRegistry: name a registry, or a"
            " function without arguments that returns one"
        )
    return value


def _only(module: ModuleType, target: str) -> ToolRegistry:
    from agent_adapter.core.registry import default_registry

    found = _registries(module)
    if len({id(registry) for registry in found.values()}) == 1:
        return next(iter(found.values()))
    if found:
        names = ", ".join(f"{target}:{name}" for name in found)
        raise CommandError(f"{target} holds several registries: name one of {names}", code=USAGE)
    default = default_registry()
    if len(default):
        return default
    raise CommandError(
        f"{target} defines no tools: make a ToolRegistry there, or use @agent_adapter.tool"
    )


def _registries(module: ModuleType) -> dict[str, ToolRegistry]:
    from agent_adapter.core.registry import ToolRegistry

    return {name: value for name, value in vars(module).items() if isinstance(value, ToolRegistry)}
