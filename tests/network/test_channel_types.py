"""Channel types found by entry point."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from agent_adapter.core.errors import ProtocolError
from agent_adapter.network import (
    ChannelManifest,
    ConversationAdapter,
    Expectation,
    Hub,
    HubClient,
    LocalLink,
    Passport,
)
from agent_adapter.network import adapters as package
from agent_adapter.network.adapters import GROUP, AdapterRegistry, channel_types


class ChatAdapter(ConversationAdapter):
    """A type of a plug-in."""

    manifest = ChannelManifest("chat")


class WorkflowImpostor(ConversationAdapter):
    """Poses as a built-in type."""

    manifest = ChannelManifest("workflow")


class LateAdapter(ConversationAdapter):
    """Expects something that no hub checks."""

    manifest = ChannelManifest("late", expectations=[Expectation("turn_within_h", "warn")])


class NoManifest(ConversationAdapter):
    """Its manifest is something else."""

    manifest: Any = "chat"


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """The installed entry points of one test, to add to; values are in `fake_types`."""
    module = ModuleType("fake_types")
    vars(module).update(vars(sys.modules[__name__]))
    entries: list[EntryPoint] = []
    monkeypatch.setitem(sys.modules, "fake_types", module)
    monkeypatch.setattr(package, "entry_points", lambda *, group: list(entries))
    channel_types.cache_clear()
    yield entries
    channel_types.cache_clear()


def entry(name: str, value: str) -> EntryPoint:
    """An entry point of the group."""
    return EntryPoint(name=name, value=value, group=GROUP)


def test_built_in_types_are_entry_points() -> None:
    """The built-in types are found as those of others are, and nothing is skipped."""
    assert sorted(channel_types()) == ["consulting", "conversation", "discussion", "workflow"]


@pytest.mark.anyio
async def test_a_type_is_one_module_and_one_entry_point(plugins: list[EntryPoint]) -> None:
    """A channel of an installed type opens without anything else being told of it."""
    plugins.append(entry("chat", "fake_types:ChatAdapter"))
    async with await Hub.open("memory://") as hub, HubClient(LocalLink(hub)) as client:
        ann = await client.register_human(Passport(name="ann"))
        await client.register_human(Passport(name="bob"))
        channel = await ann.open(type="chat", target="bob")
    assert channel.metadata.manifest == ChannelManifest("chat")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("workflow", "fake_types:WorkflowImpostor", "belongs to a built-in channel type"),
        ("bad", "no_such_module:X", "No module named"),
        ("bad", "fake_types:GROUP", "it is a str, not a class or function"),
        ("bad", "fake_types:ModuleType", "TypeError"),
        ("bad", "builtins:object", "object lacks manifest, validate_create"),
        ("bad", "fake_types:NoManifest", "`manifest` must be a ChannelManifest, not 'chat'"),
        ("late", "fake_types:LateAdapter", "the expectation 'turn_within_h' is unknown"),
        ("bad", "fake_types:WorkflowImpostor", "its type is 'workflow', its entry point 'bad'"),
    ],
)
def test_a_bad_entry_is_one_warning(
    plugins: list[EntryPoint],
    caplog: pytest.LogCaptureFixture,
    name: str,
    value: str,
    reason: str,
) -> None:
    """An entry that cannot be used is skipped with its reason, once; the others work."""
    plugins += [entry(name, value), entry("chat", "fake_types:ChatAdapter")]
    for _ in range(2):
        assert AdapterRegistry().get("chat").manifest == ChannelManifest("chat")
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert f"skipped the channel type {name!r}" in record.getMessage()
    assert reason in record.getMessage()
    assert list(channel_types()) == ["chat"]


@pytest.mark.parametrize(
    ("expectation", "problem"),
    [
        (Expectation("turn_withn", "warn"), "'turn_withn' is unknown; known: acks_within, "),
        (Expectation("turn_within", "close"), "has the unknown action 'close'; known: audit, "),
        (Expectation("max_silence", "warn", {"minutes": 5}), "has the unknown parameter minutes"),
        (Expectation("max_silence", "warn", {"seconds": "5"}), "seconds='5': give a number"),
    ],
)
def test_an_expectation_that_no_hub_acts_on_is_refused(
    expectation: Expectation, problem: str
) -> None:
    """Registering a type with such an expectation fails with what is known."""

    class Own(ConversationAdapter):
        manifest = ChannelManifest("own", expectations=[expectation])

    with pytest.raises(ProtocolError, match=f"'own': the expectation .*{problem}"):
        AdapterRegistry([Own()])


@pytest.mark.usefixtures("plugins")
def test_a_built_in_that_is_not_installed_says_so() -> None:
    """Where the installed metadata is older than the code, the error says what to do."""
    with pytest.raises(ProtocolError, match=r"'workflow' version 1; .* install it again"):
        AdapterRegistry().get("workflow")
