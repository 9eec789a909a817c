"""Finds the marked sinks of a tool, and their values in the arguments of a call."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple, Protocol, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from agent_adapter.core.errors import ToolDefinitionError
from agent_adapter.core.inject import Sink, checked_kind
from agent_adapter.core.schema.forms import parts

_MAPPINGS = (dict, Mapping)


class SinkValue(NamedTuple):
    """One value that decides where something goes: the path to it, its kind, and its text."""

    path: str
    kind: str
    text: str


class Marks:
    """Which parts of a value are sinks; types that contain themselves make it a cycle.

    `kinds` apply to everything inside; `fields` are members by name, `items` are elements of lists
    and values of dictionaries, `keys` are the names in dictionaries.
    """

    __slots__ = ("fields", "items", "keys", "kinds")

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.fields: dict[str, Marks] = {}
        self.items: list[Marks] = []
        self.keys: set[str] = set()

    def holds_any(self) -> bool:
        """Whether anything at all is marked."""
        seen: set[int] = set()
        left = [self]
        while left:
            marks = left.pop()
            if marks.kinds or marks.keys:
                return True
            if id(marks) not in seen:
                seen.add(id(marks))
                left += [*marks.fields.values(), *marks.items]
        return False

    def values(self, value: Any, path: str = "") -> Iterator[SinkValue]:
        """Every marked value of some arguments, which are JSON values."""
        for kind in sorted(self.kinds):
            for text in _texts(value):
                yield from (SinkValue(path, *part) for part in parts(kind, text))
        if isinstance(value, Mapping):
            for key, part in value.items():
                inside = f"{path}.{key}" if path else str(key)
                yield from (SinkValue(inside, kind, str(key)) for kind in sorted(self.keys))
                if key in self.fields:
                    yield from self.fields[key].values(part, inside)
                for marks in self.items:
                    yield from marks.values(part, inside)
        elif isinstance(value, (list, tuple)):
            for index, part in enumerate(value):
                for marks in self.items:
                    yield from marks.values(part, f"{path}[{index}]")


def marks_of(model: type[BaseModel]) -> Marks:
    """The marks in the annotations of a tool's parameters."""
    found = Marks()
    MarkReader().into(found, model)
    return found


def marks_at(paths: Iterable[tuple[str, str]]) -> Marks:
    """The marks of checked `sinks`, such as `("payee.account", "account")`.

    A path passes through lists: it names the members of each element.
    """
    found = Marks()
    for path, kind in paths:
        here = found
        for name in path.split("."):
            here = here.fields.setdefault(name, Marks())
            here.items[:] = [here]
        here.items.clear()  # a kind holds for everything inside anyway
        here.kinds.add(kind)
    return found


class MarkedTool(Protocol):
    """What a tool says of its sinks."""

    @property
    def marks(self) -> Marks | None:
        """The marks of its annotations."""

    @property
    def sinks(self) -> Any:
        """Its checked `sinks`."""

    @property
    def arguments(self) -> Any:
        """The check of its arguments."""


def any_in(tool: MarkedTool) -> bool:
    """Whether the tool has a sink."""
    return bool(tool.sinks) or (tool.marks is not None and tool.marks.holds_any())


def values_in(tool: MarkedTool, arguments: Mapping[str, Any]) -> list[SinkValue]:
    """What the arguments of a call, as JSON values, give the tool's sinks."""
    declared = tool.arguments.schema.get("properties", {})
    chosen = {
        name: value
        for name, value in arguments.items()
        if not is_default(declared.get(name), value)
    }
    found = [] if tool.marks is None else list(tool.marks.values(chosen))
    return list(dict.fromkeys([*found, *marks_at(tool.sinks).values(chosen)]))


def is_default(declared: Any, value: Any) -> bool:
    """Whether a value is the default that its schema declares."""
    return isinstance(declared, Mapping) and "default" in declared and declared["default"] == value


