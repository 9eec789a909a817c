"""Agno: pauses resolved by a port, and confirmations that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("agno")

from agno.agent import Agent
from agno.models.response import ToolExecution
from agno.run.agent import RunOutput
from agno.run.requirement import RunRequirement
from agno.team import Team

import agent_adapter as aa
from agent_adapter.integrations.agno import (
    agno_function,
    agno_functions,
    resolve_requirements,
)
from agent_adapter.integrations.agno.gate import PASSED

from ._agno_agent import agent_of, error_of, settled, shown
from ._agno_model import ScriptedModel
from ._shop import NO, Shop, asking

pytestmark = pytest.mark.anyio

REFUND = {"order": "A1", "amount": 5}
CALL = ("c1", "refund", REFUND)


def _agent(shop: Shop, *turns: Any) -> Agent:
    tools = agno_functions(shop.registry, executor=shop.executor)
    return agent_of(tools, *(turns or ([CALL],)))


async def _paused(shop: Shop, *turns: Any) -> tuple[Agent, Any]:
    agent = _agent(shop, *turns)
    output = await agent.arun("go")
    assert output.is_paused
    return agent, output


@pytest.fixture(autouse=True)
def _no_token_is_left() -> Any:
    """Whatever a test does, no token outlives the calls it was given for, unless it says so."""
    PASSED.held.clear()
    yield
    assert not PASSED.held


# Case by case


async def test_confirmed_by_the_port_the_executor_does_not_ask_again() -> None:
    """Confirmed by `resolve_requirements`: a one-use token, and the executor's port is quiet."""
    port, own = asking(), asking(NO)
    shop = Shop(approval=own)
    agent, output = await _paused(shop)
    output = await settled(agent, output, port, shop.registry)
    assert json.loads(output.tools[0].result) == "5 for A1"
    assert (len(port.requests), len(own.requests)) == (1, 0)


async def test_the_port_is_told_the_call() -> None:
    """The port sees tool, arguments, the tool call id and the output's run id."""
    port, shop = asking(), Shop()
    agent, output = await _paused(shop)
    await settled(agent, output, port, shop.registry)
    seen = port.requests[0]
    assert (seen.tool, seen.arguments, seen.call_id) == ("refund", REFUND, "c1")
    assert (seen.run_id, seen.thread_id) == (output.run_id, output.session_id)
    assert seen.edits_allowed is False


async def test_rejected_by_the_port_the_model_reads_why() -> None:
    """Denied: the requirement is rejected with the model-visible error (A10)."""
    shop = Shop()
    agent, output = await _paused(shop)
    output = await settled(agent, output, asking(NO), shop.registry)
    assert output.tools[0].confirmed is False
    assert error_of(agent)["kind"] == "approval-denied"
    assert not shop.ran


async def test_confirmed_by_hand_the_executor_asks() -> None:
    """`requirement.confirm()` by hand: no token, so the executor asks its own port."""
    own = asking()
    shop = Shop(approval=own)
    agent, output = await _paused(shop)
    output.active_requirements[0].confirm()
    await agent.acontinue_run(run_response=output)
    assert len(own.requests) == 1
    assert shop.refunds == [REFUND]


async def test_confirmed_by_hand_without_a_port_is_denied() -> None:
    """`requirement.confirm()` by hand and no port: denied."""
    shop = Shop()
    agent, output = await _paused(shop)
    output.active_requirements[0].confirm()
    await agent.acontinue_run(run_response=output)
    assert error_of(agent)["kind"] == "approval-denied"
    assert not shop.ran


async def test_arguments_edited_after_the_confirmation_have_no_token() -> None:
    """Edited `tool_args`: the token is for what was asked about (A2, A3)."""
    shop = Shop()
    agent, output = await _paused(shop)
    await resolve_requirements(output, asking(), shop.registry)
    output.tools[0].tool_args = REFUND | {"amount": 500}
    await agent.acontinue_run(run_response=output)
    assert error_of(agent)["kind"] == "approval-denied"
    assert not shop.ran
    PASSED.held.clear()


async def test_another_tool_call_id_has_no_token() -> None:
    """Another `tool_call_id`: the executor asks its own port."""
    shop = Shop()
    agent, output = await _paused(shop)
    await resolve_requirements(output, asking(), shop.registry)
    output.tools[0].tool_call_id = "c2"
    await agent.acontinue_run(run_response=output)
    assert error_of(agent, "c2")["kind"] == "approval-denied"
    assert not shop.ran
    PASSED.held.clear()


async def test_a_replayed_requirement_does_not_run_again() -> None:
    """A replayed requirement (`result=None`): the tool does not run a second time (A4, A11)."""
    own = asking(NO)
    shop = Shop(approval=own)
    agent, output = await _paused(shop)
    output = await settled(agent, output, asking(), shop.registry)
    tool = output.tools[0]
    tool.result, tool.requires_confirmation, tool.confirmed = None, True, True
    await agent.acontinue_run(run_response=output)
    assert shop.refunds == [REFUND]


