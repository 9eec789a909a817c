"""`agent-adapter mcp`: serve a registry over MCP, pin the tools of a server, accept changes."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
import os
import shlex
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from agent_adapter.cli.exit_codes import OK, PENDING, USAGE, CommandError
from agent_adapter.cli.options import AsJson, StoreUrl, with_store
from agent_adapter.cli.output import plain, print_json, print_line, print_list, print_text
from agent_adapter.cli.streams import reserve_stdout
from agent_adapter.cli.target import Factory, Target, load_registry

if TYPE_CHECKING:
    from agent_adapter.integrations.mcp import StaticTokens, ToolPins
    from agent_adapter.integrations.mcp.pins import Pin
    from agent_adapter.store.base import Store

app = typer.Typer(
    name="mcp", help="Serve a registry over MCP, pin the tools of a server, accept changes."
)

PinFile = Annotated[
    Path,
    typer.Option("--pins", metavar="FILE", help="The file with the accepted definitions."),
]
_PINS = Path("mcp.lock.json")
_SHORTEST_HASH = 16


@app.command(epilog="Example: agent-adapter mcp serve shop:registry --http 127.0.0.1:8000")
def serve(
    target: Target,
    http: Annotated[
        str | None,
        typer.Option(
            "--http",
            metavar="HOST:PORT",
            help="Serve streamable HTTP at /mcp instead of stdio; other machines need --tokens.",
        ),
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            metavar="FILE",
            help="The HTTP clients: one line each with a name and a bearer token.",
        ),
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", help="The seconds that a call waits for a decision.")
    ] = 0,
    factory: Factory = False,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Serve the tools of a registry; a call that needs approval waits in the inbox."""
    from agent_adapter.integrations.mcp import INTEGRATION

    INTEGRATION.require()
    if http is None:
        _refuse_on_stdio(tokens, as_json)
    address = _address(http) if http is not None else None
    verifier = _tokens(tokens) if tokens is not None else None
    if address is not None:
        reserve_stdout()
    # On stdio, stdout carries the protocol: output of the imported module would break it.
    with contextlib.redirect_stdout(sys.stderr):
        registry = load_registry(target, factory=factory)

    async def _work(opened: Store) -> None:
        from agent_adapter.exec.approval.ports.deferred import DeferredApproval
        from agent_adapter.exec.executor import Executor
        from agent_adapter.integrations.mcp import mcp_server, serve_http, serve_stdio
        from agent_adapter.integrations.mcp.serving import terms_of

        approval = DeferredApproval(opened, wait=wait)
        server = mcp_server(registry, executor=Executor(registry, approval=approval, store=opened))
        if address is None:
            await serve_stdio(server)
            return
        host, port = address
        # uvicorn passes the signal on when it has stopped: by default that would kill this process
        # before the store is closed.
        signal.signal(signal.SIGTERM, _leave)
        terms = terms_of(host, verifier)
        say = partial(_say_where, terms, as_json)
        await serve_http(server, host=host, port=port, verifier=verifier, on_start=say)

    with contextlib.suppress(KeyboardInterrupt):
        with_store(store, _work, new=True)


@app.command(
    "import", epilog='Example: agent-adapter mcp import files "uvx mcp-server-files /data"'
)
def import_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Your name for the server.")],
    server: Annotated[
        str, typer.Argument(metavar="SERVER", help="Its URL, or the command that starts it.")
    ],
    pins: PinFile = _PINS,
    as_json: AsJson = False,
) -> int:
    """Pin the tools of a server; changed tools wait for `mcp accept`."""
    from agent_adapter.integrations.mcp import INTEGRATION, ToolPins, look_at

    INTEGRATION.require()
    definitions = asyncio.run(look_at(_server(server), name=name))
    review = ToolPins(pins).review(name, definitions)
    states = dict.fromkeys(review.accepted, "accepted")
    states |= dict.fromkeys(review.pinned, "pinned now")
    states |= dict.fromkeys(review.waiting, "waits for a person")
    print_list(
        [
            {"server": name, "tool": each.name, "state": states[each.name]} | each.as_json()
            for each in definitions
        ],
        ("tool", "state", "hash", "description"),
        ((each.name, states[each.name], each.hash[:16], each.description) for each in definitions),
        empty="the server has no tools",
        as_json=as_json,
    )
    if review.waiting and not as_json:
        print_text(f"review and accept the changes: agent-adapter mcp accept {plain(name)}")
    return PENDING if review.waiting else OK


