"""An MCP client that lasts: lost sessions, servers that go and come, lists without end."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.server import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

import agent_adapter as aa
from agent_adapter.core.errors import IntegrationError
from agent_adapter.exec import ledger
from agent_adapter.integrations.mcp import (
    MCPConnection,
    ToolPins,
    ToolProgress,
    import_tools,
    look_at,
)

from ._mcp_wire import MODES, own_python, served

pytestmark = [pytest.mark.contract, pytest.mark.anyio]

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}}
_SLOW = 60


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins are kept in the working directory unless another file is named."""
    monkeypatch.chdir(tmp_path)


class Bank:
    """Somebody's server with one write; it keeps what it ran."""

    def __init__(self, pages: Callable[[str | None], str | None] = lambda cursor: None) -> None:
        self.ran: list[Any] = []
        self.opened = 0
        self.tools = [Tool(name="pay", description="Pays.", input_schema=SCHEMA)]
        self.on_call: Callable[[], Any] | None = None
        self._pages = pages
        self.server: Server[Any] = Server("bank", on_list_tools=self._list, on_call_tool=self._call)

    def app(self) -> Any:
        """The server over HTTP, anew: no session of before is known."""
        return self.server.streamable_http_app()

    async def _list(self, request: Any, params: Any) -> ListToolsResult:
        cursor = getattr(params, "cursor", None)
        return ListToolsResult(tools=self.tools, next_cursor=self._pages(cursor))

    async def _call(self, request: Any, params: Any) -> CallToolResult:
        self.ran.append(params.arguments)
        if self.on_call is not None:
            await self.on_call()
        return CallToolResult(content=[TextContent(type="text", text="paid")])


def _executor(**options: Any) -> aa.Executor:
    return aa.Executor(store=aa.open_store("memory://"), **options)


async def _pay(run: aa.Executor, spec: Any) -> Any:
    return await asyncio.wait_for(run.run_spec(spec, {"to": "ann"}), _SLOW)


