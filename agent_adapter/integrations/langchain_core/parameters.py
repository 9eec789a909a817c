"""What a LangChain tool takes: from the model, under which name, and from its surroundings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

from agent_adapter.core.errors import ToolDefinitionError

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `kinds` are its annotation and what stands beside it, `shown` its alias."""

    name: str
    kinds: tuple[Any, ...]
    required: bool
    shown: str

    def is_a(self, *classes: type) -> bool:
        """Whether one of `kinds` is one of the classes, or an instance of one."""
        return any(
            issubclass(kind, classes) if isinstance(kind, type) else isinstance(kind, classes)
            for kind in self.kinds
        )


def parameters_of(native: BaseTool) -> dict[str, Parameter]:
    """The parameters of the tool's function and of its model, which says what is required."""
    wrapped = getattr(native, "func", None), getattr(native, "coroutine", None)
    functions = (_own(native, "_run"), _own(native, "_arun"), *wrapped)
    found = {
        parameter.name: parameter for function in functions for parameter in _of_function(function)
    }
    for name, field in fields_of(native.args_schema).items():
        alias = field.validation_alias
        shown = alias if isinstance(alias, str) else name
        kinds = _kinds(field.annotation) + tuple(field.metadata)
        if name in found:
            kinds += found[name].kinds
        found[name] = Parameter(name, kinds, field.is_required(), shown)
    return found


def fields_of(schema: Any) -> Mapping[str, Any]:
    """The fields of a model of Pydantic's second version; none of anything else."""
    fields = getattr(schema, "model_fields", None)
    return fields if isinstance(fields, Mapping) else {}


def refuse_injected(native: BaseTool, parameters: Mapping[str, Parameter]) -> None:
    """Refuse a tool whose surroundings have to fill in what nobody fills in here."""
    from langchain_core.tools import InjectedToolArg, InjectedToolCallId
    from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime

    for parameter in parameters.values():
        if parameter.is_a(InjectedState, InjectedStore, ToolRuntime):
            raise ToolDefinitionError(
                f"{native.name}: its parameter {parameter.name} is filled in by the graph it runs "
                "in, which is not there elsewhere; keep this tool in its graph"
            )
        injected = parameter.is_a(InjectedToolArg) and not parameter.is_a(InjectedToolCallId)
        if injected and parameter.required:
            raise ToolDefinitionError(
                f"{native.name}: its parameter {parameter.name} is an InjectedToolArg that must be "
                "given and that no model may give, and nobody gives it here; give it a default, or "
                "make a tool of a function that gives it"
            )


def aliased_schema(native: BaseTool, parameters: Mapping[str, Parameter]) -> dict[str, Any] | None:
    """The schema by the names that the tool takes; `None` for a tool without aliases.

    LangChain shows the names of the fields, which its own check of the arguments then refuses.
    """
    from langchain_core.tools import InjectedToolArg

    fields = fields_of(native.args_schema)
    if all(field.validation_alias is None for field in fields.values()):
        return None
    model: Any = native.args_schema
    schema: dict[str, Any] = model.model_json_schema()
    schema.pop("description", None)
    hidden = {each.shown for each in parameters.values() if each.is_a(InjectedToolArg)}
    schema["properties"] = {
        name: part for name, part in schema.get("properties", {}).items() if name not in hidden
    }
    schema["required"] = [name for name in schema.get("required", ()) if name not in hidden]
    return schema


def _own(native: BaseTool, name: str) -> Any:
    """The method that the tool's own class has written; LangChain's own say nothing of it."""
    method = getattr(type(native), name)
    return None if method.__module__.startswith("langchain_core.") else method


def _of_function(function: Any) -> Iterator[Parameter]:
    if function is None:
        return
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception:  # a name that is known nowhere but where it was written
        hints = {}
    for name, parameter in inspect.signature(function).parameters.items():
        required = parameter.default is inspect.Parameter.empty
        yield Parameter(name, _kinds(hints.get(name, parameter.annotation)), required, name)


def _kinds(annotation: Any) -> tuple[Any, ...]:
    origin = getattr(annotation, "__origin__", None)
    return (annotation, origin, *getattr(annotation, "__metadata__", ()))
