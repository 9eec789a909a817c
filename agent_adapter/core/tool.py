"""`ToolSpec`: one tool, compiled once and immutable."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, from_json, to_jsonable_python

from agent_adapter.core.canonical import SecretValue, digest, keyed_hash, tagged
from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import ToolArgsInvalid, ToolDefinitionError
from agent_adapter.core.generators import entry_of
from agent_adapter.core.injecting import injected_values
from agent_adapter.core.policy import checked_name, checked_policy
from agent_adapter.core.results import ResultCodec
from agent_adapter.core.schema import sinks
from agent_adapter.core.schema.dialects import neutral
from agent_adapter.core.schema.from_function import Collects, collects, read_function, runs_async
from agent_adapter.core.schema.injection import Injection, register_injection
from agent_adapter.core.schema.mending import json_text_at, mended
from agent_adapter.core.schema.secret_parts import masked_at
from agent_adapter.core.schema.sinks import Marks, SinkValue
from agent_adapter.core.second_names import SPEC_ATTRIBUTE, inherited
from agent_adapter.core.types import CachePolicy, Effects, RetryPolicy, Trust
from agent_adapter.core.validation import ArgumentCheck, ModelCheck, dump

__all__ = ["SPEC_ATTRIBUTE", "Confirm", "Injection", "ToolSpec", "register_injection", "spec_of"]

Confirm = bool | Literal["tainted", "provenance"] | Callable[[Any, Any], Any]
"""When a person is asked: always, never, in a tainted run, or if `(args, ctx)` returns true.