def _port(url: str) -> int:
    return int(url.rsplit(":", 1)[1].split("/")[0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("lasting", [False, True])
async def test_s11_a_write_to_a_server_that_is_down_was_not_sent(mode: str, lasting: bool) -> None:
    """S11: the server is down, then up: nothing was sent, no effect is recorded, the next runs."""
    bank, run = Bank(), _executor()
    async with served(bank.app()) as url:
        connection = MCPConnection(url, name="bank", mode=mode)
        if not lasting:
            connection = MCPConnection(url, name="bank", mode=mode, lasting=False)
        (spec,) = await import_tools(connection)
        async with run.run_scope("r"):
            assert await _pay(run, spec) == "paid"
    async with run.run_scope("r"):
        for _ in range(2):
            with pytest.raises(aa.ToolError, match="nothing was sent") as caught:
                await _pay(run, spec)
            assert type(caught.value) is aa.ToolError
            assert isinstance(caught.value.__cause__, IntegrationError)
    assert await ledger.in_doubt(run.store) == []
    ends = [e.facts["ending"] for e in await ledger.entries(run.store, "r") if "ending" in e.facts]
    assert ends == ["ok", "no-effect", "no-effect"]
    async with served(bank.app(), _port(url)):
        async with run.run_scope("r"):
            assert await _pay(run, spec) == "paid"
        await connection.aclose()
    assert len(bank.ran) == 2


async def test_s11_a_write_that_was_sent_and_not_answered_is_in_doubt(tmp_path: Path) -> None:
    """S11: a server that ends in the middle of a call leaves it in doubt, and says why."""
    run = _executor()
    async with MCPConnection(own_python(tmp_path, _DYING), name="bank") as bank:
        spec, _ = await import_tools(bank)
        with pytest.raises(aa.ToolFailed, match="lost after the call was sent"):
            await _pay(run, spec)
    assert len(await ledger.in_doubt(run.store)) == 1


async def test_s11_a_call_whose_connection_is_refused_was_not_sent() -> None:
    """S11: that the list was read a moment ago does not make a call sent that reached nobody."""
    async with (
        PlainServer() as plain,
        MCPConnection(plain.url, name="bank", mode="legacy") as bank,
    ):
        with pytest.raises(IntegrationError, match="ConnectError"):
            await bank.call("pay", check=lambda found: plain.listener.close())
    assert plain.heard.count("tools/call") == 0


@pytest.mark.parametrize("end", ["timeout", "cancelled"])
async def test_s11_a_write_that_ends_on_its_way_to_the_server_was_not_sent(
    end: str, tmp_path: Path
) -> None:
    """S11: a time-out, or a caller that leaves, while the server does not answer: no doubt."""
    bank, run = Bank(), _executor()
    asked, silent = asyncio.Event(), asyncio.Event()

    async def list_tools(request: Any, params: Any) -> ListToolsResult:
        if silent.is_set():
            asked.set()
            await asyncio.Event().wait()
        return ListToolsResult(tools=bank.tools)

    server: Server[Any] = Server("bank", on_list_tools=list_tools, on_call_tool=bank._call)
    limit = 0.3 if end == "timeout" else None
    (spec,) = await import_tools(server, name="bank", timeout=limit)
    silent.set()
    task = asyncio.create_task(_pay(run, spec))
    await asyncio.wait_for(asked.wait(), _SLOW)
    if end == "cancelled":
        task.cancel()
    with pytest.raises((aa.ToolTimeout, asyncio.CancelledError)):
        await task
    silent.clear()
    assert await ledger.in_doubt(run.store) == []
    async with run.run_scope("r"):
        assert await _pay(run, spec) == "paid"


class PlainServer:
    """One request for each TCP connection, so that the test can say which of them is refused."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def __aenter__(self) -> PlainServer:
        self.listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self.listener.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/mcp"
        return self

    async def __aexit__(self, *error: object) -> None:
        self.listener.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = re.search(r"content-length: (\d+)", head)
        body = json.loads(await reader.readexactly(int(size[1]))) if size else {}
        self.heard.append(body.get("method", ""))
        answers: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "plain", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "pay", "inputSchema": SCHEMA}]},
        }
        status, content = "405 Not Allowed", b""
        if "id" in body:
            said = {"jsonrpc": "2.0", "id": body["id"], "result": answers[body["method"]]}
            status, content = "200 OK", json.dumps(said).encode()
        elif body:
            status = "202 Accepted"
        kind = "content-type: application/json\r\nconnection: close"
        head = f"HTTP/1.1 {status}\r\n{kind}\r\ncontent-length: {len(content)}\r\n\r\n"
        writer.write(head.encode() + content)
        await writer.drain()
        writer.close()


async def test_a_session_that_the_server_forgot_is_begun_again() -> None:
    """A server that was restarted knows no session: the client initialises anew, nothing fails."""
    bank, run = Bank(), _executor()
    async with served(bank.app()) as url:
        connection = MCPConnection(url, name="bank", mode="legacy")
        (spec,) = await import_tools(connection)
        async with run.run_scope("r"):
            assert await _pay(run, spec) == "paid"
    async with served(bank.app(), _port(url)):
        async with run.run_scope("s"):
            assert await _pay(run, spec) == "paid"
        await connection.aclose()
    assert len(bank.ran) == 2


_COUNTING = """
import os, sys
from mcp.server.mcpserver import MCPServer

server = MCPServer("bank")


@server.tool()
def pay(to: str) -> str:
    return str(os.getpid())


@server.tool()
def die() -> str:
    os._exit(1)


server.run("stdio")
"""
_DYING = _COUNTING.replace("return str(os.getpid())", "os._exit(1)")


async def test_one_process_serves_all_calls_until_the_end(tmp_path: Path) -> None:
    """The subprocess is kept for all calls, started again when it died, and ended with the end."""
    run = _executor()
    async with MCPConnection(own_python(tmp_path, _COUNTING), name="bank") as bank:
        pay, die = await import_tools(bank)
        pids = {(await _pay(run, pay))["result"] for _ in range(3)}
        assert len(pids) == 1
        with pytest.raises(aa.ToolFailed):
            await asyncio.wait_for(run.run_spec(die, {}), _SLOW)
        again = (await _pay(run, pay))["result"]
        assert again not in pids
    assert not Path(f"/proc/{again}").exists()
    with pytest.raises(aa.ToolError, match="was closed"):
        await _pay(run, pay)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (
            "http://bob:secret@127.0.0.1:9/mcp?key=secret",
            r"http://127\.0\.0\.1:9/mcp.*ConnectError",
        ),
        (StdioServerParameters(command="no-such-program"), "the command 'no-such-program'"),
        (StdioServerParameters(command=sys.executable, args=["-c", ""]), "the command"),
        (lambda: Client("http://127.0.0.1:9/mcp"), "ConnectError"),
    ],
)
async def test_an_error_of_connecting_names_the_server_and_the_cause(
    server: Any, said: str
) -> None:
    """It is an `IntegrationError` with a cause that is no group, and tells no secret."""
    for use in (
        lambda: import_tools(server, name="files"),
        lambda: look_at(server, name="files"),
        lambda: MCPConnection(server, name="files").open(),
    ):
        with pytest.raises(IntegrationError, match=f"'files' .*{said}") as caught:
            await asyncio.wait_for(use(), _SLOW)
        assert not isinstance(caught.value.__cause__, BaseExceptionGroup)
        assert caught.value.__cause__ is not None
        assert "secret" not in str(caught.value)


async def test_a_server_that_refuses_is_said_with_its_status() -> None:
    """Who lacks a token learns that it is the token."""

    async def refusing(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with served(refusing) as url:
        with pytest.raises(IntegrationError, match="HTTP 401 Unauthorized"):
            await import_tools(url, name="files")


async def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    """Connecting is bounded; the subprocess is ended."""
    silent = own_python(tmp_path, "import time\ntime.sleep(600)\n")
    with pytest.raises(IntegrationError, match="no answer within 1 s"):
        async with MCPConnection(silent, name="silent", timeout=1):
            raise AssertionError("it connected")


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        (lambda cursor: "again", "cursor 'again' came twice"),
        (lambda cursor: {None: "a", "a": "b", "b": "a"}[cursor], "cursor 'a' came twice"),
        (lambda cursor: f"{int(cursor or 0) + 1}", "more than 100 pages"),
    ],
)
async def test_a_list_without_end_is_refused(pages: Any, said: str) -> None:
    """A cursor that comes again, or a hundred pages, end the reading of a list."""
    with pytest.raises(IntegrationError, match=said):
        await import_tools(Bank(pages).server, name="bank")


async def test_every_page_is_read() -> None:
    """A list on several pages is one list; an empty cursor ends it."""
    bank = Bank(lambda cursor: {None: "2", "2": ""}[cursor])
    async with MCPConnection(bank.server, name="bank") as connection:
        assert len(await connection.tools()) == 2
    assert await look_at(bank.server) == []  # it is the same tool twice


@pytest.mark.parametrize("mode", MODES)
async def test_a_change_that_a_server_tells_of_waits_for_a_person(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The tools are listed again when the server says so; what changed is there to be accepted."""
    server = MCPServer("bank")

    @server.tool()
    async def grow(ctx: Context) -> str:
        """Adds a tool."""
        server.add_tool(lambda to: to, name="steal", description="Steals.")
        await (
            ctx.session.send_tool_list_changed() if mode == "legacy" else ctx.notify_tools_changed()
        )
        return "grown"

    pins, run = ToolPins(), _executor()
    heard = asyncio.Event()
    async with MCPConnection(server, name="bank", mode=mode) as bank:
        (spec,) = await import_tools(bank)
        bank.on_list(lambda found: heard.set())
        with caplog.at_level(logging.WARNING):
            await run.run_spec(spec, {})
            await asyncio.wait_for(heard.wait(), _SLOW)
    assert [pin.tool for pin in pins.waiting("bank")] == ["steal"]
    assert "agent-adapter mcp accept bank/steal" in caplog.text


@pytest.mark.parametrize("mode", MODES)
async def test_progress_is_told_to_the_executor_s_subscribers(mode: str) -> None:
    """A server's progress comes out as the tool's events, with hidden characters made visible."""
    server, seen = MCPServer("slow"), []

    @server.tool()
    async def work(ctx: Context) -> str:
        """Works."""
        await ctx.report_progress(1, 2, "half\u202e")
        return "done"

    run = _executor()
    stop = run.subscribe(lambda event: seen.append(getattr(event, "event", None)))
    async with MCPConnection(server, name="slow", mode=mode) as slow:
        (spec,) = await import_tools(slow)
        await run.run_spec(spec, {})
    stop()
    (progress,) = [event for event in seen if isinstance(event, ToolProgress)]
    assert (progress.server, progress.tool, progress.progress) == ("slow", "work", 1)
    assert (progress.total, progress.message) == (2, "half\\u202e")


async def test_what_a_server_answers_with_an_error_keeps_its_reason() -> None:
    """An error of the protocol is a failed call with the server's text, and no promise."""
    bank, run = Bank(), _executor()

    async def refuse() -> None:
        raise types_error("the account is closed")

    bank.on_call = refuse
    (spec,) = await import_tools(bank.server, name="bank")
    with pytest.raises(aa.ToolFailed, match="the account is closed"):
        await _pay(run, spec)
    assert len(await ledger.in_doubt(run.store)) == 1


def types_error(text: str) -> Exception:
    """An error that a server answers with."""
    from mcp import MCPError

    return MCPError(code=types.INVALID_PARAMS, message=text)


async def test_one_lost_call_ends_no_other() -> None:
    """Calls that share a connection are answered, or lost, each for itself."""
    bank, first, others = Bank(), _executor(), (_executor(), _executor())
    release = asyncio.Event()
    bank.on_call = release.wait
    async with MCPConnection(bank.server, name="bank", mode="legacy") as connection:
        (spec,) = await import_tools(connection)
        calls = [asyncio.create_task(_pay(run, spec)) for run in (first, *others)]
        while len(bank.ran) < 3:
            await asyncio.sleep(0)
        calls[0].cancel()
        release.set()
        ends = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), _SLOW)
    assert isinstance(ends[0], asyncio.CancelledError)
    assert ends[1:] == ["paid", "paid"]


