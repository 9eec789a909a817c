"""Makes a Pydantic model of the arguments of a plain function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agent_adapter.core.errors import ToolDefinitionError
from agent_adapter.core.schema.annotations import Resolver, written_function
from agent_adapter.core.schema.argument_model import (
    argument_model,
    model_schema,
)
from agent_adapter.core.schema.docstrings import DocText, read_docstring
from agent_adapter.core.schema.injection import Injection, injection_of
from agent_adapter.core.schema.json_types import is_closed, is_plain
from agent_adapter.core.schema.normal import normal
from agent_adapter.core.schema.parameter_types import described_type, refuse_one_shot
from agent_adapter.core.schema.secret_parts import is_whole, secret_marks
from agent_adapter.core.schema.sinks import Marks

Collects = Literal["sync", "async"]
"""Which kind of generator a tool is, whose items become one list."""

_REFUSED_KINDS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*args cannot be described to a model; name each parameter",
    inspect.Parameter.VAR_KEYWORD: "**kwargs cannot be described to a model; name each parameter",
    inspect.Parameter.POSITIONAL_ONLY: "it is positional-only; remove the `/` from the signature",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSignature:
    """The result of reading a signature: the model of its arguments, and the special parameters.

    `fields` maps the model's field names to parameter names if they differ; `closed` is true if
    every value that a model can send has a specific type (no bare list, dict or `Any`).
    """

    model: type[BaseModel]
    schema: dict[str, Any]
    doc: DocText
    injected: tuple[Injection, ...]
    secrets: frozenset[str]
    secret_parts: dict[str, Marks]
    fields: dict[str, str]
    returns: Any
    plain: bool
    closed: bool


def read_function(name: str, fn: Callable[..., Any]) -> FunctionSignature:
    """The arguments of `fn` as a model; `ToolDefinitionError` names an unusable parameter."""
    resolver = Resolver(name, fn)
    parameters, returns = _signature(name, fn)
    doc = read_docstring(_docstring(fn))
    injected: list[Injection] = []
    annotations: dict[str, Any] = {}
    for parameter in parameters:
        annotation = _annotation(name, parameter, resolver)
        injection = injection_of(parameter.name, annotation)
        if injection is not None:
            injected.append(injection)
        else:
            refuse_one_shot(name, parameter.name, annotation)
            annotations[parameter.name] = described_type(annotation)
    supplied = [parameter for parameter in parameters if parameter.name in annotations]
    model, fields = argument_model(name, supplied, annotations, doc, resolver)
    plain = all(map(is_plain, annotations.values())) and not any(
        isinstance(parameter.default, FieldInfo) for parameter in supplied
    )
    marked = secret_marks(annotations)
    secrets = frozenset(marked)
    parts = {each: marks for each, marks in marked.items() if not is_whole(marks)}
    return FunctionSignature(
        model=model,
        schema=_normal_schema(name, model_schema(name, model, fields, secrets - parts.keys())),
        doc=doc,
        injected=tuple(injected),
        secrets=secrets,
        secret_parts=parts,
        fields=fields,
        returns=_returned(returns, resolver),
        plain=plain,
        closed=plain and all(map(is_closed, annotations.values())),
    )


def _normal_schema(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Pydantic's schema is normal except for `json_schema_extra` and custom types."""
    try:
        return normal(schema)
    except ValueError as exc:
        text = str(exc).removeprefix("it ")
        raise ToolDefinitionError(f"tool {name!r}: its JSON Schema {text}") from exc


def runs_async(fn: Callable[..., Any]) -> bool:
    """Whether calling `fn` returns an awaitable."""
    return any(inspect.iscoroutinefunction(part) for part in _call_layers(fn))


def collects(fn: Callable[..., Any]) -> Collects | None:
    """Which kind of generator function `fn` is, if any."""
    for part in _call_layers(fn):
        if inspect.isasyncgenfunction(part):
            return "async"
        if inspect.isgeneratorfunction(part):
            return "sync"
    return None


def _call_layers(fn: Callable[..., Any]) -> tuple[Any, ...]:
    while isinstance(fn, functools.partial):
        fn = fn.func
    if inspect.isroutine(fn):
        return (fn,)
    return (fn, getattr(type(fn), "__call__", None))  # noqa: B004  # the method itself is wanted


def _signature(name: str, fn: Callable[..., Any]) -> tuple[list[inspect.Parameter], Any]:
    if isinstance(fn, type) or not callable(fn):
        raise ToolDefinitionError(
            f"tool {name!r}: {fn!r} is not a function; give a function, a bound method or an "
            "object with `__call__`"
        )
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError) as exc:
        raise ToolDefinitionError(
            f"tool {name!r}: {fn!r} has no signature to read ({exc}); wrap it in a function"
        ) from exc
    bound = fn.keywords if isinstance(fn, functools.partial) else {}
    parameters = [param for param in signature.parameters.values() if param.name not in bound]
    for parameter in parameters:
        refusal = _REFUSED_KINDS.get(parameter.kind)
        if refusal is not None:
            raise ToolDefinitionError(f"tool {name!r}: parameter {parameter.name!r}: {refusal}")
    return parameters, signature.return_annotation


def _docstring(fn: Callable[..., Any]) -> str | None:
    own = fn if inspect.isroutine(fn) else written_function(fn)
    text = own.__doc__ or written_function(fn).__doc__
    if text is None and not inspect.isroutine(fn) and not isinstance(fn, functools.partial):
        text = type(fn).__doc__
    return text


def _annotation(name: str, parameter: inspect.Parameter, resolver: Resolver) -> Any:
    if parameter.annotation is inspect.Parameter.empty:
        fix = (
            "decorate a bound method instead, such as `tool(instance.method)`"
            if parameter.name in ("self", "cls")
            else f"write `{parameter.name}: <type>`"
        )
        raise ToolDefinitionError(
            f"tool {name!r}: parameter {parameter.name!r} has no annotation; {fix}"
        )
    return resolver.resolve(f"parameter {parameter.name!r}", parameter.annotation)


def _returned(annotation: Any, resolver: Resolver) -> Any:
    """The return type; `None` if it is missing or unreadable, since a result does not need one."""
    if annotation is inspect.Signature.empty:
        return None
    try:
        return resolver.resolve("the result", annotation)
    except ToolDefinitionError:
        return None
