"""A port's approval as AG2 tool middleware."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_adapter.core.errors import ApprovalPending
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.gate import Gate
from agent_adapter.integrations.ag2.calls import arguments_of, bind
from agent_adapter.integrations.ag2.places import said_on
from agent_adapter.integrations.ag2.results import failure, waiting

if TYPE_CHECKING:
    from ag2.annotations import Context
    from ag2.events import ToolCallEvent
    from ag2.middleware import ToolMiddleware


Execution = Callable[[Any, Any], Awaitable[Any]]
CallKey = tuple[str, Any, int]
"""Stream, call id, and the event object: models reuse call ids within one stream."""


def gate_layer(
    spec: ToolSpec, gate: Gate, tokens: dict[CallKey, Any], allow_edits: bool
) -> ToolMiddleware:
    """Tool middleware that asks the port and leaves a one-use token for the call it lets by."""
    from ag2.exceptions import HumanInputError

    async def approval_gate(call_next: Execution, event: ToolCallEvent, context: Context) -> Any:
        grant = None
        key: CallKey | None = None
        try:
            args = arguments_of(spec, event)
            ctx = bind(event, str(context.stream.id))
            ctx.said = partial(said_on, context)
            key = (ctx.run_id or "", event.id, id(event))
            # The port and what runs after it get their own copy each.
            grant = await gate.ask(spec, copy.deepcopy(args), ctx, edits_allowed=allow_edits)
            if grant.token is not None:
                tokens[key] = grant.token
            return await call_next(event, context)
        except HumanInputError:
            raise
        except ApprovalPending as exc:
            return waiting(event, exc)
        except Exception as exc:
            return failure(event, exc)
        finally:
            if key is not None:
                tokens.pop(key, None)
            if grant is not None:
                grant.drop()

    return approval_gate