def test_specs_outlive_the_loop_they_were_imported_in(tmp_path: Path) -> None:
    """A connection is made again in another loop; the process of the first is gone."""
    server = own_python(tmp_path, _COUNTING)
    connection = MCPConnection(server, name="bank")
    pay, _ = asyncio.run(import_tools(connection))

    async def use() -> Any:
        value = await _pay(_executor(), pay)
        await connection.aclose()
        return value

    assert asyncio.run(use())["result"]


def test_a_connection_that_nobody_closes_ends_with_its_loop(tmp_path: Path) -> None:
    """Leaving `aclose` out leaves no process and no warning behind."""
    connection = MCPConnection(own_python(tmp_path, _COUNTING), name="bank")

    async def use() -> Any:
        (pay, _) = await import_tools(connection)
        return await _pay(_executor(), pay)

    pid = asyncio.run(use())["result"]
    assert not Path(f"/proc/{pid}").exists()


async def test_pins_are_written_by_the_first_import(tmp_path: Path) -> None:
    """Without being asked to, an import keeps what it saw, and takes nothing else later."""
    bank = Bank()
    assert len(await import_tools(bank.server, name="bank")) == 1
    assert (tmp_path / "mcp.lock.json").exists()
    hints = types.ToolAnnotations(read_only_hint=True)
    bank.tools[0] = bank.tools[0].model_copy(update={"annotations": hints})
    assert await import_tools(bank.server, name="bank") == []
    assert len(await import_tools(bank.server, name="bank", pins=False)) == 1
    assert len(await import_tools(bank.server, name="bank", pins="other.json")) == 1
    (waiting,) = ToolPins().waiting("bank")
    assert waiting.offered is not None
    ToolPins().accept("bank", "pay", waiting.offered["hash"])
    assert len(await import_tools(bank.server, name="bank")) == 1


