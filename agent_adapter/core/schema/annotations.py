"""Resolves the annotations of a callable, in whatever scope their names are defined."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from types import FrameType, FunctionType, SimpleNamespace
from typing import Any, get_type_hints

from agent_adapter.core.errors import ToolDefinitionError


def written_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The written function below partials, bound methods, wrappers and `__call__`."""
    seen: Any = fn
    while True:
        if isinstance(seen, functools.partial):
            seen = seen.func
        elif inspect.ismethod(seen):
            seen = seen.__func__
        elif hasattr(seen, "__wrapped__"):
            seen = seen.__wrapped__
        elif not isinstance(seen, type) and not inspect.isroutine(seen):
            seen = type(seen).__call__
        else:
            written: Callable[..., Any] = seen
            return written


class Resolver:
    """Turns annotations written as text into types, with the names visible to the function.

    Names are looked up in the function's module, in its closure, and in the frames of its module
    that are running now: the ones in which a local function and its local types are defined.
    """

    def __init__(self, tool: str, fn: Callable[..., Any]) -> None:
        self._tool = tool
        written = written_function(fn)
        self._globals: dict[str, Any] = getattr(written, "__globals__", {})
        self._closure = _closure(written)

    def resolve(self, where: str, annotation: Any) -> Any:
        """The type that `annotation` stands for; `where` names the parameter in an error."""
        try:
            return self._evaluated(annotation, self._closure)
        except NameError:
            pass
        try:
            return self._evaluated(annotation, {**self._frame_locals(), **self._closure})
        except NameError as exc:
            missing = exc.name or str(exc)
        raise ToolDefinitionError(
            f"tool {self._tool!r}: {where} is annotated {_shown(annotation)}, but {missing!r} does "
            "not exist at run time; import it outside `if TYPE_CHECKING:` or define it before the "
            "tool"
        )

    def names(self) -> dict[str, Any]:
        """All names that the function's annotations can refer to."""
        return {**self._globals, **self._frame_locals(), **self._closure}

    def _evaluated(self, annotation: Any, names: Mapping[str, Any]) -> Any:
        holder = SimpleNamespace(__annotations__={"value": annotation})
        try:
            hints = get_type_hints(holder, self._globals, dict(names), include_extras=True)
        except NameError:
            raise
        except Exception as exc:
            raise ToolDefinitionError(
                f"tool {self._tool!r}: the annotation {_shown(annotation)} cannot be read: {exc}"
            ) from exc
        return hints["value"]

    def _frame_locals(self) -> dict[str, Any]:
        names: dict[str, Any] = {}
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_globals is self._globals and frame.f_locals is not frame.f_globals:
                names = {**frame.f_locals, **names}
            frame = frame.f_back
        return names


def _closure(fn: Callable[..., Any]) -> dict[str, Any]:
    if not isinstance(fn, FunctionType) or fn.__closure__ is None:
        return {}
    values = {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__, strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            continue  # the enclosing function has not assigned it yet
    return values


def _shown(annotation: Any) -> str:
    return repr(annotation) if isinstance(annotation, str) else f"`{annotation}`"
