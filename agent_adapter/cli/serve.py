"""`agent-adapter serve`: the web console over a store."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import logging
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from agent_adapter.cli.exit_codes import OK, USAGE, CommandError
from agent_adapter.cli.notify import ConsoleUrl, RulesFile
from agent_adapter.cli.options import AsJson, StoreUrl, with_store
from agent_adapter.cli.output import plain, print_text
from agent_adapter.cli.streams import reserve_stdout
from agent_adapter.cli.target import Factory, load_registry
from agent_adapter.core.hosts import is_loopback

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from agent_adapter.console import TrustedProxy
    from agent_adapter.notify.rules import NotifyRule
    from agent_adapter.store.base import Store

PORT = 8377
_EVERY = ("0.0.0.0", "::")  # noqa: S104  # recognised, to be refused


app = typer.Typer()


@app.command("serve", epilog="Example: agent-adapter serve --registry shop:registry")
def command(
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; 0 selects a free one.")
    ] = PORT,
    registry: Annotated[
        str | None,
        typer.Option(
            "--registry",
            metavar="MODULE:ATTR",
            help="The registry, for schemas and policies: module:attribute, or a Python file.",
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="HOST", help="A host name that browsers use; repeatable."),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy",
            metavar="ADDRESS",
            help="The address of a proxy that authenticates people or forwards their address;"
            " repeatable.",
        ),
    ] = None,
    proxy_header: Annotated[
        str,
        typer.Option("--proxy-header", metavar="NAME", help="The proxy's header with the name."),
    ] = "X-Forwarded-User",
    proxy_role: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy-role",
            metavar="[NAME=]ROLE",
            help="The role of one person from the proxy, or of all others; repeatable. `none`: the"
            " proxy authenticates nobody.",
        ),
    ] = None,
    reviewer_keys: Annotated[
        Path | None,
        typer.Option(
            "--reviewer-keys",
            metavar="FOLDER",
            help="A folder with each reviewer's NAME.key (see `agent-adapter keys create`).",
        ),
    ] = None,
    https: Annotated[
        bool, typer.Option("--https", help="Browsers use HTTPS; a proxy terminates it.")
    ] = False,
    undo_window: Annotated[
        float,
        typer.Option(
            "--undo-window",
            metavar="SECONDS",
            min=0,
            max=60,
            help="How long a decision made in a page can be undone; 0 releases it at once.",
        ),
    ] = 5.0,
    tenant: Annotated[
        str | None,
        typer.Option(
            "--tenant", metavar="NAME", help="Show only this tenant; default: those of each token."
        ),
    ] = None,
    factory: Factory = False,
    rules: RulesFile = None,
    console_url: ConsoleUrl = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Serve the web console.

    People sign in with a token (`agent-adapter tokens create`) or through a trusted proxy.
    """
    from agent_adapter.core.extras import check_installed

    check_installed("console", ["starlette", "uvicorn", "jinja2", "sse_starlette"])
    hosts = _hosts(host, names or [])
    proxy = _proxy(trusted_proxy or [], proxy_header, proxy_role or [])
    tools = None
    if registry is not None:
        # The first line of stdout is the URL: output of the imported module goes to stderr.
        reserve_stdout()
        tools = load_registry(registry, factory=factory)

    more = [] if rules is None else _read(rules)

    async def _work(opened: Store) -> None:
        from agent_adapter.console import create_app

        await _check_sign_in(opened, host, proxy)
        app = create_app(
            opened,
            registry=tools,
            tenant=tenant,
            hosts=hosts,
            trusted_proxy=proxy,
            reviewer_keys=reviewer_keys,
            https=True if https else None,
            undo_window=undo_window,
        )
        public = console_url or _public_url(names or [], https)
        notifier = partial(_notify, opened, more, public)
        await run_console(app, host, port, partial(_say_where, as_json), notifier)

    with contextlib.suppress(KeyboardInterrupt):
        with_store(store, _work, new=True)


