"""What cannot be a tool is refused when it is defined: the parameter, the reason, the fix."""

from __future__ import annotations

import asyncio
import functools
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from agent_adapter.core.errors import ToolDefinitionError
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import CachePolicy, RetryPolicy

if TYPE_CHECKING:
    from collections import OrderedDict as Unimportable


class OldTypedDict(typing.TypedDict):
    """Pydantic cannot read this one before Python 3.12."""

    a: int


def unannotated(x) -> None:  # type: ignore[no-untyped-def]  # the missing annotation is the case
    """Does."""


def starred(*args: int) -> None:
    """Does."""


def double_starred(**kwargs: int) -> None:
    """Does."""


def positional(x: int, /) -> None:
    """Does."""


def undescribed(x: int) -> None:  # noqa: D103  # the missing docstring is the case
    pass


def type_checking_only(x: Unimportable) -> None:
    """Does."""


def no_schema(x: asyncio.Event) -> None:
    """Does."""


def no_json_schema(x: Callable[[], int]) -> None:
    """Does."""


def unwritable_default(x: int = object()) -> None:  # type: ignore[assignment]  # the case
    """Does."""


def nan_default(x: float = float("nan")) -> None:
    """Does."""


class Shop:
    """Something with a method that needs its instance."""

    def price(self, item: str) -> int:
        """Does."""
        return 1


SIGNATURES: list[tuple[Callable[..., Any], str]] = [
    (unannotated, "tool 'unannotated': parameter 'x' has no annotation; write `x: <type>`"),
    (
        starred,
        "tool 'starred': parameter 'args': *args cannot be described to a model; "
        "name each parameter",
    ),
    (
        double_starred,
        "tool 'double_starred': parameter 'kwargs': **kwargs cannot be described to a model; "
        "name each parameter",
    ),
    (
        positional,
        "tool 'positional': parameter 'x': it is positional-only; "
        "remove the `/` from the signature",
    ),
    (
        undescribed,
        "tool 'undescribed' has no description; write a docstring or give `description=`, "
        "since a model chooses by it",
    ),
    (
        type_checking_only,
        "tool 'type_checking_only': parameter 'x' is annotated 'Unimportable', but 'Unimportable' "
        "does not exist at run time; import it outside `if TYPE_CHECKING:` or define it before "
        "the tool",
    ),
    (
        no_schema,
        "tool 'no_schema': parameter 'x': Pydantic cannot make a schema of its type (Unable to "
        "generate pydantic-core schema for <class 'asyncio.locks.Event'>); use a type that JSON "
        "can carry, a Pydantic model, or `Annotated[T, Depends(provider)]` to inject it",
    ),
    (
        no_json_schema,
        "tool 'no_json_schema': parameter 'x': its type has no JSON Schema (Cannot generate a "
        "JsonSchema for core_schema.CallableSchema); use a type that JSON can carry",
    ),
    (
        unwritable_default,
        "tool 'unwritable_default': parameter 'x': its default cannot be written as JSON, so a "
        "model could not be shown it; use `None` and make the value inside the function",
    ),
    (
        nan_default,
        "tool 'nan_default': parameter 'x': its default cannot be written as JSON, so a model "
        "could not be shown it; use `None` and make the value inside the function",
    ),
    (
        Shop.price,
        "tool 'price': parameter 'self' has no annotation; decorate a bound method instead, such "
        "as `tool(instance.method)`",
    ),
    (
        Shop,
        "is not a function; give a function, a bound method or an object with `__call__`",
    ),
]


@pytest.mark.parametrize(("fn", "text"), SIGNATURES, ids=lambda item: getattr(item, "__name__", ""))
def test_signature_is_refused(fn: Callable[..., Any], text: str) -> None:
    """The refusal names the tool, the parameter, the reason and the fix."""
    with pytest.raises(ToolDefinitionError) as caught:
        ToolSpec.from_function(fn)
    assert text in str(caught.value)


@pytest.mark.skipif("sys.version_info >= (3, 12)", reason="Pydantic reads it there")
def test_typing_typed_dict_is_refused() -> None:
    """On Python 3.11 the refusal says which TypedDict to use."""

    def tool(x: OldTypedDict) -> None:
        """Does."""

    with pytest.raises(ToolDefinitionError, match=r"parameter 'x': use `typing_extensions.Typed"):
        ToolSpec.from_function(tool)


def fine(x: int) -> int:
    """Does."""
    return x


