"""Integrations are found by name, and export what their target may have."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

import pytest

from agent_adapter.core.errors import IntegrationError, MissingDependency
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.integrations.base import FlowCompiler, Integration, IntegrationBase
from agent_adapter.integrations.discovery import available_integrations, get_integration


@pytest.fixture
def registry() -> ToolRegistry:
    """One tool for AG2, one for another framework, one for all."""
    registry = ToolRegistry()

    @registry.tool(targets=("ag2",))
    def for_ag2() -> str:
        """Goes to AG2."""
        return "ag2"

    @registry.tool(targets=("openai",))
    def for_openai() -> str:
        """Goes to OpenAI."""
        return "openai"

    @registry.tool
    def for_all() -> str:
        """Goes everywhere."""
        return "all"

    return registry


def test_a_name_gives_an_integration(registry: ToolRegistry) -> None:
    """`get_integration(name)`, then `export_tool` for each of `registry.for_target(name)`."""
    pytest.importorskip("ag2")
    ag2 = get_integration("ag2")
    tools = [ag2.export_tool(spec) for spec in registry.for_target(ag2.name)]
    assert [tool.name for tool in tools] == ["for_ag2", "for_all"]


def test_available_integrations_maps_names() -> None:
    """`available_integrations()` is `{name: integration}`; `refresh=True` looks again."""
    names = available_integrations()
    assert all(names[name].name == name for name in names)
    assert {"ag2", "agno"} <= set(names)
    assert set(available_integrations(refresh=True)) == set(names)


def test_an_unknown_name_is_an_integration_error() -> None:
    """`IntegrationError` where nothing has the name, and not `MissingDependency`."""
    with pytest.raises(IntegrationError) as caught:
        get_integration("no-such-framework")
    assert not isinstance(caught.value, MissingDependency)


@pytest.mark.parametrize("name", ["ag2", "agno"])
def test_the_entry_point_names_a_module_attribute(name: str) -> None:
    """A built-in is `agent_adapter.integrations.<name>:INTEGRATION`, and that very instance."""
    (entry,) = entry_points(group="agent_adapter.integrations", name=name)
    assert entry.value == f"agent_adapter.integrations.{name}:INTEGRATION"
    assert available_integrations()[name] is entry.load()


@pytest.mark.parametrize(
    "member", ["name", "requires", "extra", "export_tool", "bind_context", "bind_approval"]
)
@pytest.mark.parametrize("name", ["ag2", "agno"])
def test_each_member_of_the_protocol(name: str, member: str) -> None:
    """Every integration has each member of the protocol's table."""
    integration = available_integrations()[name]
    assert isinstance(integration, Integration)
    assert hasattr(integration, member)


def test_compile_flow_is_optional() -> None:
    """`compile_flow` makes an integration a `FlowCompiler`, and none needs it."""

    class Compiling(IntegrationBase):
        name = "compiling"

        def export_tool(self, spec: object, *, executor: object = None) -> object:
            return spec

        def compile_flow(self, flow: object, *, executor: object = None, **options: object) -> str:
            return f"{flow} {options}"

    assert isinstance(Compiling(), FlowCompiler)
    assert not isinstance(available_integrations()["ag2"], FlowCompiler)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (
            "agent_adapter.integrations.base",
            "ToolRunner Integration FlowCompiler IntegrationBase model_visible_error "
            "MODEL_VISIBLE_ERRORS",
        ),
        (
            "agent_adapter.integrations.discovery",
            "GROUP available_integrations get_integration",
        ),
        ("tests.integrations.kit", "Harness contract_tests harness_session FakeRunner Probe"),
        ("tests.integrations._kit_support", "FakeRunner Probe"),
    ],
)
def test_each_file_has_its_names(module: str, names: str) -> None:
    """What the table of files says is in a file is there."""
    assert [name for name in names.split() if not hasattr(import_module(module), name)] == []
