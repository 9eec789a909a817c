"""The confirm rule of a tool: whether a person must see a call, and why."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from agent_adapter.exec import provenance, taint
from agent_adapter.exec.call import Call
from agent_adapter.exec.threads import rules
from agent_adapter.exec.timing import within

CONFIRM_SECONDS = 2.0
"""The seconds after which a confirm rule counts as true."""


async def confirm_reason(call: Call) -> str | None:
    """The reason to ask a person about this call, else `None`. Runs the rule once."""
    rule = call.spec.confirm
    if rule is False:
        return None
    if rule is True:
        return "this tool always asks"
    if rule == "tainted":
        return await _tainted(call)
    if rule == "provenance":
        return await provenance.why_to_ask(call)
    return None if await _rule_says_no(call, rule) else "its confirm rule asks"


async def _tainted(call: Call) -> str | None:
    if call.spec.effects == "read" and not call.spec.egress:
        return None
    if call.conversation is None and not call.run_is_known:
        return "it is not known what its run has read: no run or conversation is given"
    labels = await taint.labels(call)
    return f"the run has read {', '.join(labels)}" if labels else None


async def _rule_says_no(call: Call, rule: Callable[..., Any]) -> bool:
    """Whether the rule answered exactly `False`; a failure, a delay or any other value asks."""
    try:
        return await within(CONFIRM_SECONDS, _answer(call, rule)) is False
    except Exception:
        return False


async def _answer(call: Call, rule: Callable[..., Any]) -> Any:
    arguments = call.arguments
    if inspect.iscoroutinefunction(rule):
        return await rule(arguments, call.ctx)
    answer = await rules.run(lambda: rule(arguments, call.ctx))
    return await answer if inspect.isawaitable(answer) else answer