_NAME = "has 1 to 64 letters, digits, `_` and `-`, and begins with a letter or `_`"
POLICIES: list[tuple[dict[str, Any], str]] = [
    ({"name": "a b"}, _NAME),
    ({"name": "a.b"}, _NAME),
    ({"name": "é"}, _NAME),
    ({"name": "1a"}, _NAME),
    ({"name": "a\n"}, _NAME),
    ({"name": ""}, _NAME),
    ({"name": "x" * 65}, _NAME),
    ({"description": " "}, "tool 'fine' has no description"),
    ({"confrim": True}, "tool 'fine': unknown option confrim; a tool has targets, confirm,"),
    ({"effects": "delete"}, "effects is one of 'read', 'idempotent', 'write', not 'delete'"),
    ({"trust": True}, "trust is one of 'trusted', 'untrusted', not True"),
    (
        {"confirm": 1},
        "confirm is True, False, 'tainted', 'provenance' or a callable (args, ctx) -> bool, not 1",
    ),
    ({"confirm": "yes"}, "confirm is True, False, 'tainted', 'provenance' or a callable"),
    ({"egress": 1}, "egress is True or False, not 1"),
    ({"timeout": 0}, "timeout is a positive, finite number of seconds, or None for no limit"),
    ({"timeout": True}, "timeout is a positive, finite number of seconds"),
    ({"timeout": float("inf")}, "timeout is a positive, finite number of seconds"),
    ({"timeout": "3"}, "timeout is a positive, finite number of seconds"),
    ({"cost": float("nan")}, "cost: a cost is finite and not negative, not nan"),
    ({"cost": float("inf")}, "cost: a cost is finite and not negative, not inf"),
    ({"cost": -1}, "cost: a cost is finite and not negative, not -1"),
    ({"cost": True}, "cost: a cost is a number, not True"),
    ({"targets": "ag2"}, "targets is a list of names such as ['ag2'], not 'ag2'"),
    ({"targets": [""]}, "targets has an entry that is empty or no text"),
    ({"tags": "money"}, "tags is a list of names"),
    ({"version": 2}, "version is a text such as '2', or None, not 2"),
    ({"once_key": "order"}, "once_key is a callable (args) -> str, or None, not 'order'"),
    (
        {"retries": RetryPolicy()},
        "retries on a tool with effects='write' could do it twice; remove `retries`",
    ),
    ({"effects": "read", "retries": 3}, "retries is a RetryPolicy or None, not 3"),
    ({"effects": "read", "retries": RetryPolicy(attempts=0)}, "retries.attempts is 1 or more"),
    (
        {"effects": "read", "retries": RetryPolicy(wait_max=-1)},
        "retries.wait_max is a number of seconds >= 0, not -1",
    ),
    ({"cache": CachePolicy()}, "cache needs effects='read', not 'write'"),
    (
        {"cache": CachePolicy(), "effects": "read", "confirm": True},
        "cache and confirm exclude each other",
    ),
    (
        {"cache": CachePolicy(ttl=0), "effects": "read"},
        "cache.ttl is a positive number of seconds, not 0",
    ),
    ({"cache_key": str}, "cache_key does nothing without cache"),
    (
        {"cache": CachePolicy(), "effects": "read", "cache_key": "tenant"},
        "cache_key is a callable (args, ctx) -> str, or None, not 'tenant'",
    ),
]


@pytest.mark.parametrize(("policy", "text"), POLICIES, ids=lambda item: str(item)[:40])
def test_policy_is_refused(policy: dict[str, Any], text: str) -> None:
    """The refusal names the tool, the field, the reason and what would do."""
    with pytest.raises(ToolDefinitionError) as caught:
        ToolSpec.from_function(fine, **policy)
    assert text in str(caught.value)


def test_lambda_needs_a_name() -> None:
    """A function without a usable name is refused with the way to give it one."""
    with pytest.raises(ToolDefinitionError, match=r"tool '<lambda>'.*give one with `name=`"):
        ToolSpec.from_function(lambda: None)


def test_partial_keeps_bound_arguments_from_the_model() -> None:
    """What a partial has bound is not in the schema, so no model can change it."""

    def pay(amount: int, account: str) -> str:
        """Pays."""
        return f"{account}:{amount}"

    spec = ToolSpec.from_function(functools.partial(pay, account="mine"))
    assert list(spec.json_schema()["properties"]) == ["amount"]
    assert spec.call({"amount": 1}, {}) == "mine:1"
