"""What MCP carries of a call: an id that no other connection repeats, the result, the error."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_adapter.core.answers import answer_data, answer_text
from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    MODEL_VISIBLE_ERRORS,
    ApprovalPending,
    ToolFailed,
)
from agent_adapter.core.results import plain_result
from agent_adapter.exec.scope import RunScope, current_scope

if TYPE_CHECKING:
    from agent_adapter.core.ports import ToolRunner
    from agent_adapter.core.tool import ToolSpec

log = logging.getLogger("agent_adapter.integrations.mcp")

_STATE = "agent_adapter_session"
_LONGEST_ID = 64
_LONGEST_ERROR = 4000
_THEMSELVES = (int, bool, type(None))
# The mark of a value that is no object, as the servers and clients of FastMCP write and read it.
_WRAPPED = {"fastmcp": {"wrap_result": True}}


@dataclass(slots=True)
class CallResult:
    """One call's result in MCP's terms: text for the model, the value as data, an error mark."""

    text: str
    structured: dict[str, Any] | None
    meta: dict[str, Any] | None = None
    is_error: bool = False


def new_session_id() -> str:
    """An id for one connection; nobody outside of this process knows it."""
    return "mcp_" + os.urandom(16).hex()


def session_of(session: Any) -> str:
    """Our own id of the connection behind a `ServerSession`, the same for all of its calls.

    Where each request is a connection of its own (protocol 2026-07-28), so is each id. It is not
    the id on the wire, which is chosen or known by others.
    """
    state = getattr(getattr(session, "_connection", None), "state", None)
    if not isinstance(state, dict):
        return new_session_id()
    found: str = state.setdefault(_STATE, None) or new_session_id()
    state[_STATE] = found
    return found


def bind(
    session_id: str, request_id: Any, *, bound_by: str, principal: str | None = None
) -> ToolContext:
    """A context for one request: its call id is the connection's and the request's together.

    The connection is also the run, so that a repeated call finds the approval it waits for, unless
    an `executor.run_scope` surrounds the call.
    """
    scoped = isinstance(current_scope.get(), RunScope)
    return ToolContext(
        f"{session_id}:{_request_text(request_id)}",
        None if scoped else session_id,
        None if scoped else session_id,
        principal=principal,
        bound_by=bound_by,
    )


def principal_of(token: Any, components: Callable[[Any], Any]) -> str | None:
    """Who a bearer token stands for, by what its verifier said; never by what a client says.

    `components` is the SDK's `principal_components`.
    """
    if token is None:
        return None
    client, issuer, subject = components(token)
    return "|".join(filter(None, (issuer, client, subject)))


def _request_text(request_id: Any) -> str:
    """Request ids are chosen by the client: 3 and "3" differ, and a long one is hashed."""
    if request_id is None:
        return os.urandom(8).hex()
    text = json.dumps(request_id, default=str)
    if len(text) <= _LONGEST_ID:
        return text
    return hashlib.sha256(text.encode()).hexdigest()


async def answered(
    runner: ToolRunner, spec: ToolSpec, args: Mapping[str, Any], ctx: ToolContext
) -> CallResult:
    """The call's result, or its error as the model may read it; only cancellation passes."""
    try:
        return _result(await runner.run_spec(spec, args, ctx, call_id=ctx.call_id))
    except Exception as exc:
        return _error(spec, exc)
    except asyncio.CancelledError:
        # One that the tool raised itself would close the connection for every other call.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _error(spec, ToolFailed(f"{spec.name} failed: CancelledError"))


def _result(value: Any) -> CallResult:
    """Text as itself; everything else as JSON text and as data."""
    text = plain_result(value)
    if type(value) in _THEMSELVES:
        return CallResult(text, {"result": value}, meta=_WRAPPED)
    plain = json.loads(text)
    if type(value) is str:
        return CallResult(plain, None)
    if isinstance(plain, dict):
        return CallResult(text, plain)
    return CallResult(text, {"result": plain}, meta=_WRAPPED)


def _error(spec: ToolSpec, error: Exception) -> CallResult:
    if not isinstance(error, (*MODEL_VISIBLE_ERRORS, ApprovalPending)):
        # The log is the only place with its text: the client is told its class.
        log.error("the call of %s failed", spec.name, exc_info=error)
    return CallResult(answer_text(error=error), answer_data(error=error), is_error=True)


def value_of(result: Any) -> Any:
    """The value in a result that a server sent: its data, else its text, else its blocks.

    Raises `ToolFailed` with the server's text for an error result: a server's word that its tool
    failed is no promise that nothing happened.
    """
    blocks = [
        block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content
    ]
    if result.is_error:
        text = "\n".join(block["text"] for block in blocks if block.get("type") == "text")
        raise ToolFailed(text[:_LONGEST_ERROR] or "the server says that the tool failed")
    structured = result.structured_content
    if structured is not None:
        meta = getattr(result, "meta", None) or {}
        mark = meta.get("fastmcp")
        wrapped = isinstance(mark, Mapping) and mark.get("wrap_result") is True
        if wrapped and isinstance(structured, Mapping) and "result" in structured:
            return structured["result"]
        return structured
    if len(blocks) == 1 and blocks[0].get("type") == "text":
        return blocks[0]["text"]
    return blocks