async def test_pins_that_cannot_be_written_stop_the_import(tmp_path: Path) -> None:
    """Where nothing can be pinned nothing is imported, and the error says what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(IntegrationError, match="pins="):
        await import_tools(Bank().server, name="bank", pins=tmp_path / "file" / "pins.json")


async def test_pins_of_the_first_version_are_taken_over(tmp_path: Path) -> None:
    """A file that says nothing of annotations still accepts what it accepted."""
    bank, path = Bank(), tmp_path / "mcp.lock.json"
    await import_tools(bank.server, name="bank")
    held = json.loads(path.read_text())
    del held["servers"]["bank"]["pay"]["accepted"]["annotations"]
    path.write_text(json.dumps(held))
    hints = types.ToolAnnotations(read_only_hint=True)
    bank.tools[0] = bank.tools[0].model_copy(update={"annotations": hints})
    assert len(await import_tools(bank.server, name="bank")) == 1
    bank.tools[0] = bank.tools[0].model_copy(update={"annotations": None})
    assert await import_tools(bank.server, name="bank") == []


async def test_two_programs_that_pin_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each server's pins are in the file, whoever wrote first."""
    program = (
        "import asyncio, sys\n"
        "from mcp.server.mcpserver import MCPServer\n"
        "from agent_adapter.integrations.mcp import import_tools\n"
        "server = MCPServer('s')\n"
        "server.add_tool(lambda: 1, name='one', description='One.')\n"
        "for i in range(10):\n"
        "    asyncio.run(import_tools(server, name=f'{sys.argv[1]}{i}'))\n"
    )
    words = [sys.executable, "-W", "error", "-c", program]
    made = [await asyncio.create_subprocess_exec(*words, name) for name in ("a", "b")]
    assert [await asyncio.wait_for(each.wait(), _SLOW) for each in made] == [0, 0]
    assert len(ToolPins().pins()) == 20
