"""What a server asks the user: bound to the call, recorded, and never an approval."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp import Client
from mcp.server import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    InputRequiredResult,
    ListToolsResult,
    Tool,
)
from pydantic import BaseModel

import agent_adapter as aa
from agent_adapter.exec import ledger
from agent_adapter.integrations.mcp import ElicitationQuestion, MCPConnection, import_tools

from ._mcp_wire import own_python, served
from ._shop import YES, asking

pytestmark = [pytest.mark.contract, pytest.mark.anyio]

_SERVER = """
import asyncio
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("tailor")


class Size(BaseModel):
    size: int


@server.tool()
async def fit(who: str, ctx: Context) -> str:
    answer = await ctx.elicit(f"Which size for {who}?", Size)
    return str(answer.data.size) if answer.action == "accept" else answer.action


server.run("stdio")
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins are kept in the working directory unless another file is named."""
    monkeypatch.chdir(tmp_path)


class Size(BaseModel):
    """What the server wants to know."""

    size: int


def _tailor() -> MCPServer:
    server = MCPServer("tailor")

    @server.tool()
    async def fit(who: str, ctx: Context) -> str:
        """Asks the user for a size."""
        answer = await ctx.elicit(f"Which size for {who}?", Size)
        return str(answer.data.size) if answer.action == "accept" else answer.action

    return server


class Person:
    """Answers 40 and the length of the name, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[ElicitationQuestion] = []

    def __call__(self, question: ElicitationQuestion) -> dict[str, Any] | None:
        """The answer."""
        self.asked.append(question)
        return {"size": 40 + len(question.arguments["who"])}


def _executor(**options: Any) -> aa.Executor:
    return aa.Executor(store=aa.open_store("memory://"), **options)


def _legacy(server: Any, **options: Any) -> MCPConnection:
    return MCPConnection(server, name="tailor", mode="legacy", **options)


async def test_a_question_is_shown_with_its_call_and_recorded() -> None:
    """The person sees the tool and its arguments; the ledger has what was asked and how it went."""
    person, run = Person(), _executor()
    async with _legacy(_tailor(), ask=person) as tailor, run.run_scope("r"):
        (spec,) = await import_tools(tailor)
        assert await run.run_spec(spec, {"who": "ann"}) == {"result": "43"}
    (question,) = person.asked
    assert (question.message, question.tool) == ("Which size for ann?", "tailor_fit")
    assert (question.arguments, question.run_id) == ({"who": "ann"}, "r")
    assert question.call_id
    (entry,) = [e for e in await ledger.entries(run.store, "r") if e.kind == "elicitation"]
    assert (entry.facts["action"], entry.facts["fields"]) == ("accept", ["size"])
    assert (entry.facts["server"], entry.facts["message"]) == ("tailor", "Which size for ann?")
    assert entry.call_key
    assert (await ledger.verify(run.store)).ok


@pytest.mark.parametrize("kind", ["http", "stdio", "memory"])
async def test_calls_under_way_together_are_asked_about_apart(kind: str, tmp_path: Path) -> None:
    """Each question comes with the arguments of its own call, over each transport."""
    person, run = Person(), _executor()
    names = ("a", "bb", "ccc", "dddd")

    async def call_all(server: Any) -> list[Any]:
        async with _legacy(server, ask=person) as tailor:
            (spec,) = await import_tools(tailor)
            calls = [run.run_spec(spec, {"who": name}) for name in names]
            return await asyncio.wait_for(asyncio.gather(*calls), 60)

    if kind == "http":
        async with served(_tailor().streamable_http_app()) as url:
            values = await call_all(url)
    elif kind == "stdio":
        values = await call_all(own_python(tmp_path, _SERVER))
    else:
        values = await call_all(_tailor())
    assert values == [{"result": str(40 + len(name))} for name in names]
    assert {q.message for q in person.asked} == {f"Which size for {name}?" for name in names}
    assert all(q.message == f"Which size for {q.arguments['who']}?" for q in person.asked)


@pytest.mark.parametrize("allowed", [False, True])
async def test_an_approved_write_is_not_asked_about_again_by_its_server(allowed: bool) -> None:
    """What a person approved is not added to afterwards, unless that was allowed."""
    person, run = Person(), _executor(approval=asking(YES))
    connection = _legacy(_tailor(), ask=person, ask_during_approved=allowed)
    async with connection as tailor, run.run_scope("r"):
        (spec,) = await import_tools(tailor, confirm=True)
        value = await run.run_spec(spec, {"who": "ann"})
    assert value == {"result": "43" if allowed else "cancel"}
    assert len(person.asked) == (1 if allowed else 0)
    (entry,) = [e for e in await ledger.entries(run.store, "r") if e.kind == "elicitation"]
    assert entry.facts["action"] == ("accept" if allowed else "cancel")


async def test_the_user_s_answer_to_a_server_approves_nothing() -> None:
    """A server whose tool must be approved cannot get the approval by its own question."""
    person = Person()
    async with _legacy(_tailor(), ask=person) as tailor:
        (spec,) = await import_tools(tailor, confirm=True)
        with pytest.raises(aa.ApprovalDenied):
            await _executor().run_spec(spec, {"who": "ann"})
    assert person.asked == []


async def test_a_declined_question_is_declined() -> None:
    """`None` declines."""
    async with _legacy(_tailor(), ask=lambda question: None) as tailor:
        (spec,) = await import_tools(tailor)
        assert await _executor().run_spec(spec, {"who": "ann"}) == {"result": "decline"}


async def test_a_question_outside_of_every_call_is_refused() -> None:
    """A server cannot ask the user something that belongs to no call."""
    person, answers = Person(), []

    async def list_tools(request: Any, params: Any) -> ListToolsResult:
        answer = await request.session.elicit_form(
            "Your password?", {"type": "object", "properties": {}}
        )
        answers.append(answer.action)
        return ListToolsResult(tools=[])

    server = Server("s", on_list_tools=list_tools)
    async with _legacy(server, ask=person) as connection:
        await connection.tools()
    assert (answers, person.asked) == (["cancel"], [])


async def test_a_question_between_two_requests_goes_to_the_user_too() -> None:
    """The newer protocol asks by an interim result; `ask` answers it, with its call."""
    person = Person()

    async def list_tools(request: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="fit", input_schema={"type": "object"})])

    async def call_tool(request: Any, params: Any) -> Any:
        if params.input_responses is None:
            form = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}
            return InputRequiredResult(
                input_requests={"size": ElicitRequest.model_validate({"params": form})},
                request_state="s",
            )
        answer = params.input_responses["size"]
        return CallToolResult(content=[], structured_content=answer.content)

    server = Server("tailor", on_list_tools=list_tools, on_call_tool=call_tool)
    (spec,) = await import_tools(server, name="tailor", ask=person)
    assert await _executor().run_spec(spec, {"who": "ann"}) == {"size": 43}
    assert (person.asked[0].server, person.asked[0].message) == ("tailor", "Which?")
    assert person.asked[0].arguments == {"who": "ann"}


async def test_questions_of_your_own_client_are_your_client_s() -> None:
    """`ask` with a client that is already made is refused, with the fix."""
    async with Client(_tailor()) as client:
        with pytest.raises(TypeError, match="elicitation_callback"):
            await import_tools(client, name="files", ask=lambda question: None)
