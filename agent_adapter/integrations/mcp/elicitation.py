"""What a server asks the user while it runs a tool: bound to the call, recorded, never a yes."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_adapter.core.inert import visible
from agent_adapter.exec.record import note
from agent_adapter.integrations.mcp.flights import Flight

if TYPE_CHECKING:
    from mcp_types import ElicitResult

log = logging.getLogger("agent_adapter.integrations.mcp")

_LONGEST_NOTED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ElicitationQuestion:
    """What a server asks the user while one of its tools runs; the answer goes to that server.

    It never approves a call: approvals are asked by the executor's port, before the server is
    called. `tool`, `arguments` (secrets masked) and `call_id` say which call it was asked in.
    `schema` describes a form's fields; `url` is a page the server wants opened instead.
    `message` is the server's text, with hidden characters made visible.
    """

    server: str
    message: str
    schema: Mapping[str, Any] | None = None
    url: str | None = None
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    call_id: str | None = None
    run_id: str | None = None


Ask = Callable[[ElicitationQuestion], Any]
"""Answers a question with the form's fields, or `None` to decline; sync or async."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Puts a server's questions to `ask`.

    `during_approved` lets it ask in a write that a person has approved: what it asks was not there
    to be approved.
    """

    server: str
    ask: Ask
    during_approved: bool = False

    async def answer(self, flight: Flight | None, params: Any) -> ElicitResult:
        """The user's answer; a question that belongs to no call, or may not be asked, is cancelled.

        What was asked, and how it was answered, is in the ledger before the server learns it.
        """
        from mcp_types import ElicitResult

        if flight is None:
            log.warning("%s asked a question that belongs to no call; it was refused", self.server)
            return ElicitResult(action="cancel")
        question = self._question(flight, params)
        if flight.approved_write and not self.during_approved:
            log.warning(
                "%s asked a question in the approved write %s; it was refused "
                "(ask_during_approved=True lets it ask)",
                self.server,
                question.tool,
            )
            await _note(flight, question, "cancel", reason="in an approved write")
            return ElicitResult(action="cancel")
        answer = self.ask(question)
        answer = await answer if inspect.isawaitable(answer) else answer
        if answer is None:
            await _note(flight, question, "decline")
            return ElicitResult(action="decline")
        content = None if question.url is not None else dict(answer)
        await _note(flight, question, "accept", fields=sorted(content or {}))
        return ElicitResult(action="accept", content=content)

    def _question(self, flight: Flight, params: Any) -> ElicitationQuestion:
        from mcp_types import ElicitRequestURLParams

        by_page = isinstance(params, ElicitRequestURLParams)
        call = flight.ctx.call_ref if flight.ctx is not None else None
        return ElicitationQuestion(
            server=self.server,
            message=visible(params.message),
            schema=None if by_page else _plain(params.requested_schema),
            url=params.url if by_page else None,
            tool=call.spec.name if call is not None else flight.tool,
            arguments=call.arguments if call is not None else dict(flight.arguments),
            call_id=flight.ctx.call_id if flight.ctx is not None else None,
            run_id=call.run_id if call is not None else None,
        )


async def _note(flight: Flight, question: ElicitationQuestion, action: str, **more: Any) -> None:
    """Write to the ledger what was asked; what the user answered is theirs and the server's."""
    call = flight.ctx.call_ref if flight.ctx is not None else None
    if call is None:
        return
    facts = {
        "server": question.server,
        "tool": question.tool,
        "message": question.message[:_LONGEST_NOTED],
        "action": action,
    }
    await note(call, "elicitation", facts | more)


def _plain(schema: Any) -> dict[str, Any]:
    if hasattr(schema, "model_dump"):
        plain: dict[str, Any] = schema.model_dump(mode="json", by_alias=True, exclude_none=True)
        return plain
    return dict(schema)
