"""`TransitionRegistry`: targets and conditions by their names in the wire form."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, ClassVar, TypeVar

from agent_adapter.core.errors import WorkflowGraphError
from agent_adapter.core.records import StrictModel
from agent_adapter.flow.conditions import BUILTIN_CONDITIONS, TransitionCondition
from agent_adapter.flow.targets import BUILTIN_TARGETS, TerminateTarget, TransitionTarget
from agent_adapter.flow.wire import json_copy, read_graph_object

_DEEPEST = 32
_LONGEST = 500

T = TypeVar("T", bound=TransitionTarget)
C = TypeVar("C", bound=TransitionCondition)


class _PartObject(StrictModel):
    name: str
    args: dict[str, Any] | None = None


class TransitionRegistry:
    """The built-in and the registered targets and conditions.

    `version` grows with every registration, so that graphs compiled before are not reused.
    """

    _default: ClassVar[TransitionRegistry | None] = None

    def __init__(self) -> None:
        self._targets: dict[str, type[Any]] = {item.name: item for item in BUILTIN_TARGETS}
        self._conditions: dict[str, type[Any]] = {item.name: item for item in BUILTIN_CONDITIONS}
        self.version = 0

    @classmethod
    def default(cls) -> TransitionRegistry:
        """The process-wide registry, filled by `register_target` and `register_condition`."""
        if TransitionRegistry._default is None:
            TransitionRegistry._default = TransitionRegistry()
        return TransitionRegistry._default

    @property
    def target_names(self) -> tuple[str, ...]:
        """The names of the targets, sorted."""
        return tuple(sorted(self._targets))

    @property
    def condition_names(self) -> tuple[str, ...]:
        """The names of the conditions, sorted."""
        return tuple(sorted(self._conditions))

    def register_target(self, target_cls: type[T]) -> type[T]:
        """Register `target_cls` by its `name`; usable as a decorator.

        Replaces a custom class of the same name; a built-in name raises `WorkflowGraphError`.
        """
        _check_class(target_cls, "target", "resolve", (item.name for item in BUILTIN_TARGETS))
        self._targets[target_cls.name] = target_cls
        self.version += 1
        return target_cls

    def register_condition(self, condition_cls: type[C]) -> type[C]:
        """Register `condition_cls` by its `name`; usable as a decorator.

        Replaces a custom class of the same name; a built-in name raises `WorkflowGraphError`.
        """
        builtin = (item.name for item in BUILTIN_CONDITIONS)
        _check_class(condition_cls, "condition", "evaluate", builtin)
        self._conditions[condition_cls.name] = condition_cls
        self.version += 1
        return condition_cls

    def target_from_dict(self, data: Mapping[str, Any] | None) -> TransitionTarget:
        """The target of `{"name", "args"}`; `None` is `TerminateTarget()`."""
        if data is None:
            return TerminateTarget()
        target: TransitionTarget = self._built(data, self._targets, "target", 0)
        return target

    def condition_from_dict(self, data: Mapping[str, Any]) -> TransitionCondition:
        """The condition of `{"name", "args"}`, nested ones included."""
        return self._condition(data, 0)

    def _condition(self, data: Mapping[str, Any], depth: int) -> TransitionCondition:
        if depth > _DEEPEST:
            raise WorkflowGraphError(f"conditions are nested more than {_DEEPEST} levels deep")
        condition: TransitionCondition = self._built(data, self._conditions, "condition", depth)
        return condition

    def _built(self, data: Any, known: Mapping[str, type[Any]], what: str, depth: int) -> Any:
        part = read_graph_object(_PartObject, data, f"the {what}", "its arguments belong in args")
        name = part.name
        args = json_copy(part.args or {}, f"the args of {name!r}")
        kind = known.get(name)
        if kind is None:
            raise WorkflowGraphError(
                f"no transition {what} is registered under {name!r}{_near(name, known)}; "
                f"known: {', '.join(sorted(known))}; "
                f"an own one is made known with register_{what}(…) before the graph is loaded"
            )
        _check_args(kind, name, args, what)
        for field in getattr(kind, "nested", ()):
            if field in args:
                args[field] = self._nested(args[field], depth + 1)
        try:
            return kind(**args)
        except (TypeError, ValueError) as exc:
            raise WorkflowGraphError(f"the {what} {name!r} refuses {args!r:.200}: {exc}") from exc

    def _nested(self, held: Any, depth: int) -> Any:
        if isinstance(held, list):
            if len(held) > _LONGEST:
                raise WorkflowGraphError(f"a condition has at most {_LONGEST} conditions in it")
            return [self._condition(item, depth) for item in held]
        return self._condition(held, depth)


def register_target(target_cls: type[T]) -> type[T]:
    """Register a custom target process-wide, so that graphs with it load; returns it."""
    return TransitionRegistry.default().register_target(target_cls)


def register_condition(condition_cls: type[C]) -> type[C]:
    """Register a custom condition process-wide, so that graphs with it load; returns it."""
    return TransitionRegistry.default().register_condition(condition_cls)


def part_to_dict(part: TransitionTarget | TransitionCondition) -> dict[str, Any]:
    """`{"name", "args"}` of a target or condition; its fields must be JSON values."""
    name = getattr(part, "name", None)
    if not isinstance(name, str) or isinstance(part, type):
        raise WorkflowGraphError(f"{part!r:.80} is not a target or condition: it has no name")
    nested = getattr(part, "nested", ())
    args: dict[str, Any] = {}
    for field in _fields(part):
        value = getattr(part, field.name)
        if field.name in nested:
            args[field.name] = _nested_to_dict(value)
        else:
            args[field.name] = json_copy(value, f"{type(part).__name__}.{field.name}")
    return {"name": name, "args": args}


def _nested_to_dict(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [part_to_dict(item) for item in value]
    return part_to_dict(value)


def _fields(part: Any) -> tuple[Field[Any], ...]:
    if not is_dataclass(part):
        return ()
    return tuple(field for field in fields(part) if field.init)


def _check_args(kind: type[Any], name: str, args: Mapping[str, Any], what: str) -> None:
    known = {field.name: field for field in _fields(kind)}
    takes = ", ".join(known) or "none"
    for arg in args:
        if arg not in known:
            raise WorkflowGraphError(
                f"the {what} {name!r} has no argument {arg!r}{_near(arg, known)}; it takes {takes}"
            )
    for arg, field in known.items():
        required = field.default is MISSING and field.default_factory is MISSING
        if required and arg not in args:
            raise WorkflowGraphError(f"the {what} {name!r} lacks its argument {arg!r}")


def _check_class(kind: Any, what: str, method: str, builtin: Iterable[str]) -> None:
    where = getattr(kind, "__qualname__", repr(kind))
    if not isinstance(kind, type) or not callable(getattr(kind, method, None)):
        raise WorkflowGraphError(f"{where} is not a {what}: a class with {method}(state, envelope)")
    name = kind.__dict__.get("name", getattr(kind, "name", None))
    if not isinstance(name, str) or not name:
        raise WorkflowGraphError(
            f"{where} has no name; give it a class-level name: ClassVar[str] = …"
        )
    if name in builtin:
        raise WorkflowGraphError(f"{name!r} is a built-in {what}; give {where} another name")
    if not is_dataclass(kind) and "__init__" in kind.__dict__:
        raise WorkflowGraphError(f"{where} is not a dataclass, so its arguments would be lost")


def _near(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
