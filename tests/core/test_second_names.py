"""Policy belongs to the registration; a gate is not lost by giving a function another name."""

from __future__ import annotations

import functools
import gc
import logging
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from agent_adapter.cli.registry_check import check_registry
from agent_adapter.core.registry import ToolRegistry, default_registry, tool
from agent_adapter.core.tool import ToolSpec, spec_of


def wiping() -> Callable[[], str]:
    """A fresh function."""

    def wipe() -> str:
        """Wipe everything."""
        return "wiped"

    return wipe


def gated() -> Any:
    """A fresh function that is a gated tool of a registry of its own."""
    return ToolRegistry().tool(confirm=True, effects="idempotent", trust="untrusted")(wiping())


@pytest.mark.parametrize("named", [{"name": "harmless"}, {}])
def test_i23_a_second_name_inherits_the_gate(named: Any) -> None:
    """I23: what a second registration does not say is as in the first, which stays."""
    wipe, other = gated(), ToolRegistry()
    other.tool(**named)(wipe)
    [spec] = other
    assert (spec.confirm, spec.effects, spec.trust) == (True, "idempotent", "untrusted")
    assert (spec_of(wipe).name, spec_of(wipe).confirm) == ("wipe", True)


@pytest.mark.parametrize(
    "field", [("confirm", "tainted"), ("effects", "read"), ("trust", "trusted")]
)
def test_i23_each_field_is_inherited_by_itself(field: tuple[str, str]) -> None:
    """What is given counts, and the others are inherited."""
    known = {"confirm": True, "effects": "idempotent", "trust": "untrusted"} | dict([field])
    spec = ToolSpec.from_function(gated(), name="harmless", **dict([field]))
    assert {name: getattr(spec, name) for name in known} == known


def test_i23_partials_wrappers_and_methods_inherit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other forms of one function are other names for it; a wrapper runs as what it is."""
    wipe = gated()

    @functools.wraps(wipe)
    def loud() -> str:
        return f"{wipe()}!"

    assert ToolSpec.from_function(functools.partial(wipe), name="part").confirm is True
    wrapped = ToolRegistry().add(loud)
    assert (wrapped.confirm, wrapped.fn) == (True, loud)

    class Shop:
        def wipe(self) -> str:
            """Wipe the shop."""
            return "wiped"

    shop = Shop()
    ToolRegistry().tool(confirm=True)(shop.wipe)
    assert ToolSpec.from_function(shop.wipe, name="harmless").confirm is True
    assert ToolSpec.from_function(Shop().wipe, name="another").confirm is False


def test_i23_an_explicit_false_is_honoured_and_reported() -> None:
    """`confirm=False` beside a gated name is a note of `tools check`; the gated one stays so."""
    wipe, other = gated(), ToolRegistry()
    other.tool(name="harmless", confirm=False)(wipe)
    assert other.get("harmless").confirm is False and spec_of(wipe).confirm is True
    [found] = [each for each in check_registry(other, targets=[]) if "asks" in each.problem]
    assert (found.tool, found.severity) == ("harmless", "note")
    assert found.problem == "it never asks, and the same function asks as wipe"


def test_i23_a_weaker_one_of_the_same_name_does_not_ungate_the_function() -> None:
    """`call(wipe)` goes on asking whatever another registry says of it."""
    wipe = gated()
    ToolRegistry().tool(confirm=False)(wipe)
    assert spec_of(wipe).confirm is True


def test_i23_two_closures_of_one_factory_are_two_tools() -> None:
    """Each carries its own spec and runs its own function, in the default registry too."""

    def make(answer: int, **policy: Any) -> Any:
        @tool(name=f"closure_{answer}_by_test", **policy)
        def fn() -> int:
            """Answer."""
            return answer

        return fn

    one, two = make(1, confirm=True), make(2)
    assert [spec_of(fn).fn() for fn in (one, two)] == [1, 2]
    assert [spec_of(fn).confirm for fn in (one, two)] == [True, False]
    assert {"closure_1_by_test", "closure_2_by_test"} <= set(default_registry().names())


@pytest.mark.parametrize("registry", [ToolRegistry, default_registry])
def test_i23_a_second_closure_of_the_name_replaces_with_the_stricter_gate(
    registry: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning for a cell that is run again and again; the gate stays on."""
    kept = registry()

    def cell(**policy: Any) -> Any:
        return kept.tool(name="cell_by_test", **policy)(wiping())

    first = cell(confirm="tainted")
    with caplog.at_level(logging.WARNING):
        cell(confirm=True)
        last = cell()
    assert kept.get("cell_by_test") is spec_of(last)
    assert (spec_of(first).confirm, spec_of(last).confirm) == ("tainted", True)
    assert [record.message for record in caplog.records] == [
        "the tool 'cell_by_test' was defined again and replaces the former"
    ]


def test_what_is_known_of_a_function_ends_with_it() -> None:
    """Nothing keeps a function or an object alive."""

    class Shop:
        def wipe(self) -> str:
            """Wipe the shop."""
            return "wiped"

    wipe, shop = gated(), Shop()
    ToolRegistry().tool(confirm=True)(shop.wipe)
    gone = [weakref.ref(wipe), weakref.ref(shop)]
    del wipe, shop
    gc.collect()
    assert [each() for each in gone] == [None, None]


def test_imported_tools_of_one_name_still_clash() -> None:
    """A tool of somebody else never takes the place of another."""
    schema = {"type": "object", "properties": {}}
    registry = ToolRegistry()
    registry.add(ToolSpec.from_json_schema("wipe", "One.", schema, wiping()))
    with pytest.raises(Exception, match="already registered"):
        registry.add(ToolSpec.from_json_schema("wipe", "Other.", schema, wiping()))