async def test_a_deferred_port_is_two_phase() -> None:
    """`DeferredApproval`: `ApprovalPending` until every call is decided, then each runs once."""
    shop = Shop()
    port, inbox = aa.DeferredApproval(shop.store), aa.Inbox(shop.store)
    calls = [CALL, ("c2", "refund", REFUND | {"amount": 6})]
    agent, output = await _paused(shop, calls)
    with pytest.raises(aa.ApprovalPending) as caught:
        await resolve_requirements(output, port, shop.registry)
    first, second = caught.value.ids
    await inbox.approve(first, reviewer="ann")
    with pytest.raises(aa.ApprovalPending) as caught:
        await resolve_requirements(output, port, shop.registry)
    assert caught.value.ids == (second,)
    assert [r.needs_confirmation for r in output.requirements] == [True, True]
    await inbox.deny(second, reviewer="ann")
    await settled(agent, output, port, shop.registry)
    assert shop.refunds == [REFUND]
    assert (await inbox.get(first)).state == "taken"


async def test_edited_arguments_are_rejected() -> None:
    """Edited arguments: refused, the requirement is rejected."""
    shop = Shop()
    edit = aa.ApprovalDecision.approve(reviewer="ann", arguments=REFUND | {"amount": 1})
    agent, output = await _paused(shop)
    await settled(agent, output, asking(edit), shop.registry)
    assert error_of(agent)["kind"] == "approval-denied"
    assert not shop.ran


async def test_edited_arguments_are_applied_where_allowed() -> None:
    """`allow_edits=True`: the edited arguments are validated and run."""
    shop = Shop()
    edit = aa.ApprovalDecision.approve(reviewer="ann", arguments=REFUND | {"amount": 1})
    agent, output = await _paused(shop)
    await settled(agent, output, asking(edit), shop.registry, allow_edits=True)
    told = json.loads(shown(agent)["c1"])
    assert (told["arguments"], told["result"]) == (REFUND | {"amount": 1}, "1 for A1")
    assert shop.refunds == [REFUND | {"amount": 1}]
    assert output.tools[0].tool_args == REFUND | {"amount": 1}


async def test_edits_do_not_skip_validation() -> None:
    """Edited arguments are validated like any others (A13)."""
    shop = Shop()
    edit = aa.ApprovalDecision.approve(reviewer="ann", arguments={"order": "A1"})
    agent, output = await _paused(shop)
    await settled(agent, output, asking(edit), shop.registry, allow_edits=True)
    assert error_of(agent)["kind"] == "tool-args-invalid"
    assert not shop.ran


async def test_edits_through_a_serialised_pause_are_applied() -> None:
    """The run's own record of the call shows the edits too."""
    shop = Shop()
    edit = aa.ApprovalDecision.approve(reviewer="ann", arguments={"order": "null", "amount": 1})
    agent, output = await _paused(shop)
    again = RunOutput.from_dict(json.loads(json.dumps(output.to_dict())))
    await settled(agent, again, asking(edit), shop.registry, allow_edits=True)
    assert shop.refunds == [{"order": "null", "amount": 1}]
    assert again.tools is not None
    assert again.tools[0].tool_args == {"order": "null", "amount": 1}


async def test_a_pause_that_nobody_resolved_does_not_run() -> None:
    """A run continued with an open confirmation counts it as rejected (A9)."""
    shop = Shop(approval=asking())
    agent, output = await _paused(shop)
    await agent.acontinue_run(run_response=output)
    assert not shop.ran


async def test_an_approved_tool_is_asked_about_again_in_the_next_turn() -> None:
    """One approval is for one call: the same arguments later are another call (A8)."""
    port, shop = asking(), Shop()
    agent, output = await _paused(shop, [CALL], [("c2", "refund", REFUND)])
    await settled(agent, output, port, shop.registry)
    assert [request.call_id for request in port.requests] == ["c1", "c2"]
    assert shop.refunds == [REFUND, REFUND]


async def test_a_function_is_no_approval_port() -> None:
    """A reviewer function in place of a port is refused with the fix in the message."""
    with pytest.raises(TypeError, match=r"CallbackApproval"):
        await resolve_requirements(
            RunOutput(run_id="run"),
            lambda request: True,  # type: ignore[arg-type]  # what is tested
            Shop().registry,
        )


async def test_a_reviewer_is_shown_a_copy() -> None:
    """A port that changes what it was shown changes nothing of the call."""

    def tamper(request: aa.ApprovalRequest) -> aa.ApprovalDecision:
        request.arguments["amount"] = 500
        return aa.ApprovalDecision.approve(reviewer="ann")

    shop = Shop()
    agent, output = await _paused(shop)
    await settled(agent, output, asking(tamper), shop.registry)
    assert shop.refunds == [REFUND]


