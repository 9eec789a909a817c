"""The protocol of an integration, and the base class that does what all of them share.

An integration turns `ToolSpec`s into one framework's native tools. Whatever it exports runs through
a `ToolRunner`, so validation, hooks, approval, limits and the ledger apply in every framework.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from agent_adapter.core.answers import model_visible_error, told
from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    MODEL_VISIBLE_ERRORS,
    ApprovalPending,
    IntegrationError,
    MissingDependency,
)
from agent_adapter.core.ports import ApprovalPort, ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.quarantine import OnError, each, exported, name_of

__all__ = [
    "MODEL_VISIBLE_ERRORS",
    "FlowCompiler",
    "Integration",
    "IntegrationBase",
    "ToolImporter",
    "ToolRunner",
    "all_pending",
    "check_requirements",
    "is_instance_of",
    "json_kind",
    "model_visible_error",
]


@runtime_checkable
class Integration(Protocol):
    """Exports tools to one framework.

    `name` is the target's name and equals the entry-point name. `requires` are import names that
    must be importable. `extra` is the pip extra named when one of them is not; `None` without one.
    """

    name: str
    requires: tuple[str, ...]
    extra: str | None

    def export_tool(self, spec: ToolSpec, *, executor: ToolRunner | None = None) -> Any:
        """The framework's native tool for `spec`; `None` runs through the default executor."""
        ...

    def bind_context(self, native: Any) -> ToolContext:
        """A context for one native call; it carries the native call id."""
        ...

    def bind_approval(self, port: ApprovalPort) -> Any:
        """A native approval gate that asks `port`, or `None` when the executor's port decides."""
        ...


@runtime_checkable
class FlowCompiler(Protocol):
    """An integration that can also run a whole flow as its framework's graph."""

    def compile_flow(self, flow: Any, *, executor: ToolRunner | None = None, **options: Any) -> Any:
        """`flow` as the framework's own graph."""
        ...


@runtime_checkable
class ToolImporter(Protocol):
    """An integration that can also take the framework's own tools under the executor."""

    def import_tool(self, native: Any, **policy: Any) -> ToolSpec:
        """The framework's `native` tool as a spec; its results are untrusted unless said so."""
        ...


class IntegrationBase(ABC):
    """What integrations share; a subclass sets `name` and writes `export_tool`.

    `call_id_fields` are attributes or mapping keys of a native call, the first that holds an id
    wins. `reexecutes` says that the framework runs a call again by itself, under the same id.
    """

    name: str = ""
    requires: tuple[str, ...] = ()
    extra: str | None = None
    call_id_fields: tuple[str, ...] = ()
    reexecutes: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Mark each context that a subclass's own `bind_context` makes as bound by it."""
        super().__init_subclass__(**options)
        own = vars(cls).get("bind_context")
        if inspect.isfunction(own):
            cls.bind_context = _marking(own)  # type: ignore[method-assign, assignment]

    @abstractmethod
    def export_tool(self, spec: ToolSpec, *, executor: ToolRunner | None = None) -> Any:
        """The framework's native tool for `spec`; `None` runs through the default executor."""

    def export_tools(
        self,
        registry: ToolRegistry,
        *,
        executor: ToolRunner | None = None,
        on_error: OnError = "skip",
    ) -> list[Any]:
        """Native tools for every tool of `registry` whose targets include this integration.

        One that cannot be exported is left out with a warning that names it; `on_error="raise"`
        raises its error instead.
        """
        return exported(
            self.name, registry, lambda spec: self.export_tool(spec, executor=executor), on_error
        )

    def import_tools(
        self, natives: Iterable[Any], *, on_error: OnError = "skip", **policy: Any
    ) -> list[ToolSpec]:
        """`import_tool` of each of the framework's `natives`, with the same `policy`.

        One that cannot be imported is left out with a warning that names it and says why;
        `on_error="raise"` raises its error instead.

        Raises:
            MissingDependency: the framework is not installed.
            IntegrationError: it is out of range, or this integration imports no tools.
        """
        if not isinstance(self, ToolImporter):
            raise IntegrationError(f"{self.name} has no tools of its own that could be imported")
        self.require()
        one = self.import_tool
        return each(
            natives,
            lambda native: one(native, **policy),
            f"imported from {self.name}",
            named=name_of,
            on_error=on_error,
            passing=MissingDependency,
        )

    def bind_context(self, native: Any) -> ToolContext:
        """A context with the native call's id, or with a new id where the call has none."""
        return ToolContext(
            call_id=_native_id(native, self.call_id_fields) or _new_call_id(),
            bound_by=self.name,
            reexecutes=self.reexecutes,
        )

    def bind_approval(self, port: ApprovalPort) -> Any:
        """`None`: the executor's own port decides."""
        return None

    def require(self) -> None:
        """Raises `MissingDependency` with the pip command where the framework is not installed."""
        check_requirements(self)

    def _bind(self, native: Any) -> ToolContext:
        """`bind_context`, marked as made by this integration whatever a subclass left out."""
        ctx = self.bind_context(native)
        ctx.bound_by = self.name
        ctx.reexecutes = self.reexecutes
        if not ctx.call_id:
            ctx.call_id = _new_call_id()
        return ctx

    async def _run_bound(
        self, native: Any, spec: ToolSpec, args: Mapping[str, Any], runner: ToolRunner
    ) -> Any:
        """The tool's value; an error that a model may read comes back as its dictionary.

        For frameworks without a channel for tool errors. Every other exception propagates,
        `ApprovalPending` and cancellation among them.
        """
        ctx = self._bind(native)
        try:
            value = await runner.run_spec(spec, args, ctx, call_id=ctx.call_id)
            return told(value, ctx.edited)
        except MODEL_VISIBLE_ERRORS as exc:
            return model_visible_error(exc)


