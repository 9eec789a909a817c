"""Loads the registry that a TARGET names; nothing of it is called unless it is a factory."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
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

Factory = Annotated[
    bool,
    typer.Option(
        "--factory",
        help="TARGET is a function without parameters that returns the registry: call it.",
    ),
]
"""`--factory`."""


def load_registry(target: str, *, factory: bool = False) -> ToolRegistry:
    """The registry that `target` names; this runs the target's module.

    Without an attribute: the module's only registry, else the default registry that
    `@agent_adapter.tool` fills. With `factory` the attribute is a function that is called.
    """
    where, attribute = _split(target)
    if factory and not attribute:
        raise CommandError(
            f"--factory: {target} names no function; write {target}:FUNCTION", code=USAGE
        )
    module = _module(where, target)
    if attribute:
        value = _named(module, attribute, target)
        return _registry(_made(value, module, target) if factory else value, target, factory)
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
    except (Exception, SystemExit) as exc:
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


_MISSING = object()


def _named(module: ModuleType, attribute: str, target: str) -> Any:
    """The attribute as it lies there: no property or other descriptor of the target runs."""
    value: Any = module
    for part in attribute.split("."):
        found = inspect.getattr_static(value, part, _MISSING)
        if found is _MISSING and isinstance(value, ModuleType):
            found = getattr(value, part, _MISSING)  # a module may make its names when asked
        if found is _MISSING:
            there = ", ".join(_registries(module)) or "none"
            raise CommandError(f"{target}: no attribute {part!r}; registries there: {there}")
        value = found.__func__ if isinstance(found, staticmethod) else found
    return value


def _made(value: Any, module: ModuleType, target: str) -> Any:
    """What a factory returns; anything that is not declared as one is refused."""
    problem = _not_a_factory(value, module)
    if problem is not None:
        raise CommandError(
            f"{target} is {problem}: --factory needs a plain function without parameters",
            code=USAGE,
        )
    try:
        return value()
    except (Exception, SystemExit) as exc:
        text = " ".join(str(exc).split())
        raise CommandError(f"{target}() raised {type(exc).__name__}: {text}") from exc


def _not_a_factory(value: Any, module: ModuleType) -> str | None:
    if _is_tool(value, module):
        return "a tool, and is never called here"
    if not inspect.isfunction(value):
        return f"{type(value).__name__}, not a function"
    if inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value):
        return "an asynchronous function"
    if inspect.isgeneratorfunction(value):
        return "a generator"
    taken = ", ".join(inspect.signature(value, follow_wrapped=False).parameters)
    return f"a function with parameters ({taken})" if taken else None


def _is_tool(value: Any, module: ModuleType) -> bool:
    """Whether it is a tool, wraps one, or is the function of a tool in a registry at hand."""
    from agent_adapter.core.registry import default_registry

    functions = {
        id(spec.fn)
        for registry in (*_registries(module).values(), default_registry())
        for spec in registry
    }
    seen: set[int] = set()
    while id(value) not in seen:
        seen.add(id(value))
        if id(value) in functions or _carries_spec(value):
            return True
        value = inspect.getattr_static(value, "__wrapped__", value)
    return False


def _carries_spec(value: Any) -> bool:
    from agent_adapter.core.second_names import SPEC_ATTRIBUTE

    return inspect.getattr_static(value, SPEC_ATTRIBUTE, None) is not None


def _registry(value: Any, target: str, factory: bool) -> ToolRegistry:
    from agent_adapter.core.registry import ToolRegistry

    if isinstance(value, ToolRegistry):
        return value
    if factory:
        raise CommandError(f"{target}() returned {type(value).__name__}, not a ToolRegistry")
    if _carries_spec(value):
        raise CommandError(f"{target} is a tool, not a registry: name the registry that holds it")
    hint = "name a registry"
    if inspect.isfunction(value):
        hint += ", or give --factory if this function returns one"
    raise CommandError(f"{target} is {type(value).__name__}, not a ToolRegistry: {hint}")


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