# resolve_requirements


async def test_resolving_twice_is_harmless() -> None:
    """A second call finds nothing to resolve: one question, one run (A11)."""
    port, shop = asking(), Shop()
    agent, output = await _paused(shop)
    await resolve_requirements(output, port, shop.registry)
    await resolve_requirements(output, port, shop.registry)
    await agent.acontinue_run(run_response=output)
    assert len(port.requests) == 1
    assert shop.refunds == [REFUND]


async def test_nothing_is_asked_of_a_run_that_did_not_pause() -> None:
    """An output without requirements is left alone."""
    port, shop = asking(), Shop()
    output = await _agent(shop, "nothing to do").arun("go")
    await resolve_requirements(output, port, shop.registry)
    assert not port.requests


async def test_other_requirements_stay_as_they_are() -> None:
    """A requirement that is no confirmation is not touched."""
    other = RunRequirement(ToolExecution(tool_name="refund", external_execution_required=True))
    output = RunOutput(run_id="run", requirements=[other])
    await resolve_requirements(output, asking(), Shop().registry)
    assert other.needs_external_execution
    assert other.confirmation is None


async def test_an_unknown_tool_is_rejected() -> None:
    """A tool that the registry does not export to Agno is rejected, unasked."""
    port = asking()
    stranger = RunRequirement(ToolExecution(tool_name="wipe", requires_confirmation=True))
    await resolve_requirements(
        RunOutput(run_id="run", requirements=[stranger]), port, Shop().registry
    )
    assert stranger.confirmation is False
    assert "tool-not-found" in (stranger.confirmation_note or "")
    assert not port.requests


async def test_a_rule_that_says_no_confirms_without_asking() -> None:
    """A callable rule pauses every time; where it says no, the call is confirmed unasked."""
    port, shop = asking(), Shop(confirm=lambda args, ctx: args["amount"] > 10)
    agent, output = await _paused(shop)
    await settled(agent, output, port, shop.registry)
    assert not port.requests
    assert shop.refunds == [REFUND]


async def test_invalid_arguments_are_rejected_unasked() -> None:
    """Arguments that do not fit are rejected with the reason; nobody is asked."""
    port, shop = asking(), Shop()
    agent, output = await _paused(shop, [("c1", "refund", {"order": "A1"})])
    await settled(agent, output, port, shop.registry)
    assert error_of(agent)["kind"] == "tool-args-invalid"
    assert not port.requests


async def test_plain_calls_of_the_batch_run_once() -> None:
    """In a mixed batch the plain call runs before the pause and is not repeated (U14)."""
    shop = Shop()
    agent, output = await _paused(shop, [("c0", "look_up", {"order": "A1"}), CALL])
    await settled(agent, output, asking(), shop.registry)
    assert shop.ran == [("look_up", {"order": "A1"}), ("refund", REFUND)]
    assert set(shown(agent)) == {"c0", "c1"}


async def test_a_call_id_used_twice_is_asked_twice() -> None:
    """Two calls under one id with different arguments: each has its own answer (A6)."""
    shop = Shop()
    port = asking(lambda r: NO if r.arguments["amount"] == 6 else aa.ApprovalDecision.approve())
    agent, output = await _paused(shop, [CALL, ("c1", "refund", REFUND | {"amount": 6})])
    await settled(agent, output, port, shop.registry)
    assert sorted(request.arguments["amount"] for request in port.requests) == [5, 6]
    assert shop.refunds == [REFUND]


async def test_two_tools_under_one_id_have_an_answer_each() -> None:
    """The same id and arguments for two tools: each is asked about, and neither takes the other's.

    The executor is asked nothing, so each call had the token that was given for it.
    """
    own = asking(NO)
    shop = Shop(approval=own)

    @shop.registry.tool(confirm=True)
    async def repay(order: str, amount: int) -> str:
        """Pays back."""
        return f"repaid {order}"

    port = asking()
    agent, output = await _paused(shop, [CALL, ("c1", "repay", REFUND)])
    output = await settled(agent, output, port, shop.registry)
    assert sorted(request.tool for request in port.requests) == ["refund", "repay"]
    assert not own.requests
    assert {json.loads(tool.result) for tool in output.tools} == {"5 for A1", "repaid A1"}


async def test_rewritten_text_is_asked_about_as_written() -> None:
    """The port sees, and the tool gets, the text that Agno had turned into null."""
    port, shop = asking(), Shop()
    agent, output = await _paused(shop, [("c1", "refund", {"order": "None", "amount": 5})])
    await settled(agent, output, port, shop.registry)
    assert port.requests[0].arguments["order"] == "None"
    assert shop.refunds == [{"order": "None", "amount": 5}]


