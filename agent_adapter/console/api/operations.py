"""The same actions as a JSON API under `/api/v1`, described in `/api/v1/openapi.json`.

Programs send a token (`Authorization: Bearer aat_…`); cookies do not count here.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent_adapter.console import actions, approvals, channels, in_doubt, runs, tools
from agent_adapter.console.api import requests as bodies
from agent_adapter.console.api.openapi import Operation, Query, document
from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, console_of
from agent_adapter.console.problems import Problem
from agent_adapter.core.errors import AgentAdapterError, NotFoundError
from agent_adapter.exec import ledger
from agent_adapter.exec.approval.inbox import Inbox
from agent_adapter.network.channels.reports import ONGOING
from agent_adapter.store import queries
from agent_adapter.store.approvals import Seen

__all__ = ["OPERATIONS", "ROUTES", "problem_response"]

_LIMIT = Query(name="limit", kind="integer", about="At most so many, 1 to 200.")
_START = Query(name="start", kind="number", about="`next` of the page before.")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, read: who asks, what for, and with which body."""

    console: Console
    request: Request
    person: Person
    body: Any

    def part(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])

    def text(self, name: str, default: str = "") -> str:
        """A text in the query."""
        return self.request.query_params.get(name, default)

    def limit(self, default: int = 50) -> int:
        """How many entries were asked for."""
        text = self.text("limit", str(default))
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= 200):
            raise Problem(422, "query", "limit is a whole number from 1 to 200")
        return int(text)

    def start(self) -> float | None:
        """Where the page begins."""
        return approvals.number_of(self.request, "start")


async def _me(asked: Asked) -> Any:
    person = asked.person
    return {"name": person.name, "role": person.role, "reviewer": person.reviewer}


async def _approvals(asked: Asked) -> Any:
    state, limit = asked.text("state", "pending"), asked.limit()
    if state not in approvals.STATES:
        raise Problem(422, "state", f"state is one of {', '.join(approvals.STATES)}")
    found = await _inbox(asked).list(
        None if state == "all" else state, limit=limit + 1, after=asked.start()
    )
    more = found[limit - 1].created_at if len(found) > limit else None
    return {"approvals": [asdict(each) for each in found[:limit]], "next": more}


async def _approval(asked: Asked) -> Any:
    try:
        return asdict(await _inbox(asked).get(asked.part("id")))
    except AgentAdapterError as exc:
        raise Problem(404, "not-found", str(exc)) from exc


async def _approve(asked: Asked) -> Any:
    return await _decided(asked, "approved")


async def _deny(asked: Asked) -> Any:
    if asked.body.arguments is not None:
        raise Problem(422, "arguments", "a denial takes no arguments")
    return await _decided(asked, "denied")


async def _decided(asked: Asked, verdict: actions.Verdict) -> Any:
    body: bodies.Decision = asked.body
    record = await actions.decide(
        asked.console.settings,
        asked.person,
        asked.part("id"),
        verdict,
        seen=Seen(digest=body.digest, version=body.version),
        reason=body.reason,
        arguments=body.arguments,
    )
    return asdict(record)


async def _decide_alike(asked: Asked) -> Any:
    body: bodies.DecisionOnSeveral = asked.body
    decided, failed = await actions.decide_alike(
        asked.console.settings,
        asked.person,
        [(each.id, Seen(digest=each.digest, version=each.version)) for each in body.records],
        body.verdict,
        reason=body.reason,
    )
    return {"decided": [record.id for record in decided], "failed": failed}


async def _runs(asked: Asked) -> Any:
    tenant, limit, start = asked.console.settings.tenant, asked.limit(), asked.start()
    ending = asked.text("ending")
    if ending not in ("", *runs.ENDINGS):
        raise Problem(422, "ending", f"ending is one of {', '.join(runs.ENDINGS)}")
    lines, more = await asked.console.store.read(
        lambda tx: queries.runs(
            tx,
            tenant,
            limit=limit,
            start=start,
            tool=asked.text("tool") or None,
            principal=asked.text("principal") or None,
            ending=ending or None,
        )
    )
    return {"runs": [asdict(line) for line in lines], "next": more}


async def _run(asked: Asked) -> Any:
    return asdict(await runs.line_of(asked.console, asked.part("id")))


