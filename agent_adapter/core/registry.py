"""`ToolRegistry`: tools by name, in the order in which they were added."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, overload

from agent_adapter.core.errors import ToolDefinitionError, ToolNotFound
from agent_adapter.core.names import folded_name
from agent_adapter.core.tool import SPEC_ATTRIBUTE, ToolSpec

_LONGEST = 80
"""The most characters of an unknown name that are compared and quoted."""

F = TypeVar("F", bound=Callable[..., Any])


class ToolRegistry:
    """Tools by name, in order; names that differ only in case, `-` and `_` count as one."""

    def __init__(self) -> None:
        self._specs: dict[str, ToolSpec] = {}
        self._folded: dict[str, str] = {}
        self._frozen = False

    @overload
    def tool(self, fn: F, /) -> F: ...

    @overload
    def tool(self, /, **policy: Any) -> Callable[[F], F]: ...

    def tool(self, fn: Any = None, /, **policy: Any) -> Any:
        """Registers a function, which is unchanged; `policy` are `ToolSpec`'s fields."""
        return _decorate(self.add, fn, policy)

    def add(self, tool: ToolSpec | Callable[..., Any]) -> ToolSpec:
        """Registers a spec, a decorated function, or a plain function; returns the spec."""
        spec = _as_spec(tool)
        self._refuse_frozen(spec.name)
        other = self._folded.get(folded_name(spec.name))
        if other is not None and self._specs[other] is not spec:
            raise ToolDefinitionError(_clash(spec.name, other))
        self._put(spec)
        return spec

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

    def _put(self, spec: ToolSpec) -> None:
        self._specs[spec.name] = spec
        self._folded[folded_name(spec.name)] = spec.name

    def _refuse_frozen(self, name: str) -> None:
        if self._frozen:
            raise ToolDefinitionError(
                f"tool {name!r}: the registry is frozen; add tools before `freeze()`"
            )


class _DefaultRegistry(ToolRegistry):
    """The registry behind `@tool`: defining the same function again replaces it."""

    def add(self, tool: ToolSpec | Callable[..., Any]) -> ToolSpec:
        spec = _as_spec(tool)
        other = self._specs.get(self._folded.get(folded_name(spec.name), ""))
        if other is not None and _place(other) == _place(spec):
            self._refuse_frozen(spec.name)
            if other.name != spec.name:
                del self._specs[other.name]
            self._put(spec)
            return spec
        return super().add(spec)


_DEFAULT = _DefaultRegistry()


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
    return _decorate(_DEFAULT.add, fn, policy)


def _decorate(add: Callable[[ToolSpec], ToolSpec], fn: Any, policy: dict[str, Any]) -> Any:
    def register(function: F) -> F:
        spec = ToolSpec.from_function(function, **policy)
        add(spec)
        _attach(function, spec)
        return function

    return register if fn is None else register(fn)


def _attach(function: Any, spec: ToolSpec) -> None:
    try:
        setattr(function, SPEC_ATTRIBUTE, spec)
    except AttributeError:
        return  # a bound method or a slotted object carries no attributes; the registry has it


def _as_spec(tool: Any) -> ToolSpec:
    if isinstance(tool, ToolSpec):
        return tool
    spec = getattr(tool, SPEC_ATTRIBUTE, None)
    return spec if isinstance(spec, ToolSpec) else ToolSpec.from_function(tool)


def _place(spec: ToolSpec) -> tuple[str, str]:
    return (
        str(getattr(spec.fn, "__module__", "")),
        str(getattr(spec.fn, "__qualname__", id(spec.fn))),
    )


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