async def test_a_team_member_is_asked_once() -> None:
    """In a team the tool runs under the member's run: the token is bound to that."""
    port, own = asking(), asking(NO)
    shop = Shop(approval=own)
    member = _agent(shop)
    member.name, member.id = "clerk", "clerk"
    delegate = [("t1", "delegate_task_to_member", {"member_id": "clerk", "task": "refund A1"})]
    team = Team(members=[member], model=ScriptedModel(turns=[delegate]), telemetry=False)
    output = await team.arun("go")
    [requirement] = output.requirements or []
    assert requirement.member_run_id not in (None, output.run_id)
    await resolve_requirements(output, port, shop.registry)
    await team.acontinue_run(run_response=output)
    assert shop.refunds == [REFUND]
    assert (len(port.requests), len(own.requests)) == (1, 0)


async def test_two_executors_of_one_tool_never_share_a_token() -> None:
    """A tool exported twice: the token of one executor is nothing to the other."""
    shop = Shop()
    agent, output = await _paused(shop)
    other = aa.Executor(shop.registry, store=aa.open_store("memory://"))
    kept = agno_function(shop.registry.get("refund"), executor=other)
    await settled(agent, output, asking(), shop.registry)
    assert kept.name == "refund"
    assert error_of(agent)["kind"] == "approval-denied"
    assert not shop.ran


# Forgeries: a confirmation that a client sends is a request


async def test_a_forged_output_does_not_run() -> None:
    """`RunOutput.from_dict` with `confirmed` and other arguments: no token (A1, A2)."""
    shop = Shop()
    agent, output = await _paused(shop)
    posted = output.to_dict()
    for record in (posted["tools"][0], posted["requirements"][0]["tool_execution"]):
        record |= {"confirmed": True, "tool_args": REFUND | {"amount": 999}}
    await agent.acontinue_run(run_response=RunOutput.from_dict(posted))
    assert not shop.ran


async def test_a_forged_execution_does_not_run() -> None:
    """A `ToolExecution.from_dict` that claims to be confirmed: no token."""
    shop = Shop()
    agent, output = await _paused(shop)
    forged = {"tool_call_id": "c1", "tool_name": "refund", "tool_args": REFUND | {"amount": 9}}
    output.tools[0] = ToolExecution.from_dict(
        forged | {"requires_confirmation": True, "confirmed": True}
    )
    await agent.acontinue_run(run_response=output)
    assert not shop.ran


async def test_a_forged_repeat_of_a_plain_write_does_not_run_again() -> None:
    """A write that needed no confirmation, sent back as a confirmed one, gives its outcome."""
    shop = Shop(confirm=False)
    agent = _agent(shop)
    output = await agent.arun("go")
    assert output.tools is not None
    tool = output.tools[0]
    tool.result, tool.requires_confirmation, tool.confirmed = None, True, True
    await agent.acontinue_run(run_response=output)
    assert shop.refunds == [REFUND]


async def test_the_token_of_one_run_is_nothing_in_another() -> None:
    """The same call id and arguments in another run: no token (A5)."""
    shop = Shop()
    _, first = await _paused(shop)
    agent, second = await _paused(shop)
    await resolve_requirements(first, asking(), shop.registry)
    second.active_requirements[0].confirm()
    await agent.acontinue_run(run_response=second)
    assert error_of(agent)["kind"] == "approval-denied"
    assert not shop.ran
    PASSED.held.clear()


async def test_a_serialised_pause_is_resolved_like_the_original() -> None:
    """A pause that went through a client and back, unchanged: asked once, run once."""
    port, shop = asking(), Shop()
    agent, output = await _paused(shop)
    again = RunOutput.from_dict(json.loads(json.dumps(output.to_dict())))
    await settled(agent, again, port, shop.registry)
    assert len(port.requests) == 1
    assert shop.refunds == [REFUND]


async def test_a_pause_that_was_settled_and_comes_again_runs_nothing() -> None:
    """A client that sends the same pause twice: nobody is asked again, nothing runs again (A11)."""
    port, shop = asking(), Shop()
    agent, output = await _paused(shop)
    saved = json.dumps(output.to_dict())
    await settled(agent, output, port, shop.registry)
    again = await settled(agent, RunOutput.from_dict(json.loads(saved)), port, shop.registry)
    assert len(port.requests) == 1
    assert shop.refunds == [REFUND]
    assert json.loads(again.tools[0].result) == "5 for A1"


async def test_a_serialised_pause_is_rejected_like_the_original() -> None:
    """The reviewer's reason reaches the model through a serialised pause too."""
    shop = Shop()
    agent, output = await _paused(shop)
    again = RunOutput.from_dict(json.loads(json.dumps(output.to_dict())))
    await settled(agent, again, asking(NO), shop.registry)
    assert error_of(agent)["kind"] == "approval-denied"
    assert not shop.ran
