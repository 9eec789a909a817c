"""The Pydantic model of a tool's arguments, and its JSON Schema."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from agent_adapter.core.errors import ToolDefinitionError
from agent_adapter.core.schema.annotations import Resolver
from agent_adapter.core.schema.docstrings import DocText

_CONFIG = ConfigDict(
    extra="forbid",
    allow_inf_nan=False,
    protected_namespaces=(),
    val_json_bytes="base64",
    ser_json_bytes="base64",
)
_TAKEN = frozenset(dir(BaseModel)) | {"model_config"}


class _NeutralSchema(GenerateJsonSchema):
    """Pydantic's generator without generated titles; raises for a default that it would drop."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        if kind == "non-serializable-default":
            raise ValueError(detail)
        super().emit_warning(kind, detail)


def argument_model(
    name: str,
    parameters: list[inspect.Parameter],
    annotations: dict[str, Any],
    doc: DocText,
    resolver: Resolver,
) -> tuple[type[BaseModel], dict[str, str]]:
    """The model, and the parameter of each of its fields.

    The names differ if a parameter has a name that Pydantic reserves.
    """
    definitions: dict[str, Any] = {}
    fields: dict[str, str] = {}
    for position, parameter in enumerate(parameters):
        field = parameter.name
        if field in _TAKEN or field.startswith("_"):
            field = f"argument_{position}_{field.lstrip('_')}"
        fields[field] = parameter.name
        definitions[field] = _field(parameter, annotations[parameter.name], field, doc)
    try:
        model: type[BaseModel] = create_model(name, __config__=_CONFIG, **definitions)
    except Exception as exc:
        raise _refused_type(name, definitions, fields, exc) from exc
    _complete(name, model, fields, resolver)
    return model, fields


def _field(
    parameter: inspect.Parameter, annotation: Any, field: str, doc: DocText
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
    """Resolves names inside types that are defined in a function."""
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
    """The error for the first parameter for which Pydantic cannot make a schema."""
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


def model_schema(
    name: str, model: type[BaseModel], fields: dict[str, str], secrets: frozenset[str]
) -> dict[str, Any]:
    """The JSON Schema of the model; the defaults of `secrets` are not in it."""
    try:
        return _without_defaults(_generated(model), model, fields, secrets)
    except Exception as exc:
        failure = exc
    for field, info in model.model_fields.items():
        definition: dict[str, Any] = {field: (info.annotation, info)}
        alone: type[BaseModel] = create_model(name, __config__=_CONFIG, **definition)
        try:
            _generated(alone)
        except Exception as exc:
            raise ToolDefinitionError(
                f"tool {name!r}: parameter {info.alias or field!r}: {_schema_problem(exc)}"
            ) from exc
    raise ToolDefinitionError(f"tool {name!r}: {_schema_problem(failure)}") from failure


def _generated(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(mode="validation", schema_generator=_NeutralSchema)
    try:
        json.dumps(schema, allow_nan=False)
    except ValueError as exc:
        raise ValueError("Default value is not a number that JSON has") from exc
    return schema


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
            declared = schema.get("properties", {}).get(alias, {})
            declared.pop("default", None)
            if declared.get("format") != "password":  # the parameter itself says so
                declared.pop("writeOnly", None)
    return schema


def _schema_problem(exc: Exception) -> str:
    if isinstance(exc, ValueError) and "Default value" in str(exc):
        return (
            "its default cannot be written as JSON, so a model could not be shown it; use `None` "
            "and make the value inside the function"
        )
    return f"its type has no JSON Schema ({_first_line(exc)}); use a type that JSON can carry"
