"""`Policy`: what a call of an agent's own tool may do, for tools that no `ToolSpec` describes."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agent_adapter.core.errors import ToolDefinitionError
from agent_adapter.core.names import fitting_name
from agent_adapter.core.policy import checked_options
from agent_adapter.core.second_names import SPEC_ATTRIBUTE
from agent_adapter.core.tool import Confirm, ToolSpec
from agent_adapter.core.types import CachePolicy, Effects, RetryPolicy, Trust

ALL = "*"
"""The name under which a policy for all of an agent's own tools is given."""

_MOST_SPECS = 4096
_log = logging.getLogger("agent_adapter.network")

C = TypeVar("C", bound=type[Any])


def _names_unknown_options(cls: C) -> C:
    """Let `cls` refuse an unknown option with the near match."""
    made = cls.__init__
    known = [item.name for item in dataclasses.fields(cls)]

    @functools.wraps(made)
    def __init__(self: Any, /, **options: Any) -> None:
        for name in options:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                raise ToolDefinitionError(
                    f"Policy has no option {name!r}{hint}; its options are {', '.join(known)}"
                )
        made(self, **options)

    cls.__init__ = __init__
    return cls


@_names_unknown_options
@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What calls of an agent's own (native) tool may do in a channel; `None` says nothing.

    The options are those of `@tool`, with the same meaning. Without any a native tool is
    `idempotent`: its recorded outcome answers for a call that ended, a call that failed or was cut
    off runs again, and no person is asked. Raises `ToolDefinitionError` for an invalid option.
    """

    effects: Effects | None = None
    confirm: Confirm | None = None
    trust: Trust | None = None
    egress: bool | None = None
    timeout: float | None = None
    retries: RetryPolicy | None = None
    cache: CachePolicy | None = None
    cache_key: Callable[[Any, Any], str] | None = None
    cost: float | Callable[[Any], float] | None = None
    tags: tuple[str, ...] | None = None
    version: str | None = None
    once_key: Callable[[Any], str] | None = None
    source: bool | None = None
    sinks: Mapping[str, str] | tuple[tuple[str, str], ...] | None = None
    workflow: bool | None = None

    def __post_init__(self) -> None:
        checked_options("Policy", self.stated())

    def stated(self) -> dict[str, Any]:
        """The options that say something."""
        each = ((item.name, getattr(self, item.name)) for item in dataclasses.fields(self))
        return {name: value for name, value in each if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeTool:
    """An agent's own tool, as far as it is known.

    `function` is what it runs, `confirm` whether its framework would ask before a call.
    """

    function: Any = None
    description: str = ""
    confirm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeTools:
    """An agent's own tools by name; not `complete` where some are known only while it runs."""

    tools: Mapping[str, NativeTool] = field(default_factory=dict)
    complete: bool = True

    def find(self, name: str) -> NativeTool:
        """The tool of that name; one that nothing is known of otherwise."""
        return self.tools.get(name) or NativeTool()


class NativePolicies:
    """The policies of one participant's own tools; makes the spec that governs each of them.

    The most specific statement counts, option by option: the user's for this tool, `@tool` on its
    function, the user's for all (`"*"`), then the defaults. A gate of the author's stays unless the
    user's policy for this very tool says `confirm`.
    """

    def __init__(self, said: Mapping[str, Policy] | None = None) -> None:
        self.said = dict(said or {})
        self._specs: dict[tuple[str, int, bool, Trust], ToolSpec] = {}
        for name, policy in self.said.items():
            if not isinstance(policy, Policy):
                raise ToolDefinitionError(
                    f"tools[{name!r}] is {policy!r}, not a Policy; write "
                    f"tools={{{name!r}: Policy(effects='write')}}"
                )

    def check(self, known: NativeTools, whose: str) -> None:
        """Raise `ToolDefinitionError` for a tool that the agent does not have.

        If some tools are known only while it runs, a name that is not known yet is logged.
        """
        for name in self.said:
            if name == ALL or name in known.tools:
                continue
            text = f"{whose} has no tool {name!r}{_near(name, known.tools)}"
            if known.complete:
                raise ToolDefinitionError(text)
            _log.warning("%s; the policy applies if it gets a tool of that name", text)
        for name, tool in known.tools.items():
            if self.said or declared_spec(tool.function) is not None:
                self._made(name, tool, _unrun, "", "untrusted")  # refuses what does not fit

    def spec(
        self,
        name: str,
        tool: NativeTool,
        run: Callable[..., Any],
        *,
        noun: str,
        trust: Trust = "untrusted",
    ) -> ToolSpec:
        """The spec under which calls of the tool run; `run` runs the one that is under way.

        The agent's framework checks the arguments itself. `trust` holds unless a policy says more.
        """
        key = (name, id(tool.function), tool.confirm, trust)
        spec = self._specs.get(key)
        if spec is None:
            if len(self._specs) >= _MOST_SPECS:  # a model invents names
                self._specs.clear()
            spec = self._specs[key] = self._made(name, tool, run, noun, trust)
        return spec

    def _made(
        self, name: str, tool: NativeTool, run: Callable[..., Any], noun: str, trust: Trust
    ) -> ToolSpec:
        described = tool.description.strip() or f"The {noun} tool {name}.".replace("  ", " ")
        spec = ToolSpec.from_json_schema(fitting_name(name), described, {"type": "object"}, run)
        declared = declared_spec(tool.function)
        marked: dict[str, Any] = {}
        if declared is not None:
            marked = {"marks": declared.marks, "secret_parts": declared.secret_parts}
            marked["secrets"] = declared.secrets | _write_only(declared)
        options = self._options(name, tool, trust)
        return dataclasses.replace(spec, native=True, **marked, **options)

    def _options(self, name: str, tool: NativeTool, trust: Trust) -> dict[str, Any]:
        for_all, for_this = self._stated(ALL), self._stated(name)
        options: dict[str, Any] = {"effects": "idempotent", "trust": trust, **for_all}
        declared = declared_spec(tool.function)
        if declared is not None:
            options |= _declared_options(declared, for_all)
        if tool.confirm:
            options["confirm"] = True
        return options | for_this

    def _stated(self, name: str) -> dict[str, Any]:
        policy = self.said.get(name)
        return {} if policy is None else policy.stated()


def _unrun(**arguments: Any) -> None:
    """Stands for the tool where only its policy is checked."""


def declared_spec(function: Any) -> ToolSpec | None:
    """The spec that `@tool` has left on a native tool's function."""
    found = getattr(function, SPEC_ATTRIBUTE, None)
    return found if isinstance(found, ToolSpec) else None


def _write_only(spec: ToolSpec) -> frozenset[str]:
    """Parameters whose type is a secret of Pydantic's: here their values are plain JSON."""
    declared = spec.arguments.schema.get("properties", {})
    return frozenset(name for name, schema in declared.items() if schema.get("writeOnly"))


def _declared_options(spec: ToolSpec, for_all: Mapping[str, Any]) -> dict[str, Any]:
    """What the author said: the effects, and every other option that differs from its default."""
    defaults = {item.name: item.default for item in dataclasses.fields(ToolSpec)}
    said: dict[str, Any] = {"effects": spec.effects}
    if "trust" not in for_all:
        said["trust"] = spec.trust
    for item in dataclasses.fields(Policy):
        value = getattr(spec, item.name)
        if item.name not in said and value != defaults[item.name]:
            said[item.name] = value
    return said


def _near(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"{hint}; it has {', '.join(sorted(known)) or 'none of its own'}"


NO_POLICIES = NativePolicies()
"""The policies of a participant that was given none."""