def checked_paths(where: str, value: Any) -> tuple[tuple[str, str], ...]:
    """The `sinks` of a tool in their final form; `ToolDefinitionError` for anything else."""
    if not isinstance(value, (Mapping, tuple)):
        raise ToolDefinitionError(
            f"{where} maps arguments to kinds, such as {{'to': 'recipient'}}, not {value!r}"
        )
    pairs: Iterable[Any] = value.items() if isinstance(value, Mapping) else value
    checked = []
    for path, kind in pairs:
        if not isinstance(path, str) or not all(path.split(".")):
            raise ToolDefinitionError(
                f"{where}: {path!r} names no argument; write 'to', or 'payee.account' for a member"
            )
        checked.append((path, checked_kind(kind, where)))
    return tuple(sorted(checked))


def _texts(value: Any) -> Iterator[str]:
    """Every text and number inside a value, names of members included."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield str(key)
            yield from _texts(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, str) or (isinstance(value, (int, float)) and not _is_flag(value)):
        yield str(value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


class MarkReader:
    """Reads annotations; the marks of a class are made once, so that it may contain itself."""

    def __init__(self) -> None:
        self._classes: dict[Any, Marks] = {}

    def into(self, marks: Marks, annotation: Any, metadata: Iterable[Any] = ()) -> None:
        """Add what `annotation` and its metadata mark."""
        self.note(marks, metadata)
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            self.into(marks, args[0], args[1:])
        elif not args or _members(annotation):
            self._class(marks, annotation)
        elif origin in (Union, types.UnionType) or not isinstance(origin, type):
            for part in args:  # whatever any member of a union or `Required[…]` marks
                self.into(marks, part)
        elif issubclass(origin, _MAPPINGS) and len(args) == 2:
            keys = Marks()
            self.into(keys, args[0])
            marks.keys |= keys.kinds
            self._inside(marks, args[1])
        else:
            for part in args:
                self._inside(marks, part)

    def note(self, marks: Marks, metadata: Iterable[Any]) -> None:
        """Add the marks that the metadata of an annotation are."""
        for item in metadata:
            if item is Sink:
                raise ToolDefinitionError("Sink needs a kind: write Sink('recipient')")
            if isinstance(item, Sink):
                marks.kinds.add(item.kind)
            self.note(marks, getattr(item, "metadata", None) or ())

    def _inside(self, marks: Marks, annotation: Any) -> None:
        part = Marks()
        self.into(part, annotation)
        marks.items.append(part)

    def _class(self, marks: Marks, annotation: Any) -> None:
        for name in ("__value__", "__supertype__"):  # a `type` statement, a `NewType`
            if hasattr(annotation, name):
                self.into(marks, getattr(annotation, name))
                return
        members = _members(annotation)
        if not members:
            return
        found = self._classes.get(annotation)
        if found is None:
            found = self._classes[annotation] = Marks()
            for name, (part, metadata) in members.items():
                inner = found.fields.setdefault(name, Marks())
                self.into(inner, part, metadata)
                if name == "root" and _is_root(annotation):
                    found.items.append(inner)
            if _is_tuple(annotation):
                found.items += found.fields.values()
        marks.fields |= found.fields
        marks.items += found.items
        if _is_root(annotation):
            root = found.fields["root"]
            marks.kinds |= root.kinds
            marks.fields |= root.fields
            marks.items += root.items


def _members(annotation: Any) -> dict[str, tuple[Any, Iterable[Any]]]:
    """The members of a model, dataclass, TypedDict or NamedTuple, by the names of its JSON."""
    kind = get_origin(annotation) or annotation
    if not isinstance(kind, type):
        return {}
    if issubclass(kind, BaseModel):
        model: Any = annotation if isinstance(annotation, type) else kind
        return {
            name: (info.annotation, info.metadata)
            for field, info in model.model_fields.items()
            for name in {field, *_aliases(info)}
        }
    if dataclasses.is_dataclass(kind) or hasattr(kind, "__total__") or _is_tuple(kind):
        try:
            hints = get_type_hints(kind, include_extras=True)
        except Exception:  # Pydantic has resolved it in a scope that is gone
            hints = dict(getattr(kind, "__annotations__", {}))
        return {name: (hint, ()) for name, hint in hints.items()}
    return {}


def _aliases(info: Any) -> set[str]:
    found = (info.alias, info.validation_alias, info.serialization_alias)
    return {alias for alias in found if isinstance(alias, str)}


def _is_tuple(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _is_root(kind: Any) -> bool:
    return bool(getattr(kind, "__pydantic_root_model__", False))