With `"provenance"` a person is asked where a tainted conversation gives a sink a value that neither
the user nor a trusted source named.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class ToolSpec:
    """One tool: what a model sees, the function, and the policy of its calls.

    Made by `from_function` (or the `tool` decorators) and `from_json_schema`; equal only to itself.
    `timeout` is in seconds, `cost` in the unit of `RunLimits.max_cost`, `targets=None` means every
    integration. `injected` are the parameters no model can supply, `secrets` those that are masked.
    `plain` is true if the arguments have only JSON types, so that their digest is stable.
    `cache_key` is what a cached result depends on besides the arguments: `(args, ctx) -> str`.
    `workflow` says that all it does is in the calls and steps that it makes: it may be entered
    again from its start, where those that ended give their recorded outcomes.
    `json_text` accepts the JSON text of an object or array where one belongs.
    `collects` names the kind of a generator function, whose result is the list of its items.
    `native` is true for a tool of a framework's own, as a channel's round governs it: its failures
    are the framework's to show, and where repeating it is safe a call that failed is run again.
    `source` says that nobody but its owner writes into its results; `irreversible` that nothing can
    take back what it does, so that a person confirms an approval twice. `sinks` maps arguments to
    kinds of sinks where annotations cannot be marked (`{"payee.account": "account"}`); `marks` are
    those of the annotations.
    """

    name: str
    description: str
    fn: Callable[..., Any]
    parameters: type[BaseModel] | None = field(default=None, repr=False)
    targets: frozenset[str] | None = None
    confirm: Confirm = False
    effects: Effects = "write"
    trust: Trust = "trusted"
    egress: bool = False
    timeout: float | None = None
    retries: RetryPolicy | None = None
    cache: CachePolicy | None = None
    cost: float | Callable[[Any], float] | None = None
    tags: tuple[str, ...] = ()
    version: str | None = None
    once_key: Callable[[Any], str] | None = None
    cache_key: Callable[[Any, Any], str] | None = None
    json_text: bool = False
    workflow: bool = False
    source: bool = False
    irreversible: bool = False
    sinks: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    is_async: bool = field(default=False, repr=False)
    collects: Collects | None = field(default=None, repr=False)
    injected: tuple[Injection, ...] = field(default=(), repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    secret_parts: Mapping[str, Marks] = field(default_factory=dict, repr=False)
    plain: bool = field(default=False, repr=False)
    marks: Marks | None = field(default=None, repr=False)
    native: bool = field(default=False, repr=False)
    arguments: ArgumentCheck = field(repr=False)
    result: ResultCodec = field(repr=False)
    entry: Callable[..., Any] = field(repr=False)
    _fingerprint: str | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        checked_name(self.name)
        described: Any = self.description
        if not isinstance(described, str) or not described.strip():
            raise ToolDefinitionError(
                f"tool {self.name!r} has no description; write a docstring or give `description=`, "
                "since a model chooses by it"
            )
        policy = checked_policy(self.name, {key: getattr(self, key) for key in _POLICY})
        for key, value in policy.items():
            object.__setattr__(self, key, value)
        if self.confirm == "provenance" and not sinks.any_in(self):
            raise ToolDefinitionError(
                f"tool {self.name!r}: confirm='provenance' needs an argument that decides where "
                "something goes: mark it, such as `to: Annotated[str, Sink('recipient')]`, or say "
                "sinks={'to': 'recipient'}"
            )
        if self.cache is not None and self.cache_key is None and self.injected:
            raise ToolDefinitionError(
                f"tool {self.name!r}: cache with the injected parameter "
                f"{self.injected[0].name!r} needs cache_key=, a callable (args, ctx) -> str: say"
                " what the result depends on besides its arguments, or remove `cache`"
            )

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        **policy: Any,
    ) -> ToolSpec:
        """The tool made of `fn`; `ToolDefinitionError` names what is invalid.

        Where `fn` is a tool under another name, `confirm`, `effects` and `trust` are as there
        unless they are given.
        """
        chosen = checked_name(name if name is not None else _name_of(fn))
        _refuse_unknown(chosen, policy)
        policy = inherited(fn, policy)
        read = read_function(chosen, fn)
        text = description if description is not None else read.doc.description
        try:
            check = ModelCheck(
                read.model,
                read.schema,
                fields=read.fields,
                secrets=read.secrets,
                plain=read.plain,
                closed=read.closed,
            )
        except ValueError as exc:
            raise ToolDefinitionError(f"tool {chosen!r}: {exc}") from exc
        return cls(
            name=chosen,
            description=text,
            fn=fn,
            parameters=read.model,
            is_async=runs_async(fn),
            collects=collects(fn),
            injected=read.injected,
            secrets=read.secrets,
            secret_parts=read.secret_parts,
            plain=read.plain,
            marks=sinks.marks_of(read.model),
            arguments=check,
            result=ResultCodec(None if collects(fn) else read.returns),
            entry=entry_of(fn, collects(fn)),
            **policy,
        )

    @classmethod
    def from_json_schema(
        cls,
        name: str,
        description: str,
        schema: Mapping[str, Any],
        fn: Callable[..., Any],
        **policy: Any,
    ) -> ToolSpec:
        """A foreign tool: arguments are checked by `schema` and passed to `fn` by keyword.

        By default its results are untrusted and it counts as a write.
        """
        # Loading jsonschema takes as long as loading Pydantic, and most programs do not need it.
        from agent_adapter.core.schema.from_json_schema import SchemaCheck, injected_by_annotation

        chosen = checked_name(name)
        _refuse_unknown(chosen, policy)
        if not callable(fn):
            raise ToolDefinitionError(f"tool {chosen!r}: fn is {fn!r}, which cannot be called")
        injected = injected_by_annotation(chosen, fn)
        return cls(
            name=chosen,
            description=description,
            fn=fn,
            is_async=runs_async(fn),
            collects=collects(fn),
            injected=injected,
            plain=True,
            arguments=SchemaCheck(chosen, schema, frozenset(item.name for item in injected)),
            result=ResultCodec(None),
            entry=entry_of(fn, collects(fn)),
            **{"trust": "untrusted", "egress": True, **policy},
        )

    def json_schema(self) -> dict[str, Any]:
        """The neutral schema: JSON Schema 2020-12, self-contained, untitled, a fresh copy."""
        return neutral(self.arguments.schema)

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The values to pass by keyword, without injected ones; `ToolArgsInvalid` lists flaws."""
        try:
            return self.arguments.validate(self.name, args)
        except ToolArgsInvalid:
            if not self.json_text:
                raise
        return self.arguments.validate(self.name, self._with_json_read(args))

    async def validated(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Like `validate`; large arguments are checked without blocking the event loop."""
        if self.arguments.is_large(args):
            return await asyncio.to_thread(self.validate, args)
        return self.validate(args)

    def _with_json_read(self, args: Any) -> Any:
        """`args` with JSON text replaced by its value, also if all of it is text."""
        schema = self.arguments.schema
        whole = json_text_at(schema, args, schema)
        return mended(schema, args if whole is None else whole, json_text=True)

    def dump(self, values: Mapping[str, Any]) -> bytes:
        """Validated `values` as JSON under the schema's names; secrets are written in clear."""
        return dump(self.arguments, values)

    def masked(self, values: Mapping[str, Any], key: bytes) -> dict[str, Any]:
        """Validated `values` as JSON values, each secret replaced by its keyed hash."""
        if not self.secrets:
            try:
                return self._json_ready(values, key)
            except PydanticSerializationError:
                pass  # a value needs the serialiser of its type: they are written one by one
        shown: dict[str, Any] = {}
        for name, value in values.items():
            if name in self.secret_parts:
                for public, part in self._shown(name, value, key).items():
                    shown[public] = masked_at(self.secret_parts[name], part, key)
            elif name in self.secrets:
                shown[self.arguments.public_name(name)] = self._hashed(name, value, key)
            else:
                shown |= self._shown(name, value, key)
        return shown

    def _json_ready(self, values: Mapping[str, Any], key: bytes) -> dict[str, Any]:
        public = self.arguments.public(values, lambda secret: tagged(secret, key))
        ready: dict[str, Any] = to_jsonable_python(
            public, bytes_mode="base64", inf_nan_mode="strings"
        )
        return ready

    def _shown(self, name: str, value: Any, key: bytes) -> dict[str, Any]:
        try:
            return self._json_ready({name: value}, key)
        except PydanticSerializationError:
            (shown,) = from_json(self.arguments.serialised({name: value})).values()
        return {self.arguments.public_name(name): shown}

    def _hashed(self, name: str, value: Any, key: bytes) -> Any:
        try:
            return tagged(SecretValue(value), key)
        except (TypeError, ValueError):
            return {"$secret": keyed_hash(key, self.arguments.serialised({name: value}))}

    def call(self, values: Mapping[str, Any], injected: Mapping[str, Any]) -> Any:
        """The function's return value for checked `values`: an awaitable if `is_async`."""
        return self.entry(**values, **injected)

    async def invoke(self, args: Mapping[str, Any], ctx: ToolContext | None = None) -> Any:
        """Checks `args`, calls the function and returns its result, without policy and record."""
        values = self.validate(args)
        if not self.injected:
            result = self.entry(**values)
            return await result if inspect.isawaitable(result) else result
        async with injected_values(self.injected, ctx) as injected:
            result = self.entry(**values, **injected)
            return await result if inspect.isawaitable(result) else result

    def sink_values(self, values: Mapping[str, Any]) -> list[SinkValue]:
        """What validated `values` give the sinks, but for defaults that were left as they are."""
        return sinks.values_in(self, from_json(self.dump(values)))

    def encode_result(self, value: Any) -> tuple[str, bytes]:
        """`value` as a tag and bytes for a record; see `ResultCodec`."""
        return self.result.encode(value)

    def decode_result(self, tag: str, data: bytes) -> Any:
        """The value that `encode_result` wrote."""
        return self.result.decode(tag, data)

    def replace(self, **changes: Any) -> ToolSpec:
        """A copy with another name, description or policy, checked like a new one."""
        unknown = sorted(set(changes) - _REPLACEABLE)
        if unknown:
            raise ToolDefinitionError(
                f"tool {self.name!r}: {', '.join(unknown)} cannot be replaced; define a new tool"
            )
        return dataclasses.replace(self, **changes)

    @property
    def fingerprint(self) -> str:
        """SHA-256 in hexadecimal over name, schema, version and the policy that approvals bind."""
        if self._fingerprint is None:
            confirm = self.confirm
            rule = _qualified(confirm) if callable(confirm) else confirm
            bound: list[Any] = [self.name, self.json_schema(), self.version, self.effects, rule]
            if self.sinks:
                bound.append(self.sinks)
            if self.irreversible:
                bound.append("irreversible")
            object.__setattr__(self, "_fingerprint", digest(bound))
        return self._fingerprint or ""

    @property
    def policy_fingerprint(self) -> str:
        """SHA-256 over the fingerprint, description, trust and egress: what a policy rule approves.

        A person sees the description with each question; a rule has seen it once.
        """
        return digest([self.fingerprint, self.description, self.trust, self.egress])

    def __copy__(self) -> ToolSpec:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> ToolSpec:
        return self


