"""`ToolRegistry`: tools by name, in the order in which they were added."""

from __future__ import annotations

import difflib
import inspect
import logging
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, overload

from agent_adapter.core.errors import ToolDefinitionError, ToolNotFound
from agent_adapter.core.names import folded_name
from agent_adapter.core.second_names import SPEC_ATTRIBUTE, attach, strictness
from agent_adapter.core.tool import ToolSpec

_LONGEST = 80
"""The most characters of an unknown name that are compared and quoted."""

log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])


class ToolRegistry:
    """Tools by name, in order; names that differ only in case, `-` and `_` count as one.

    A function that is defined again, at the same place under the same name (a cell of a notebook
    that is run twice, a reload), replaces the former with one warning; the stricter gate stays.
    """

    def __init__(self) -> None:
        self._specs: dict[str, ToolSpec] = {}
        self._folded: dict[str, str] = {}
        self._frozen = False
        self._warned: set[str] = set()

    @overload
    def tool(self, fn: F, /) -> F: ...

    @overload
    def tool(self, /, **policy: Any) -> Callable[[F], F]: ...

    def tool(self, fn: Any = None, /, **policy: Any) -> Any:
        """Registers a function, which is unchanged; `policy` are `ToolSpec`'s fields."""
        return _decorate(self, fn, policy)

    def add(self, tool: ToolSpec | Callable[..., Any]) -> ToolSpec:
        """Registers a spec, a decorated function, or a plain function; returns the spec."""
        return self._register(_as_spec(tool), defined=not isinstance(tool, ToolSpec))

    def get(self, name: str) -> ToolSpec:
        """The tool of that name, else `ToolNotFound` with near matches."""
        spec = self._specs.get(name)
        if spec is None:
            raise ToolNotFound(_not_found(name, list(self._specs)))
        return spec

    def for_target(self, name: str) -> list[ToolSpec]:
        """The tools that the integration `name` may export, in order."""
        return [spec for spec in self if spec.targets is None or name in spec.targets]

    def names(self) -> list[str]:
        """The names, in order."""
        return list(self._specs)

    def freeze(self) -> None:
        """Refuse further additions."""
        self._frozen = True

    @property
    def frozen(self) -> bool:
        """Whether additions are refused."""
        return self._frozen

    def merge(self, other: ToolRegistry, prefix: str = "") -> None:
        """Adds every tool of `other` with `prefix` before its name: all of them or none."""
        added = [spec.replace(name=prefix + spec.name) if prefix else spec for spec in other]
        for spec in added:
            self._refuse_frozen(spec.name)
            taken = self._folded.get(folded_name(spec.name))
            if taken is not None and self._specs[taken] is not spec:
                raise ToolDefinitionError(_clash(spec.name, taken))
        for spec in added:
            self._put(spec)

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(list(self._specs.values()))

    def __len__(self) -> int:
        return len(self._specs)

    def __contains__(self, name: object) -> bool:
        return name in self._specs

    def __repr__(self) -> str:
        return f"ToolRegistry({', '.join(self._specs)})"

    def _register(self, spec: ToolSpec, *, defined: bool) -> ToolSpec:
        """Put the spec; a function that is `defined` again takes the place of the former."""
        self._refuse_frozen(spec.name)
        other = self._specs.get(self._folded.get(folded_name(spec.name), ""))
        if other is None or other is spec:
            self._put(spec)
            return spec
        if not (defined and _is_again(spec, other)):
            raise ToolDefinitionError(_clash(spec.name, other.name))
        return self._replace(other, spec)

    def _replace(self, other: ToolSpec, spec: ToolSpec) -> ToolSpec:
        """Put `spec` in the place of `other`, with the stricter of both gates."""
        gate = ""
        if strictness(spec.confirm) < strictness(other.confirm):
            spec, gate = spec.replace(confirm=other.confirm), f"; confirm={other.confirm!r} stays"
        if other.name != spec.name:
            del self._specs[other.name]
        self._put(spec)
        if spec.fn is not other.fn and spec.name not in self._warned:
            self._warned.add(spec.name)
            log.warning("the tool %r was defined again and replaces the former%s", spec.name, gate)
        return spec

    def _put(self, spec: ToolSpec) -> None:
        self._specs[spec.name] = spec
        self._folded[folded_name(spec.name)] = spec.name

    def _refuse_frozen(self, name: str) -> None:
        if self._frozen:
            raise ToolDefinitionError(
                f"tool {name!r}: the registry is frozen; add tools before `freeze()`"
            )


_DEFAULT = ToolRegistry()


def default_registry() -> ToolRegistry:
    """The registry that `@tool` adds to, one per process."""
    return _DEFAULT


@overload
def tool(fn: F, /) -> F: ...


@overload
def tool(**policy: Any) -> Callable[[F], F]: ...


def tool(fn: Any = None, /, **policy: Any) -> Any:
    """Makes a function a tool of the default registry; the function is unchanged.

    `policy` are `ToolSpec`'s fields: `@tool(confirm=True, effects="write", timeout=10)`. The same
    function defined again (a reload, a notebook cell) replaces the earlier one.
    """
    return _decorate(_DEFAULT, fn, policy)


def _decorate(registry: ToolRegistry, fn: Any, policy: dict[str, Any]) -> Any:
    def register(function: F) -> F:
        spec = ToolSpec.from_function(function, **policy)
        attach(function, registry._register(spec, defined=True))
        return function

    return register if fn is None else register(fn)


def _as_spec(tool: Any) -> ToolSpec:
    if isinstance(tool, ToolSpec):
        return tool
    spec = getattr(tool, SPEC_ATTRIBUTE, None)
    # A wrapper made by `functools.wraps` carries the spec of what it wraps.
    if isinstance(spec, ToolSpec) and (spec.fn is tool or not inspect.isfunction(tool)):
        return spec
    return ToolSpec.from_function(tool)


def _is_again(spec: ToolSpec, other: ToolSpec) -> bool:
    """Whether `spec` is the function of `other` defined again: a cell run twice, a reload."""
    own = spec.parameters is not None and other.parameters is not None
    return own and _place(spec) == _place(other)


def _place(spec: ToolSpec) -> tuple[str, str]:
    name = str(getattr(spec.fn, "__qualname__", "<lambda>"))
    where = name if "<lambda>" not in name else f"{name} {id(spec.fn)}"
    return str(getattr(spec.fn, "__module__", "")), where


def _clash(name: str, other: str) -> str:
    if name == other:
        return f"tool {name!r}: a tool of this name is already registered; give one `name=`"
    return (
        f"tool {name!r}: {other!r} is already registered and differs only in case, `-` or `_`; "
        "give one of them another `name=`"
    )


def _not_found(name: str, names: list[str]) -> str:
    shown = name if len(name) <= _LONGEST else name[:_LONGEST] + "…"
    near = difflib.get_close_matches(shown, names, n=3)
    if near:
        return f"no tool {shown!r}; did you mean {', '.join(map(repr, near))}?"
    return f"no tool {shown!r}; there are {', '.join(map(repr, names)) or 'none'}"