async def run_console(
    app: Starlette,
    host: str,
    port: int,
    on_start: Callable[[str], None],
    beside: Callable[[str], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Serve until a signal; `on_start` gets the URL with the port that is in use.

    `beside` gets it too, and runs as long as the server.
    """
    import uvicorn

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        ws="none",
        server_header=False,
        # Else uvicorn replaces the peer's address, by which the console knows its trusted proxy.
        proxy_headers=False,
        # Event streams stay open for minutes; do not wait for them.
        timeout_graceful_shutdown=2,
    )
    bound = _bound(host, port)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{bound.getsockname()[1]}/"

    class _ConsoleServer(uvicorn.Server):
        """Calls `on_start` when it listens."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                on_start(url)

    # uvicorn raises the signal again after it stopped; the default handler would kill this process
    # before the store is closed.
    signal.signal(signal.SIGTERM, _leave)
    server = _ConsoleServer(config)
    # uvicorn logs an error for each event stream that it cancels at shutdown.
    logging.getLogger("uvicorn.error").addFilter(
        lambda record: not (server.should_exit and "completing response" in record.getMessage())
    )
    other = None if beside is None else asyncio.create_task(beside(url))
    with contextlib.closing(bound):
        try:
            await server.serve(sockets=[bound])
        finally:
            if other is not None:
                other.cancel()
                await asyncio.wait([other])


async def _notify(store: Store, rules: Sequence[NotifyRule], console: str | None, url: str) -> None:
    """Send notifications beside the console, with links to `console`, else to the URL in use."""
    from agent_adapter.notify.notifier import Notifier

    await Notifier(store, rules, console=console or url).run()


def _public_url(names: Sequence[str], https: bool) -> str | None:
    """The address that links have; `None` for the one that it listens on."""
    if not names:
        return None
    # Behind the default port of a proxy; anything else is said with --console-url.
    return f"{'https' if https else 'http'}://{names[0]}"


def _read(file: Path) -> list[NotifyRule]:
    from agent_adapter.notify.rules import read_rules

    return read_rules(file)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets that name their protocol; without it an answer in two
    # parts waits for the client's delayed acknowledgement, 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.bind((host, port))
    except OSError as exc:
        made.close()
        reason = exc.strerror or str(exc)
        raise CommandError(
            f"cannot listen on {host}:{port} ({reason}): choose another with --host or --port"
        ) from None
    return made


def _hosts(host: str, names: Sequence[str]) -> frozenset[str]:
    """The host names that the console answers to: this machine's, `host`, and `names`."""
    from agent_adapter.console.settings import LOOPBACK

    if any(not name.strip() or "/" in name for name in names):
        raise CommandError("--name needs a host name, such as console.example.org", code=USAGE)
    own = () if host in _EVERY else (f"[{host}]" if ":" in host else host,)
    if host in _EVERY and not names:
        raise CommandError(
            f"--host {host} listens on every address: give the host name that browsers use with"
            " --name, so that no other site can pose as the console",
            code=USAGE,
        )
    return frozenset((*LOOPBACK, *own, *names))


def _proxy(peers: Sequence[str], header: str, roles: Sequence[str]) -> TrustedProxy | None:
    from agent_adapter.console import TrustedProxy

    if not peers:
        if roles:
            raise CommandError("--proxy-role needs a --trusted-proxy", code=USAGE)
        return None
    if not roles:
        raise CommandError(
            "--trusted-proxy needs a --proxy-role: give --proxy-role viewer, --proxy-role"
            " kim=approver, or --proxy-role none for a proxy that authenticates nobody",
            code=USAGE,
        )
    for peer in peers:
        try:
            ipaddress.ip_address(peer)
        except ValueError:
            raise CommandError(f"--trusted-proxy {peer} is not an IP address", code=USAGE) from None
    pairs = [each.partition("=") if "=" in each else ("", "=", each) for each in roles]
    named = {name: role for name, _, role in pairs}
    if len(named) != len(pairs):
        raise CommandError("--proxy-role gives somebody two roles: give one", code=USAGE)
    role = named.pop("", "none")
    others = None if role == "none" else role
    return TrustedProxy(peers=frozenset(peers), header=header, roles=named, role=others)


async def _check_sign_in(store: Store, host: str, proxy: Any) -> None:
    """Refuse to listen for other machines if nobody can sign in; on this machine print a hint."""
    from agent_adapter.store.access import tokens

    standing = [row for row in await store.read(tokens) if row["revoked_at"] is None]
    if standing or proxy is not None:
        return
    make = "agent-adapter tokens create NAME --role approver --store " + shlex.quote(store.url)
    if not is_loopback(host):
        raise CommandError(
            f"{host} is reachable from other machines and nobody can sign in: create a token"
            f" ({make}), or give a --trusted-proxy"
        )
    print(plain(f"agent-adapter: nobody can sign in yet; create a token: {make}"), file=sys.stderr)


def _say_where(as_json: bool, url: str) -> None:
    print_text(json.dumps({"url": url}) if as_json else f"console on {url}")


def _leave(number: int, frame: object) -> NoReturn:
    raise SystemExit(OK)
