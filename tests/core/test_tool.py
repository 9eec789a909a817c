"""A `ToolSpec` says what a tool is and calls it; nothing else happens."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest
from pydantic import Field, SecretStr

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import ToolArgsInvalid, ToolDefinitionError
from agent_adapter.core.inject import Depends, Secret
from agent_adapter.core.routing import ChannelInject, ChannelStateInject
from agent_adapter.core.tool import ToolSpec, register_injection, spec_of

pytestmark = pytest.mark.anyio


def add(a: int, b: int = 2) -> int:  # noqa: D417  # `b` has no text, which is allowed
    """Add two numbers.

    Args:
        a: the first one
    """
    return a + b


async def test_invoke_validates_and_calls() -> None:
    """`invoke` gives what the function returns for arguments that fit."""
    assert await ToolSpec.from_function(add).invoke({"a": 1}) == 3


async def test_invoke_refuses_what_does_not_fit() -> None:
    """Text is not silently a number."""
    with pytest.raises(ToolArgsInvalid, match="a: input should be a valid integer"):
        await ToolSpec.from_function(add).invoke({"a": "1"})


def test_schema_is_neutral_and_fresh() -> None:
    """The schema has no top-level title and no caller can change the next one."""
    spec = ToolSpec.from_function(add)
    spec.json_schema()["properties"].clear()
    assert spec.json_schema() == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "the first one"},
            "b": {"type": "integer", "default": 2},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


async def test_injected_parameters_are_filled_in_and_never_shown() -> None:
    """A context, a provided value and a channel are no part of the schema."""

    def provide(ctx: ToolContext) -> str:
        return f"db of {ctx.principal}"

    def tool(
        x: int,
        db: Annotated[str, Depends(provide)],
        channel: ChannelInject,
        state: ChannelStateInject,
        ctx: ToolContext | None = None,
    ) -> list[Any]:
        """Does."""
        return [x, db, channel, state, ctx is not None]

    spec = ToolSpec.from_function(tool)
    assert list(spec.json_schema()["properties"]) == ["x"]
    assert [item.kind for item in spec.injected] == [
        "depends",
        "channel",
        "channel_state",
        "context",
    ]
    ctx = ToolContext(principal="ann", extras={"channel": "c", "channel_state": lambda: "s"})
    assert await spec.invoke({"x": 1}, ctx) == [1, "db of ann", "c", "s", True]


async def test_model_cannot_supply_an_injected_parameter() -> None:
    """An argument under the name of an injected parameter is unknown."""

    def tool(x: int, ctx: ToolContext) -> int:
        """Does."""
        return x

    with pytest.raises(ToolArgsInvalid, match=r"ctx: unknown argument \(expected x\)"):
        await ToolSpec.from_function(tool).invoke({"x": 1, "ctx": {"principal": "root"}})


async def test_provider_is_torn_down_after_the_call() -> None:
    """Code after a provider's `yield` runs when the function has ended."""
    seen: list[str] = []

    async def session() -> AsyncIterator[str]:
        seen.append("open")
        yield "session"
        seen.append("close")

    def tool(s: Annotated[str, Depends(session)]) -> str:
        """Does."""
        seen.append(s)
        return s

    await ToolSpec.from_function(tool).invoke({})
    assert seen == ["open", "session", "close"]


async def test_foreign_injection_markers_can_be_registered() -> None:
    """A predicate makes another library's marker an injected parameter."""

    class Marker:
        pass

    register_injection(lambda item: isinstance(item, Marker), "channel")

    def tool(where: Annotated[Any, Marker()]) -> Any:
        """Does."""
        return where

    spec = ToolSpec.from_function(tool)
    assert await spec.invoke({}, ToolContext(extras={"channel": "c"})) == "c"


async def test_generators_are_collected() -> None:
    """A generator function, sync or async, gives the list of its items."""

    def numbers(n: int) -> Iterator[int]:
        """Count."""
        yield from range(n)

    async def later(n: int) -> AsyncIterator[int]:
        """Count."""
        for number in range(n):
            yield number

    for fn, kind in ((numbers, "sync"), (later, "async")):
        spec = ToolSpec.from_function(fn)
        assert (spec.collects, spec.is_async) == (kind, False)
        assert await spec.invoke({"n": 3}) == [0, 1, 2]


async def test_endless_generator_is_an_error() -> None:
    """A generator that does not end is cut off."""

    def endless() -> Iterator[int]:
        """Count."""
        while True:
            yield 1

    with pytest.raises(OverflowError, match="more than 10000 items"):
        await ToolSpec.from_function(endless).invoke({})


class Greeter:
    """Greets."""

    def __init__(self, word: str) -> None:
        self.word = word

    async def greet(self, who: str) -> str:
        """Greet somebody."""
        return f"{self.word} {who}"

    async def __call__(self, who: str) -> str:
        """Greet by being called."""
        return f"{self.word}, {who}"


async def test_bound_methods_and_callables_are_tools() -> None:
    """A bound method keeps its object; an object with `__call__` is a tool by its class's name."""
    method = ToolSpec.from_function(Greeter("hi").greet)
    assert (method.name, method.is_async) == ("greet", True)
    assert await method.invoke({"who": "ann"}) == "hi ann"
    called = ToolSpec.from_function(Greeter("ho"), name="ho")
    assert (called.description, called.is_async) == ("Greet by being called.", True)
    assert await called.invoke({"who": "ann"}) == "ho, ann"


