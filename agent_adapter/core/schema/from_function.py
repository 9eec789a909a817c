"""From the signature of a plain function to a Pydantic model of its arguments."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from agent_adapter.core.errors import ToolDefinitionError
from agent_adapter.core.inject import Secret
from agent_adapter.core.schema.annotations import Resolver, written_function
from agent_adapter.core.schema.docstrings import DocText, read_docstring
from agent_adapter.core.schema.injection import Injection, injection_of
from agent_adapter.core.schema.plainness import is_closed, is_plain

__all__ = ["Collects", "FunctionSignature", "collects", "read_function", "runs_async"]

Collects = Literal["sync", "async"]
"""Which kind of generator a tool is, whose items become one list."""

_CONFIG = ConfigDict(
    extra="forbid",
    allow_inf_nan=False,
    protected_namespaces=(),
    val_json_bytes="base64",
    ser_json_bytes="base64",
)
_TAKEN = frozenset(dir(BaseModel)) | {"model_config"}
_REFUSED_KINDS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*args cannot be described to a model; name each parameter",
    inspect.Parameter.VAR_KEYWORD: "**kwargs cannot be described to a model; name each parameter",
    inspect.Parameter.POSITIONAL_ONLY: "it is positional-only; remove the `/` from the signature",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSignature:
    """What a signature says: the model of its arguments, and which parameters are special.

    `fields` maps the model's field names to parameter names where the two differ; `closed` is true
    where every value a model can send has a type of its own (no bare list, dict or `Any`).
    """

    model: type[BaseModel]
    schema: dict[str, Any]
    doc: DocText
    injected: tuple[Injection, ...]
    secrets: frozenset[str]
    fields: dict[str, str]
    returns: Any
    plain: bool
    closed: bool


class _NeutralSchema(GenerateJsonSchema):
    """Pydantic's generator without generated titles, and without silence about lost defaults."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        if kind == "non-serializable-default":
            raise ValueError(detail)
        super().emit_warning(kind, detail)


def read_function(name: str, fn: Callable[..., Any]) -> FunctionSignature:
    """The arguments of `fn` as a model; `ToolDefinitionError` says which parameter does not fit."""
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
            annotations[parameter.name] = annotation
    supplied = [parameter for parameter in parameters if parameter.name in annotations]
    model, fields = _model(name, supplied, annotations, doc)
    _complete(name, model, fields, resolver)
    plain = all(map(is_plain, annotations.values())) and not any(
        isinstance(parameter.default, FieldInfo) for parameter in supplied
    )
    secrets = _secrets(name, annotations)
    schema = _without_defaults(_json_schema(name, model), model, fields, secrets)
    return FunctionSignature(
        model=model,
        schema=schema,
        doc=doc,
        injected=tuple(injected),
        secrets=secrets,
        fields=fields,
        returns=_returned(returns, resolver),
        plain=plain,
        closed=plain and all(map(is_closed, annotations.values())),
    )


def runs_async(fn: Callable[..., Any]) -> bool:
    """Whether calling `fn` gives something to await."""
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
    """The return type, or `None` where it is not stated or cannot be read: a result needs none."""
    if annotation is inspect.Signature.empty:
        return None
    try:
        return resolver.resolve("the result", annotation)
    except ToolDefinitionError:
        return None


def _model(
    name: str, parameters: list[inspect.Parameter], annotations: dict[str, Any], doc: DocText
) -> tuple[type[BaseModel], dict[str, str]]:
    definitions: dict[str, Any] = {}
    fields: dict[str, str] = {}
    for position, parameter in enumerate(parameters):
        field = parameter.name
        if field in _TAKEN or field.startswith("_"):
            field = f"argument_{position}_{field.lstrip('_')}"
        fields[field] = parameter.name
        definitions[field] = _field(name, parameter, annotations[parameter.name], field, doc)
    try:
        model: type[BaseModel] = create_model(name, __config__=_CONFIG, **definitions)
    except Exception as exc:
        raise _refused_type(name, definitions, fields, exc) from exc
    return model, fields


def _field(
    name: str, parameter: inspect.Parameter, annotation: Any, field: str, doc: DocText
) -> tuple[Any, Any]:
    extras: dict[str, Any] = {}
    if parameter.name in doc.parameters:
        extras["description"] = doc.parameters[parameter.name]
    if field != parameter.name:
        extras["alias"] = parameter.name
    if extras:
        annotation = _beneath(annotation, Field(**extras))
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return annotation, default


def _beneath(annotation: Any, extra: Any) -> Any:
    """`annotation` with `extra` before its own metadata, which therefore wins over it."""
    if get_origin(annotation) is Annotated:
        base, *metadata = get_args(annotation)
        return Annotated[(base, extra, *metadata)]
    return Annotated[annotation, extra]


