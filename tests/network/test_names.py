"""The names of the network room: those that programs import, and what importing them costs."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import agent_adapter.network as network

DOCUMENTED = """
TransitionGraph Transition TransitionTarget TransitionCondition TransitionDecision register_target
register_condition AgentTarget RoundRobinTarget StayTarget RevertToInitiatorTarget TerminateTarget
Always FromSpeaker ToolCalled ContextEquals Handoff EV_CONTEXT_SET ChannelInject ChannelStateInject
WORKFLOW_TYPE HumanClient EV_CHANNEL_CLOSED Hub HubClient LocalLink Passport Resume Envelope
"""


@pytest.mark.parametrize("name", DOCUMENTED.split())
def test_documented_name_is_importable(name: str) -> None:
    """Every name that documented programs import is there."""
    assert getattr(network, name) is not None


@pytest.mark.parametrize("name", network.__all__)
def test_every_name_resolves(name: str) -> None:
    """Every listed name is there."""
    assert getattr(network, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name fails as it does in any module."""
    with pytest.raises(AttributeError, match="Hubb"):
        network.Hubb  # type: ignore[attr-defined]  # noqa: B018  # the case


def test_helpers_are_where_programs_import_them() -> None:
    """The helpers for variables have a module of their own."""
    helpers = importlib.import_module("agent_adapter.network.workflow_helpers")
    assert {"set_context", "delete_context"} <= set(dir(helpers))


def test_importing_graphs_loads_no_hub() -> None:
    """A program that builds graphs loads no hub, no store of SQL, no framework and no web code."""
    code = (
        "import sys; from agent_adapter.network import TransitionGraph, AgentTarget; "
        "heavy = {'agent_adapter.network.hub.hub', 'sqlalchemy', 'websockets', 'ag2', 'agno'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_shared_names_have_ag2_s_values() -> None:
    """Events and types of channel have AG2's names, so that either reads the other's logs."""
    ag2 = pytest.importorskip("ag2.network")
    shared = [n for n in network.__all__ if n.startswith("EV_") or n.endswith("_TYPE")]
    assert len(shared) == 16
    assert {n: getattr(network, n) for n in shared} == {n: getattr(ag2, n) for n in shared}