def _marking(
    bind_context: Callable[[Any, Any], ToolContext],
) -> Callable[[Any, Any], ToolContext]:
    """`bind_context`, naming the integration: only a bound context may bring a decision along."""

    @functools.wraps(bind_context)
    def bound(self: Any, native: Any) -> ToolContext:
        ctx = bind_context(self, native)
        ctx.bound_by = ctx.bound_by or self.name
        return ctx

    return bound


def check_requirements(integration: Integration | IntegrationBase) -> None:
    """Nothing when all of `requires` can be imported.

    Raises `MissingDependency` with the command that installs what is missing, and
    `IntegrationError` where a built-in's framework is outside the range of its extra.
    """
    requires, extra = integration.requires, integration.extra
    root = type(integration).__module__.partition(".")[0]
    if root == __name__.partition(".")[0] and extra is not None:
        from agent_adapter.core.extras import check_installed

        check_installed(extra, requires)
        return
    missing = [name for name in requires if not _importable(name)]
    if missing:
        raise MissingDependency(
            f"{integration.name} needs {', '.join(missing)}, which cannot be imported; "
            f"{_remedy(root, extra)}"
        )


def all_pending(errors: Sequence[ApprovalPending]) -> ApprovalPending:
    """One error with the ids of all `errors`, in order; it expires with the first of them."""
    ids = list(dict.fromkeys(record for error in errors for record in error.ids))
    times = [error.expires_at for error in errors if error.expires_at is not None]
    return ApprovalPending(ids[0], min(times, default=None), ids=ids)


def json_kind(value: Any) -> str:
    """What JSON calls the kind of `value`: "array", "string", "number", "boolean" or "null"."""
    if isinstance(value, bool):
        return "boolean"
    kinds = {list: "array", str: "string", int: "number", float: "number", type(None): "null"}
    return kinds.get(type(value), "value")


def is_instance_of(native: Any, module: str, name: str) -> bool:
    """Whether a class `name` of `module` is among the bases of `native`; imports no framework."""
    return any((base.__module__, base.__name__) == (module, name) for base in type(native).__mro__)


def _remedy(root: str, extra: str | None) -> str:
    if extra is None:
        return "install the package that provides it"
    distribution = _distribution_of(root)
    if distribution is None:
        return f"install the extra {extra!r} of the package that provides {root}"
    return f'run: pip install "{distribution}[{extra}]"'


def _distribution_of(root: str) -> str | None:
    from importlib.metadata import packages_distributions

    owners: Iterable[str] = packages_distributions().get(root, ())
    return min(owners, default=None)


def _importable(name: str) -> bool:
    if sys.modules.get(name) is not None:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:  # a dotted name imports its parents, which may be absent or broken
        return False


def _native_id(native: Any, fields: tuple[str, ...]) -> str | None:
    for field in fields:
        keyed = isinstance(native, Mapping)
        value = native.get(field) if keyed else getattr(native, field, None)
        if value is not None and value != "":
            return str(value)
    return None


def _new_call_id() -> str:
    return "call_" + os.urandom(12).hex()
