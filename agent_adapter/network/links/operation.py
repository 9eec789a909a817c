"""`HubOperation`: a request that a client may make, read from the method that declares it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import cached_property
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    create_model,
)

from agent_adapter.core.errors import ProtocolError
from agent_adapter.core.records import StrictModel, problems
from agent_adapter.network.links.access import Access
from agent_adapter.network.turns.turn_types import TurnRef

_DECLARED = "__operation__"

F = TypeVar("F", bound=Callable[..., Any])


class HubOperation:
    """A declared operation.

    Attributes:
        name: what a request gives as its `op`.
        method: the declaration; its signature gives the parameters and the result.
        access: the conditions under which a connection may ask; all must hold.
        repeatable: whether it may be done again when a client repeats the request after a cut. The
            answers of all other operations are kept, so that a repeated request is done once.
    """

    def __init__(
        self, method: Callable[..., Any], access: tuple[Access, ...], repeatable: bool
    ) -> None:
        self.name = method.__name__
        self.method = method
        self.access = access
        self.repeatable = repeatable
        self._signature = inspect.signature(method)
        _, *self._parameters = self._signature.parameters.values()

    @property
    def summary(self) -> str:
        """The first line of the declaration's docstring."""
        return (inspect.getdoc(self.method) or "").partition("\n")[0]

    # Models are built when they are first used: a program with a local hub needs none of them.
    @cached_property
    def parameters(self) -> type[BaseModel]:
        """The model of a request's parameters."""
        hints = get_type_hints(self.method, include_extras=True)
        fields: dict[str, Any] = {
            item.name: (
                _readable(hints[item.name]),
                ... if item.default is item.empty else item.default,
            )
            for item in self._parameters
        }
        return create_model(self.name, __base__=StrictModel, **fields)

    @cached_property
    def result(self) -> TypeAdapter[Any]:
        """Reads what the hub answers."""
        return TypeAdapter(_readable(get_type_hints(self.method, include_extras=True)["return"]))

    def read(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that a request has; `ProtocolError` names operation, field and problem."""
        try:
            return dict(self.parameters.model_validate(params))
        except ValidationError as exc:
            raise ProtocolError(f"{self.name}: {problems(exc, 'parameters')}") from None

    def written(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call as the parameters of a request."""
        bound = self._signature.bind(None, *args, **kwargs)
        bound.apply_defaults()
        _, *arguments = bound.arguments.items()
        return {name: to_wire(value) for name, value in arguments}

    async def call(self, target: Any, arguments: Mapping[str, Any]) -> Any:
        """Call the method of this name on `target`."""
        # Positional where the declaration says so: there the hub's own names may differ.
        first = [item.name for item in self._parameters if item.kind is item.POSITIONAL_ONLY]
        rest = {name: value for name, value in arguments.items() if name not in first}
        return await getattr(target, self.name)(*(arguments[name] for name in first), **rest)


def operation(*access: Access, repeatable: bool = False) -> Callable[[F], F]:
    """Declare an operation that connections may ask for under every condition of `access`."""
    if not access:
        raise TypeError("an operation states who may ask for it; ANYBODY is one answer")

    def declare(method: F) -> F:
        setattr(method, _DECLARED, HubOperation(method, access, repeatable))
        return method

    return declare


def operations_of(declaring: type[Any]) -> dict[str, HubOperation]:
    """The operations that a class declares, by name."""
    found = (getattr(member, _DECLARED, None) for member in vars(declaring).values())
    return {item.name: item for item in found if item is not None}


def to_wire(value: Any) -> Any:
    """`value` as JSON: records as their `to_dict`, a turn by its id and attempt."""
    if isinstance(value, TurnRef):
        return {"turn_id": value.turn_id, "attempt": value.attempt}
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (list, tuple)):
        return [to_wire(item) for item in value]
    return value


def _readable(kind: Any) -> Any:
    """`kind` for pydantic, with records read by their own `from_dict`."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return Annotated[(_readable(parts[0]), *parts[1:])]
    if origin in (UnionType, Union):
        return Union[tuple(map(_readable, parts))]  # noqa: UP007  # made at run time
    if origin in (list, Sequence):
        return origin[_readable(parts[0])]
    if kind is TurnRef:
        return Annotated[TurnRef, PlainValidator(_turn_ref)]
    if isinstance(kind, type) and hasattr(kind, "from_dict"):
        return Annotated[kind, PlainValidator(_record_reader(kind))]
    return kind


def _record_reader(kind: Any) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        try:
            return kind.from_dict(value)
        except ProtocolError as exc:
            # As a ValueError it becomes one problem of the request, with the field's name.
            raise ValueError(str(exc)) from None

    return read


def _turn_ref(value: Any) -> TurnRef:
    """The attempt that a client names; the owner's id never leaves the hub."""
    match value:
        case {"turn_id": str(turn_id), "attempt": int(attempt)}:
            return TurnRef(turn_id=turn_id, channel_id="", attempt=attempt, owner_id="")
    raise ValueError("a turn is an object with turn_id (string) and attempt (integer)")