_POLICY = tuple(
    option.name
    for option in dataclasses.fields(ToolSpec)
    if option.repr and option.default is not dataclasses.MISSING
)
"""The options that a tool may be given: the fields with a default that its repr shows."""

_REPLACEABLE = {*_POLICY, "name", "description"}


def spec_of(fn: Any) -> ToolSpec:
    """The spec that a decorated function carries; `ToolDefinitionError` for anything else."""
    spec = fn if isinstance(fn, ToolSpec) else getattr(fn, SPEC_ATTRIBUTE, None)
    if isinstance(spec, ToolSpec):
        return spec
    raise ToolDefinitionError(f"{fn!r} is not a tool; decorate it with @tool or a registry's tool")


def _refuse_unknown(name: str, policy: Iterable[str]) -> None:
    unknown = sorted(set(policy) - set(_POLICY))
    if unknown:
        raise ToolDefinitionError(
            f"tool {name!r}: unknown option {', '.join(unknown)}; a tool has {', '.join(_POLICY)}"
        )


def _name_of(fn: Any) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return str(getattr(fn, "__name__", type(fn).__name__))


def _qualified(fn: Any) -> str:
    qualname = getattr(fn, "__qualname__", type(fn).__qualname__)
    return f"{getattr(fn, '__module__', '')}.{qualname}"
