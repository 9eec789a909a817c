"""AgentDojo's functions as tools of this library, in one registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, get_args, get_type_hints

from agent_adapter import Depends, ToolRegistry
from agent_adapter.core.tool import ToolSpec
from workloads.agentdojo.environment import provider_of
from workloads.agentdojo.policy import PolicyName, declared

__all__ = ["adapted", "registry_of", "suite_tools", "tool_name", "tool_of"]


def tool_name(suite: str, function: str) -> str:
    """The name of a suite's function in the registry: five functions are in two suites."""
    return f"{suite}_{function}"


def registry_of(
    suites: Mapping[str, Any], *, confirm: Collection[str] = (), policy: PolicyName = "none"
) -> ToolRegistry:
    """One registry of every function of every suite, named `<suite>_<function>`.

    The functions whose registry name is in `confirm` are held for a person.
    """
    registry = ToolRegistry()
    for suite_name, suite in suites.items():
        for function in suite.tools:
            registry.add(tool_of(suite_name, function, confirm=confirm, policy=policy))
    return registry


def tool_of(
    suite: str, function: Any, *, confirm: Collection[str] = (), policy: PolicyName = "none"
) -> ToolSpec:
    """One of a suite's functions as a tool; held for a person if its name is in `confirm`."""
    name = tool_name(suite, function.name)
    options = declared(function.name, policy)
    if name in confirm:
        options["confirm"] = True
    return ToolSpec.from_function(
        adapted(function),
        name=name,
        tags=("agentdojo", suite),
        **options,
    )


def suite_tools(registry: ToolRegistry, suite: str) -> list[ToolSpec]:
    """The tools that an agent working on `suite` is given."""
    return [spec for spec in registry if suite in spec.tags]


def adapted(function: Any) -> Callable[..., Any]:
    """AgentDojo's `function` with its injected parameters marked the way this library reads them.

    Nothing else changes: name, docstring, the other parameters and the code are its own.
    """
    original = function.run
    hints = get_type_hints(original, include_extras=True)
    parameters = [
        parameter.replace(
            annotation=_annotation(hints[name], function.dependencies.get(name)),
            kind=inspect.Parameter.KEYWORD_ONLY,
        )
        for name, parameter in inspect.signature(original).parameters.items()
    ]

    def call(**arguments: Any) -> Any:
        return original(**arguments)

    returns = hints.get("return", inspect.Signature.empty)
    call.__name__ = original.__name__
    call.__qualname__ = original.__qualname__
    call.__module__ = original.__module__
    call.__doc__ = original.__doc__
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # read by inspect
        parameters, return_annotation=returns
    )
    return call


def _annotation(written: Any, dependency: Any) -> Any:
    """The parameter's type; AgentDojo's marker for what it injects becomes this library's."""
    if dependency is None:
        return written
    return Annotated[get_args(written)[0], Depends(provider_of(dependency))]