async def _calls(asked: Asked) -> Any:
    await runs.line_of(asked.console, asked.part("id"))
    steps, more = await runs.steps_of(
        asked.console, asked.part("id"), asked.start(), asked.limit(100)
    )
    return {"calls": [asdict(step) for step in steps], "next": more}


async def _verified(asked: Asked) -> Any:
    await runs.line_of(asked.console, asked.part("id"))
    report = await ledger.verify(asked.console.store, asked.part("id"))
    return asdict(report) | {"ok": report.ok}


async def _call(asked: Asked) -> Any:
    report = await runs.call_of(asked.console, asked.part("key"))
    arguments, result = report.arguments, report.result
    return {
        "call": report.row,
        "arguments": None if arguments is None else arguments.decode("utf-8", "replace"),
        "result": None if result is None else result.decode("utf-8", "replace"),
        "approval": None if report.approval is None else report.approval["id"],
    }


async def _in_doubt(asked: Asked) -> Any:
    calls, total = await in_doubt.in_doubt(asked.console)
    return {"calls": calls, "total": total}


async def _resolve(asked: Asked) -> Any:
    body: bodies.Resolution = asked.body
    if body.result is not None and not body.happened:
        raise Problem(422, "result", "a call that did not happen has no result")
    row = await actions.resolve(
        asked.console.settings,
        asked.person,
        asked.part("key"),
        happened=body.happened,
        result=body.result,
        reason=body.reason,
    )
    return {"call_key": row["call_key"], "ending": row["ending"]}


async def _channels(asked: Asked) -> Any:
    states: dict[str, Any] = {"open": ONGOING, "closed": ("closed", "expired"), "all": None}
    state = asked.text("state", "open")
    if state not in states:
        raise Problem(422, "state", f"state is one of {', '.join(states)}")
    lines = await channels.lines_of(asked.console, states[state], asked.limit())
    return {"channels": [asdict(line) for line in lines]}


async def _channel(asked: Asked) -> Any:
    return asdict(await channels.report(asked.console, asked.part("id")))


async def _log(asked: Asked) -> Any:
    await channels.report(asked.console, asked.part("id"))
    since = asked.text("since", "0")
    if not (since.isascii() and since.isdigit() and len(since) < 16):
        raise Problem(422, "query", "since is the number of an entry")
    lines = await channels.log_of(asked.console, asked.part("id"), since=int(since))
    return {
        "entries": [
            {"seq": line.seq, "sender": line.sender, **line.envelope.to_dict()} for line in lines
        ]
    }


async def _speak(asked: Asked) -> Any:
    body: bodies.Speech = asked.body
    id = await actions.speak(
        asked.console.settings,
        asked.person,
        asked.part("id"),
        sender=body.sender,
        text=body.text,
        key=body.key,
    )
    return {"command": id}


async def _fork(asked: Asked) -> Any:
    body: bodies.Fork = asked.body
    settings, channel = asked.console.settings, asked.part("id")
    return {"command": await actions.fork(settings, asked.person, channel, at=body.at)}


async def _resume(asked: Asked) -> Any:
    settings = asked.console.settings
    return {"command": await actions.resume_fork(settings, asked.person, asked.part("id"))}


async def _command(asked: Asked) -> Any:
    return await actions.command_result(asked.console.settings, asked.part("id"))


async def _tools(asked: Asked) -> Any:
    uses, more = await tools.uses_of(asked.console, asked.text("after"), asked.limit(25))
    return {"tools": [asdict(use) for use in uses], "next": more}


async def _health(asked: Asked) -> Any:
    return await tools.health_of(asked.console)


def _inbox(asked: Asked) -> Inbox:
    return Inbox(asked.console.store, tenant=asked.console.settings.tenant)


OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/me", "Who the token is.", _me),
    Operation(
        *("GET", "/approvals", "What waits for a person, oldest first.", _approvals),
        queries=(Query("state", "string", "In which state.", approvals.STATES), _LIMIT, _START),
    ),
    Operation(
        *("POST", "/approvals/alike", "One word on several like records.", _decide_alike),
        role="approver",
        body=bodies.DecisionOnSeveral,
    ),
    Operation("GET", "/approvals/{id}", "One record, whole.", _approval),
    Operation(
        *("POST", "/approvals/{id}/approve", "Let the call run, once.", _approve),
        role="approver",
        body=bodies.Decision,
    ),
    Operation(
        *("POST", "/approvals/{id}/deny", "Refuse the call.", _deny),
        role="approver",
        body=bodies.Decision,
    ),
    Operation(
        *("GET", "/runs", "Runs, the newest first.", _runs),
        queries=(
            Query("tool", "string", "That called this tool."),
            Query("ending", "string", "With a call that ended so.", runs.ENDINGS),
            Query("principal", "string", "On whose behalf."),
            _LIMIT,
            _START,
        ),
    ),
    Operation("GET", "/runs/{id}", "One run.", _run),
    Operation(
        *("GET", "/runs/{id}/calls", "The calls of a run, in order.", _calls),
        queries=(_LIMIT, _START),
    ),
    Operation("GET", "/runs/{id}/verification", "Whether the run's chain is whole.", _verified),
    Operation("GET", "/calls/{key}", "One call, whole.", _call),
    Operation("GET", "/in-doubt", "Writes whose end nobody knows.", _in_doubt),
    Operation(
        *("POST", "/in-doubt/{key}/resolve", "Say whether a write in doubt happened.", _resolve),
        role="approver",
        body=bodies.Resolution,
    ),
    Operation(
        *("GET", "/channels", "Channels, the newest first.", _channels),
        queries=(Query("state", "string", "Which.", ("open", "closed", "all")), _LIMIT),
    ),
    Operation("GET", "/channels/{id}", "One channel, without its log.", _channel),
    Operation(
        *("GET", "/channels/{id}/log", "Entries of a channel's log after `since`.", _log),
        queries=(Query("since", "integer", "The number of an entry."),),
    ),
    Operation(
        *("POST", "/channels/{id}/speak", "Speak as a person of the channel.", _speak),
        role="approver",
        body=bodies.Speech,
    ),
    Operation(
        *("POST", "/channels/{id}/fork", "A paused copy, up to a message.", _fork),
        role="admin",
        body=bodies.Fork,
    ),
    Operation(
        *("POST", "/channels/{id}/resume", "Let a paused fork go on.", _resume), role="admin"
    ),
    Operation("GET", "/commands/{id}", "What came of what a hub was asked.", _command),
    Operation(
        *("GET", "/tools", "How tools were used, by name.", _tools),
        queries=(Query("after", "string", "`next` of the page before."), _LIMIT),
    ),
    Operation("GET", "/health", "The store and the integrations.", _health),
)
"""Everything that the API does."""


def problem_response(problem: Problem) -> JSONResponse:
    """A problem as JSON: `{"error": {"kind", "message"}}`."""
    headers = {"WWW-Authenticate": "Bearer"} if problem.status == 401 else None
    error = {"error": {"kind": problem.kind, "message": problem.message}}
    return JSONResponse(error, status_code=problem.status, headers=headers)


def _route(operation: Operation) -> Route:
    async def endpoint(request: Request) -> Response:
        console = console_of(request)
        try:
            person = await console.authenticator.bearer(request)
            person.check(operation.role)
            body = await _read(request, operation.body)
            answer = await operation.handler(Asked(console, request, person, body))
        except Problem as problem:
            return problem_response(problem)
        except NotFoundError as exc:
            return problem_response(Problem(404, exc.kind, str(exc)))
        data = to_json(_sendable(answer), inf_nan_mode="null", bytes_mode="base64")
        return Response(data, media_type="application/json")

    return Route(operation.path, endpoint, methods=[operation.method])


async def _read(request: Request, body: type[BaseModel] | None) -> Any:
    if body is None:
        return None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, "body", "send JSON (content-type: application/json)")
    try:
        return body.model_validate_json(await request.body())
    except ValidationError as exc:
        lines = [
            f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}"
            for each in exc.errors(include_url=False, include_input=False, include_context=False)
        ]
        raise Problem(422, "body", "; ".join(lines)[:2000]) from exc


def _sendable(value: Any) -> Any:
    """`value` without what JSON or UTF-8 cannot carry: lone surrogates, infinities."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_sendable(str(key)): _sendable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_sendable(item) for item in value]
    return value


async def _openapi(request: Request) -> Response:
    return JSONResponse(document(OPERATIONS))


ROUTES: list[Route] = [
    Route("/openapi.json", _openapi, methods=["GET"]),
    *(_route(operation) for operation in OPERATIONS),
]