@app.command(epilog="Example: agent-adapter mcp diff files")
def diff(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="SERVER/TOOL, or SERVER for its waiting tools; none for all."
        ),
    ] = None,
    pins: PinFile = _PINS,
    as_json: AsJson = False,
) -> int:
    """Show the changes of tools that wait to be accepted; accept none of them."""
    from agent_adapter.integrations.mcp import ToolPins

    waiting = _waiting(ToolPins(pins), name)
    if as_json:
        print_json(
            [
                {"server": pin.server, "tool": pin.tool}
                | {"accepted": pin.accepted, "offered": pin.offered}
                for pin in waiting
            ]
        )
    else:
        for pin in waiting:
            print_text(_change(pin.server, pin.tool, pin.accepted, pin.offered))
    return PENDING if waiting else OK


@app.command(epilog="Example: agent-adapter mcp accept files/read_file")
def accept(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="SERVER/TOOL, or SERVER for all of its waiting tools."),
    ],
    stated: Annotated[
        str | None,
        typer.Option(
            "--hash",
            metavar="HASH",
            help="Accept the definition with this hash without a question; the first 16 characters"
            " are enough.",
        ),
    ] = None,
    pins: PinFile = _PINS,
    as_json: AsJson = False,
) -> int:
    """Show the changes of a server's tools, ask, and accept exactly these."""
    from agent_adapter.integrations.mcp import ToolPins

    if as_json and stated is None:
        raise CommandError(
            "--json cannot ask: give the accepted definition with --hash", code=USAGE
        )
    held = ToolPins(pins)
    waiting = _waiting(held, name)
    if not waiting:
        raise CommandError(
            f"no changes of {name} wait in {pins}: look for some with `agent-adapter mcp import`"
        )
    for pin in waiting:
        offered: Any = pin.offered
        if not as_json:
            print_text(_change(pin.server, pin.tool, pin.accepted, offered))
        if not _agreed(pin.server, pin.tool, offered["hash"], stated):
            continue
        held.accept(pin.server, pin.tool, offered["hash"])
        accepted = {"server": pin.server, "tool": pin.tool, "hash": offered["hash"]}
        print_line(accepted, f"accepted {pin.server}/{pin.tool}", as_json)
    return PENDING if held.waiting(name.partition("/")[0]) else OK


def _refuse_on_stdio(tokens: Path | None, as_json: bool) -> None:
    if tokens is not None:
        raise CommandError(
            "--tokens needs --http: on stdio the only client is the parent process", code=USAGE
        )
    if as_json:
        raise CommandError("--json needs --http: on stdio, stdout has the protocol", code=USAGE)


def _waiting(pins: ToolPins, name: str | None) -> list[Pin]:
    """What waits of one tool, of one server, or of all."""
    server, _, tool = (name or "").partition("/")
    return [pin for pin in pins.waiting(server or None) if not tool or pin.tool == tool]


def _agreed(server: str, tool: str, offered: str, stated: str | None) -> bool:
    if stated is None:
        return typer.confirm(f"Accept {plain(server)}/{plain(tool)}?")
    if len(stated) < _SHORTEST_HASH or not offered.startswith(stated):
        raise CommandError(
            f"{server}/{tool} is offered with the hash {offered[:_SHORTEST_HASH]}, not {stated}:"
            " review the new definition"
        )
    return True


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise CommandError(f"--http {text} is not HOST:PORT: write 127.0.0.1:8000", code=USAGE)
    return host.removeprefix("[").removesuffix("]"), int(port)


def _tokens(path: Path) -> StaticTokens:
    from agent_adapter.integrations.mcp import StaticTokens

    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise CommandError(f"--tokens {path} cannot be read ({exc}): give a text file") from None
    words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    if not all(len(pair) == 2 for pair in words):
        raise CommandError(f"--tokens {path}: each line is a client's name, a space, and its token")
    return StaticTokens({pair[0]: pair[1] for pair in words})


def _leave(number: int, frame: object) -> NoReturn:
    raise SystemExit(OK)


def _say_where(terms: str, as_json: bool, url: str) -> None:
    if as_json:
        print_text(json.dumps({"url": url}))
    print(f"agent-adapter: MCP on {url} ({terms})", file=sys.stderr, flush=True)


def _server(text: str) -> Any:
    if text.startswith(("http://", "https://")):
        return text
    from mcp import StdioServerParameters

    words = shlex.split(text, posix=os.name != "nt")
    if not words:
        raise CommandError("SERVER is empty: give a URL, or the command that starts it", code=USAGE)
    return StdioServerParameters(command=words[0], args=words[1:])


def _change(server: str, tool: str, before: Any, after: Any) -> str:
    """The differences that a person accepts, with invisible characters as escapes."""
    old = _lines(before) if before is not None else []
    diff = difflib.unified_diff(old, _lines(after), "accepted", "offered", n=10_000, lineterm="")
    title = f"{server}/{tool}" + ("" if before is not None else " (new)")
    return "\n".join(plain(line) for line in (title, *diff))


def _lines(said: Any) -> list[str]:
    shown = {key: said.get(key) for key in ("title", "description", "schema", "annotations")}
    return json.dumps(shown, indent=2, sort_keys=True, ensure_ascii=True).splitlines()