def _complete(
    name: str, model: type[BaseModel], fields: dict[str, str], resolver: Resolver
) -> None:
    """Resolves names inside of types that were themselves defined in a function."""
    if model.__pydantic_complete__:
        return
    try:
        model.model_rebuild(_types_namespace=resolver.names())
    except Exception as exc:
        raise ToolDefinitionError(
            f"tool {name!r}: a type of {', '.join(fields.values())} refers to something that does "
            f"not exist at run time ({_first_line(exc)}); define it before the tool"
        ) from exc


def _refused_type(
    name: str, definitions: dict[str, Any], fields: dict[str, str], exc: Exception
) -> ToolDefinitionError:
    """The refusal of the first parameter for which Pydantic cannot make a schema by itself."""
    for field, definition in definitions.items():
        try:
            create_model(name, __config__=_CONFIG, **{field: definition})
        except Exception as own:
            return ToolDefinitionError(
                f"tool {name!r}: parameter {fields[field]!r}: {_type_problem(own)}"
            )
    return ToolDefinitionError(f"tool {name!r}: {_type_problem(exc)}")


def _type_problem(exc: Exception) -> str:
    if isinstance(exc, PydanticUserError) and exc.code == "typed-dict-version":
        return "use `typing_extensions.TypedDict` instead of `typing.TypedDict` before Python 3.12"
    if isinstance(exc, PydanticSchemaGenerationError):
        return (
            f"Pydantic cannot make a schema of its type ({_first_line(exc)}); use a type that JSON "
            "can carry, a Pydantic model, or `Annotated[T, Depends(provider)]` to inject it"
        )
    return f"Pydantic refuses its type or default ({_first_line(exc)}); change the annotation"


def _first_line(exc: Exception) -> str:
    text = str(exc).strip().splitlines()
    return text[0].split(". ")[0].rstrip(".") if text else type(exc).__name__


def _json_schema(name: str, model: type[BaseModel]) -> dict[str, Any]:
    try:
        return model.model_json_schema(mode="validation", schema_generator=_NeutralSchema)
    except Exception as exc:
        failure = exc
    for field, info in model.model_fields.items():
        definition: dict[str, Any] = {field: (info.annotation, info)}
        alone: type[BaseModel] = create_model(name, __config__=_CONFIG, **definition)
        try:
            alone.model_json_schema(mode="validation", schema_generator=_NeutralSchema)
        except Exception as exc:
            raise ToolDefinitionError(
                f"tool {name!r}: parameter {info.alias or field!r}: {_schema_problem(exc)}"
            ) from exc
    raise ToolDefinitionError(f"tool {name!r}: {_schema_problem(failure)}") from failure


def _without_defaults(
    schema: dict[str, Any],
    model: type[BaseModel],
    fields: dict[str, str],
    secrets: frozenset[str],
) -> dict[str, Any]:
    """`schema` without the defaults of secrets, which a model would otherwise read."""
    for field, parameter in fields.items():
        if parameter in secrets:
            alias = model.model_fields[field].alias or field
            schema.get("properties", {}).get(alias, {}).pop("default", None)
    return schema


def _schema_problem(exc: Exception) -> str:
    if isinstance(exc, ValueError) and "Default value" in str(exc):
        return (
            "its default cannot be written as JSON, so a model could not be shown it; use `None` "
            "and make the value inside the function"
        )
    return f"its type has no JSON Schema ({_first_line(exc)}); use a type that JSON can carry"


def _secrets(name: str, annotations: dict[str, Any]) -> frozenset[str]:
    found = set()
    for parameter, annotation in annotations.items():
        if get_origin(annotation) is Annotated:
            base, *metadata = get_args(annotation)
            if any(isinstance(item, Secret) or item is Secret for item in metadata):
                found.add(parameter)
            annotation = base
        if _mentions_secret(annotation, set()):
            raise ToolDefinitionError(
                f"tool {name!r}: parameter {parameter!r} has Secret() inside its type; only a "
                "whole top-level parameter can be secret: write `Annotated[T, Secret()]` around it"
            )
    return frozenset(found)


def _mentions_secret(annotation: Any, seen: set[int]) -> bool:
    if isinstance(annotation, Secret) or annotation is Secret:
        return True
    if id(annotation) in seen:
        return False
    seen.add(id(annotation))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        parts: list[Any] = []
        for info in annotation.model_fields.values():
            parts += [info.annotation, *info.metadata]
        return any(_mentions_secret(part, seen) for part in parts)
    if isinstance(annotation, types.GenericAlias) or get_args(annotation):
        return any(_mentions_secret(part, seen) for part in get_args(annotation))
    return False