@pytest.mark.parametrize(
    "name",
    ["schema", "copy", "model_config", "model_fields", "json", "validate", "_private", "__x"],
)
async def test_parameter_names_that_pydantic_uses_work(name: str) -> None:
    """A parameter keeps its name in the schema, in errors and in the call."""
    namespace: dict[str, Any] = {}
    exec(f"def tool({name}: int) -> int:\n    'Does.'\n    return {name}", namespace)
    spec = ToolSpec.from_function(namespace["tool"])
    assert list(spec.json_schema()["properties"]) == [name]
    assert await spec.invoke({name: 3}) == 3
    with pytest.raises(ToolArgsInvalid, match=f"{name}: input should be a valid integer"):
        spec.validate({name: "3"})


@pytest.mark.parametrize(
    "name", ["agent", "config", "self", "cls", "run_manager", "stack", "fc", "context", "args"]
)
async def test_parameter_names_that_frameworks_swallow_work(name: str) -> None:
    """U8: an annotated parameter of any of these names is an argument like any other."""
    namespace: dict[str, Any] = {}
    exec(f"def tool({name}: int) -> int:\n    'Does.'\n    return {name}", namespace)
    assert await ToolSpec.from_function(namespace["tool"]).invoke({name: 3}) == 3


def test_alias_is_the_model_s_name_of_an_argument() -> None:
    """The schema has the alias, the function gets the parameter."""

    def tool(order: Annotated[int, Field(alias="orderId")]) -> int:
        """Does."""
        return order

    spec = ToolSpec.from_function(tool)
    assert list(spec.json_schema()["properties"]) == ["orderId"]
    assert spec.validate({"orderId": 3}) == {"order": 3}
    assert spec.dump({"order": 3}) == b'{"orderId":3}'


def test_secrets_are_masked_by_a_keyed_hash() -> None:
    """Neither a `Secret()` parameter nor a Pydantic secret is written out for people."""

    def tool(user: str, password: Annotated[str, Secret()], token: SecretStr) -> None:
        """Does."""

    spec = ToolSpec.from_function(tool)
    values = spec.validate({"user": "ann", "password": "hunter2", "token": "t0ken"})
    shown = spec.masked(values, b"key")
    assert spec.secrets == {"password"}
    assert shown["user"] == "ann"
    assert list(shown["password"]) == list(shown["token"]) == ["$secret"]
    assert shown["password"] != spec.masked(values, b"other")["password"]
    assert spec.dump(values) == b'{"user":"ann","password":"hunter2","token":"t0ken"}'


def test_default_of_a_secret_is_not_in_the_schema() -> None:
    """A model does not read the default of a masked parameter."""

    def tool(password: Annotated[str, Secret()] = "hunter2") -> None:
        """Does."""

    spec = ToolSpec.from_function(tool)
    assert "hunter2" not in str(spec.json_schema())
    assert spec.validate({}) == {"password": "hunter2"}


def test_plain_tools_are_those_of_json_s_own_types() -> None:
    """Only a tool without the author's code in its types is plain."""

    def plain(a: int, b: list[str] | None = None, c: dict[str, float] | None = None) -> None:
        """Does."""

    def dated(a: SecretStr) -> None:
        """Does."""

    assert ToolSpec.from_function(plain).plain
    assert not ToolSpec.from_function(dated).plain


def test_fingerprint_binds_what_an_approval_is_about() -> None:
    """Name, schema, version, effects and confirm change it; a time-out does not."""
    spec = ToolSpec.from_function(add)
    changed = [
        spec.replace(name="sum"),
        spec.replace(version="2"),
        spec.replace(effects="read"),
        spec.replace(confirm=True),
        spec.replace(confirm=lambda args, ctx: True),
    ]
    assert len({spec.fingerprint, *(other.fingerprint for other in changed)}) == 6
    assert spec.replace(timeout=3).fingerprint == spec.fingerprint
    assert len(spec.fingerprint) == 64


def test_replace_checks_again() -> None:
    """A copy with another policy is checked like a new tool, and code cannot be swapped."""
    spec = ToolSpec.from_function(add)
    assert spec.replace(targets=["ag2"]).targets == {"ag2"}
    with pytest.raises(ToolDefinitionError, match="timeout is a positive"):
        spec.replace(timeout=-1)
    with pytest.raises(ToolDefinitionError, match="fn cannot be replaced; define a new tool"):
        spec.replace(fn=print)


def test_spec_is_equal_only_to_itself_and_not_copied() -> None:
    """Copies made by frameworks share the spec, which can be a weak key."""
    spec = ToolSpec.from_function(add)
    assert copy.deepcopy([spec])[0] is copy.copy(spec) is spec
    assert spec != ToolSpec.from_function(add)
    assert weakref.WeakKeyDictionary({spec: 1})[spec] == 1
    with pytest.raises(AttributeError):
        spec.name = "other"  # type: ignore[misc]  # frozen is the case


def test_frames_of_the_definition_are_let_go() -> None:
    """Resolving local names does not keep what else was in the frame alive."""

    class Big:
        pass

    def define() -> tuple[ToolSpec, weakref.ref[Big]]:
        big = Big()
        spec = ToolSpec.from_function(add)
        return spec, weakref.ref(big)

    spec, gone = define()
    gc.collect()
    assert gone() is None
    assert spec_of(spec) is spec


def test_spec_of_says_what_is_no_tool() -> None:
    """A function that was not decorated is refused by name."""
    with pytest.raises(ToolDefinitionError, match="is not a tool; decorate it with @tool"):
        spec_of(add)
