"""AgentDojo's functions become tools without being changed."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from agent_adapter.core.errors import ToolArgsInvalid
from workloads.agentdojo.effects import effects_of
from workloads.agentdojo.environment import bound_environment
from workloads.agentdojo.tools import tool_of

pytestmark = pytest.mark.anyio


class _Dependency:
    """What AgentDojo's own marker offers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def extract_dep_from_env(self, env: dict[str, Any]) -> Any:
        return env[self.name]


class _Function:
    """What AgentDojo's own `Function` offers."""

    def __init__(self, run: Any, dependencies: dict[str, _Dependency]) -> None:
        self.name = run.__name__
        self.run = run
        self.dependencies = dependencies


def _send_note(box: Annotated[list[str], "injected"], text: str, copies: int = 1) -> str:
    """Put a note into the box.

    :param text: What it says.
    :param copies: How often.
    """
    box.extend([text] * copies)
    return f"{len(box)} notes"


def _tool() -> Any:
    return tool_of("office", _Function(_send_note, {"box": _Dependency("box")}))


def test_injected_parameter_is_not_in_the_schema() -> None:
    """What AgentDojo injects is not in the schema, what it documents is."""
    schema = _tool().json_schema()
    assert set(schema["properties"]) == {"text", "copies"}
    assert schema["properties"]["text"]["description"] == "What it says."


async def test_tool_acts_on_the_bound_environment() -> None:
    """A call changes the environment bound around it."""
    box: list[str] = []
    with bound_environment({"box": box}):
        assert await _tool().invoke({"text": "hi", "copies": 2}) == "2 notes"
    assert box == ["hi", "hi"]


async def test_tool_without_an_environment_says_so() -> None:
    """Outside a bound environment the error names what is missing."""
    with pytest.raises(RuntimeError, match="needs an environment"):
        await _tool().invoke({"text": "hi"})


def test_model_cannot_supply_the_injected_parameter() -> None:
    """An injected parameter that a model sends is an unknown argument."""
    with pytest.raises(ToolArgsInvalid, match="box"):
        _tool().validate({"text": "hi", "box": []})


@pytest.mark.parametrize(
    ("name", "effects"),
    [
        ("get_iban", "read"),
        ("search_emails", "read"),
        ("list_files", "read"),
        ("read_inbox", "read"),
        ("check_restaurant_opening_hours", "read"),
        ("send_money", "write"),
        ("update_password", "write"),
        ("reserve_hotel", "write"),
    ],
)
def test_reading_functions_are_reads_and_all_others_writes(name: str, effects: str) -> None:
    """A function is a read only if its first word says that it looks."""
    assert effects_of(name) == effects
