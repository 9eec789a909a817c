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

from agent_adapter.core.answers import answer_data, answer_text, told
from agent_adapter.core.content import Content, Json, Text
from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    MODEL_VISIBLE_ERRORS,
    ApprovalPending,
    ToolFailed,
)
from agent_adapter.core.identity import Identity
from agent_adapter.core.result_parts import parts_of
from agent_adapter.core.results import plain_result
from agent_adapter.exec.scope import RunScope, current_scope
from agent_adapter.integrations.wires.mcp_content import blocks_of

if TYPE_CHECKING:
    from agent_adapter.core.ports import ToolRunner
    from agent_adapter.core.tool import ToolSpec

log = logging.getLogger("agent_adapter.integrations.mcp")

_STATE = "agent_adapter_session"
_LONGEST_ID = 64
_THEMSELVES = (int, bool, type(None))
# The mark of a value that is no object, as the servers and clients of FastMCP write and read it.
_WRAPPED = {"fastmcp": {"wrap_result": True}}


@dataclass(slots=True)
class CallResult:
    """One call's result in MCP's terms: text for the model, the value as data, an error mark.

    `parts` are there where the value is more than JSON; `blocks` are then what a client is sent.
    """

    text: str
    structured: dict[str, Any] | None
    meta: dict[str, Any] | None = None
    is_error: bool = False
    parts: tuple[Content, ...] = ()

    @property
    def blocks(self) -> list[Any]:
        """The content blocks, of the SDK's own types."""
        return blocks_of(self.parts or (Text(self.text),))


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


def lasts(request: Any) -> bool:
    """Whether the connection of a server's request context serves more than this request.

    It does after a handshake, over HTTP only where the server itself gave the session an id: a
    header of the client's would be its own word.
    """
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    connection = getattr(request.session, "_connection", None)
    if connection is None:
        return False
    if request.request is not None:
        return connection.session_id is not None
    return connection.protocol_version not in MODERN_PROTOCOL_VERSIONS


def bind(
    session_id: str,
    request_id: Any,
    *,
    bound_by: str,
    principal: str | None = None,
    lasting: bool = False,
) -> ToolContext:
    """A context for one request: its call id is the connection's and the request's together.

    A `lasting` connection is also the run and the conversation, unless an `executor.run_scope`
    surrounds the call; a connection of one request says nothing of the run. Each call is new.
    """
    scoped = isinstance(current_scope.get(), RunScope)
    ctx = ToolContext(
        f"{session_id}:{_request_text(request_id)}",
        None if scoped else session_id,
        None if scoped else session_id,
        principal=principal,
        bound_by=bound_by,
    )
    run = session_id if lasting and not scoped else None
    ctx.identity = Identity(run=run, conversation=run)
    return ctx


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
        value = await runner.run_spec(spec, args, ctx, call_id=ctx.call_id)
        return _result(told(value, ctx.edited))
    except Exception as exc:
        return _error(spec, exc)
    except asyncio.CancelledError:
        # One that the tool raised itself would close the connection for every other call.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _error(spec, ToolFailed(f"{spec.name} failed: CancelledError"))


def _result(value: Any) -> CallResult:
    """Text as itself, parts as they are, everything else as JSON text and as data."""
    parts = parts_of(value)
    if parts:
        data = [part.value for part in parts if isinstance(part, Json)]
        whole = json.loads(plain_result(data[0])) if len(data) == 1 else None
        return CallResult("", whole if isinstance(whole, dict) else None, parts=parts)
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
