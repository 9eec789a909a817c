"""A registry holds tools by name, in order, and no two that a model could mix up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_adapter.core.errors import ToolDefinitionError, ToolNotFound
from agent_adapter.core.registry import ToolRegistry, default_registry, tool
from agent_adapter.core.tool import ToolSpec, spec_of


def _named(name: str) -> ToolSpec:
    def fn() -> str:
        """Does."""
        return name

    return ToolSpec.from_function(fn, name=name)


def test_decorated_function_stays_a_function() -> None:
    """With or without arguments the decorator gives the function back, carrying its spec."""
    registry = ToolRegistry()

    @registry.tool
    def one() -> int:
        """One."""
        return 1

    @registry.tool(confirm=True, name="zwei")
    def two() -> int:
        """Two."""
        return 2

    assert (one(), two()) == (1, 2)
    assert registry.names() == ["one", "zwei"]
    assert list(registry) == [spec_of(one), spec_of(two)]
    assert spec_of(two).confirm is True


def test_unknown_tool_lists_near_matches() -> None:
    """A wrong name is answered with the names that it resembles."""
    registry = ToolRegistry()
    registry.add(_named("send_invoice"))
    with pytest.raises(ToolNotFound, match=r"no tool 'send_invoce'; did you mean 'send_invoice'\?"):
        registry.get("send_invoce")
    with pytest.raises(ToolNotFound, match="no tool 'x'; there are 'send_invoice'"):
        registry.get("x")


@pytest.mark.parametrize("name", ["send_mail", "send-mail", "Send_Mail", "SEND-mail"])
def test_two_tools_of_one_name_are_refused(name: str) -> None:
    """A23: names that differ only in case, `-` and `_` count as one."""
    registry = ToolRegistry()
    registry.add(_named("send_mail"))
    with pytest.raises(ToolDefinitionError, match=f"tool '{name}'.*already registered"):
        registry.add(_named(name))
    assert registry.names() == ["send_mail"]


def test_targets_choose_what_an_integration_exports() -> None:
    """A tool without targets goes everywhere, one with targets only there."""
    registry = ToolRegistry()
    registry.add(_named("all"))
    registry.add(_named("some").replace(targets=["ag2"]))
    assert [spec.name for spec in registry.for_target("ag2")] == ["all", "some"]
    assert [spec.name for spec in registry.for_target("agno")] == ["all"]


def test_frozen_registry_takes_nothing() -> None:
    """After `freeze` an addition is refused."""
    registry = ToolRegistry()
    registry.freeze()
    with pytest.raises(ToolDefinitionError, match="the registry is frozen; add tools before"):
        registry.add(_named("late"))


def test_merge_prefixes_and_is_all_or_nothing() -> None:
    """Either every tool of the other registry is added, under its prefix, or none."""
    shop, bank = ToolRegistry(), ToolRegistry()
    bank.add(_named("pay"))
    bank.add(_named("list"))
    shop.merge(bank, prefix="bank_")
    assert shop.names() == ["bank_pay", "bank_list"]
    other = ToolRegistry()
    other.add(_named("list"))
    with pytest.raises(ToolDefinitionError, match="tool 'list'"):
        other.merge(bank)
    assert other.names() == ["list"]


def test_adding_a_spec_twice_changes_nothing() -> None:
    """The same spec may be added again."""
    registry, spec = ToolRegistry(), _named("one")
    registry.add(spec)
    registry.add(spec)
    assert (len(registry), "one" in registry, "two" in registry) == (1, True, False)


def test_same_function_defined_again_replaces_it_in_the_default_registry() -> None:
    """A reload or a notebook cell run twice is no clash."""

    def define(answer: int) -> Callable[[], int]:
        @tool(name="redefined_by_test")
        def fn() -> int:
            """Does."""
            return answer

        return fn

    define(1)
    second = define(2)
    assert default_registry().get("redefined_by_test") is spec_of(second)


def test_another_function_of_that_name_is_refused_in_the_default_registry() -> None:
    """A different function does not replace one silently."""

    @tool(name="taken_by_test")
    def first() -> None:
        """Does."""

    with pytest.raises(ToolDefinitionError, match="already registered; give one `name=`"):

        @tool(name="taken_by_test")
        def second() -> None:
            """Does."""
