"""Any framework's tool in any other: imported, exported, called with every kind of argument."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("ag2")
pytest.importorskip("agno")
pytest.importorskip("anthropic")
pytest.importorskip("autogen_agentchat")
pytest.importorskip("fastmcp")
pytest.importorskip("google.genai")
pytest.importorskip("langchain")
pytest.importorskip("langgraph")
pytest.importorskip("mcp")
pytest.importorskip("openai")

import agent_adapter as aa
from agent_adapter.core.types import ApprovalDecision
from agent_adapter.integrations.base import ToolImporter
from agent_adapter.integrations.discovery import available_integrations

from ._everything import EXPECTED, SENT, SOURCES
from ._kit_support import outcome_of, ports_of
from ._targets import TARGETS
from .kit import harness_session

pytestmark = [pytest.mark.anyio, pytest.mark.contract]


def ours() -> dict[str, Any]:
    """The built-in integrations."""
    found = available_integrations(refresh=True)
    package = "agent_adapter."
    return {n: each for n, each in found.items() if type(each).__module__.startswith(package)}


def test_matrix_is_whole() -> None:
    """Every importer is a source and every integration a target."""
    importers = {name for name, each in ours().items() if isinstance(each, ToolImporter)}
    assert set(SOURCES) == importers
    assert set(TARGETS) == set(ours())


def _value(harness: Any, raw: Any) -> Any:
    value = harness.value(raw)
    return json.loads(value) if isinstance(value, str) else value


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("source", list(SOURCES))
async def test_tool_gives_the_same_everywhere(source: str, target: str) -> None:
    """Wherever it comes from and wherever it is used."""
    executor = aa.Executor(store=aa.open_store("memory://"))
    async with SOURCES[source]() as spec, harness_session(TARGETS[target]) as harness:
        native = harness.export(spec, executor)
        raw = await harness.call(native, json.loads(json.dumps(SENT)), call_id="call_matrix")
        assert not harness.is_error(raw), raw
        assert _value(harness, raw) == EXPECTED


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("approved", [True, False])
async def test_langchain_tool_asks_in_every_framework(target: str, approved: bool) -> None:
    """An imported tool runs under our approval, whichever framework calls it."""
    decide = ApprovalDecision.approve if approved else ApprovalDecision.deny
    decision = decide(reviewer="matrix")
    async with SOURCES["langchain"]() as plain, harness_session(TARGETS[target]) as harness:
        by_executor, by_gate = ports_of(harness, decision)
        executor = aa.Executor(store=aa.open_store("memory://"), approval=by_executor)
        native = harness.export(plain.replace(confirm=True), executor)
        ended = await outcome_of(harness.approve_flow(native, dict(SENT), decision))
        assert by_gate is not None
        assert len(by_gate.requests) == 1
        if approved:
            assert _value(harness, ended.raw) == EXPECTED
        else:
            assert harness.is_error(ended.raw)
