"""`agent-adapter serve`: the web console over a store."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from agent_adapter.cli.exit_codes import OK, USAGE, CommandError
from agent_adapter.cli.options import StoreUrl, with_store
from agent_adapter.cli.output import plain
from agent_adapter.cli.target import load_registry

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from agent_adapter.console import TrustedProxy
    from agent_adapter.store.base import Store

__all__ = ["command", "run_console"]

PORT = 8377
_EVERY = ("0.0.0.0", "::")  # noqa: S104  # recognised, to be refused


def command(
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = PORT,
    registry: Annotated[
        str | None,
        typer.Option(
            "--registry",
            metavar="MODULE:ATTR",
            help="The tools, for their schemas and policies: module:attribute, or a Python file.",
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="HOST", help="A host name that it answers to; repeatable."),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy",
            metavar="ADDRESS",
            help="Believe this address when it names who asks; repeatable.",
        ),
    ] = None,
    proxy_header: Annotated[
        str, typer.Option("--proxy-header", metavar="NAME", help="Where the proxy names them.")
    ] = "X-Forwarded-User",
    proxy_role: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy-role",
            metavar="[NAME=]ROLE",
            help="The role of a person whom the proxy names, or of all others; repeatable.",
        ),
    ] = None,
    reviewer_keys: Annotated[
        Path | None,
        typer.Option(
            "--reviewer-keys",
            metavar="FOLDER",
            help="Sign decisions with NAME.key of this folder (`agent-adapter keys create`).",
        ),
    ] = None,
    https: Annotated[
        bool, typer.Option("--https", help="Browsers come over HTTPS, which a proxy speaks.")
    ] = False,
    store: StoreUrl = None,
) -> int:
    """Serve the web console: approve, watch and repair in a browser.

    People sign in with a token (`agent-adapter tokens create`), or a trusted proxy names them.
    """
    from agent_adapter.core.extras import check_installed

    check_installed("console", ["starlette", "uvicorn", "jinja2", "sse_starlette"])
    hosts = _hosts(host, names or [])
    proxy = _proxy(trusted_proxy or [], proxy_header, proxy_role or [])
    tools = None
    if registry is not None:
        # Stdout says where the console is: what the module prints must not come before.
        with contextlib.redirect_stdout(sys.stderr):
            tools = load_registry(registry)

    async def _work(opened: Store) -> None:
        from agent_adapter.console import create_app

        await _see_to_sign_in(opened, host, proxy)
        app = create_app(
            opened,
            registry=tools,
            hosts=hosts,
            trusted_proxy=proxy,
            reviewer_keys=reviewer_keys,
            https=True if https else None,
        )
        await run_console(app, host, port, _say_where)

    with contextlib.suppress(KeyboardInterrupt):
        with_store(store, _work)
    return OK


async def run_console(
    app: Starlette, host: str, port: int, on_start: Callable[[str], None]
) -> None:
    """Serve until a signal ends it; `on_start` is given the URL, with the port that was taken."""
    import uvicorn

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        ws="none",
        server_header=False,
        # The console itself decides whose word on the peer it takes.
        proxy_headers=False,
        # Pages that follow along are open for long; nobody waits for them to end.
        timeout_graceful_shutdown=2,
    )
    bound = _bound(host, port)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{bound.getsockname()[1]}/"

    class _ConsoleServer(uvicorn.Server):
        """Says where it is once it listens."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                on_start(url)

    # uvicorn passes the signal on when it has stopped: by default that would kill this process
    # before the store is closed.
    signal.signal(signal.SIGTERM, _leave)
    server = _ConsoleServer(config)
    # Pages that follow along are cut off when it stops; that is no error.
    logging.getLogger("uvicorn.error").addFilter(
        lambda record: not (server.should_exit and "completing response" in record.getMessage())
    )
    with contextlib.closing(bound):
        await server.serve(sockets=[bound])


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
    except OSError as exc:
        made.close()
        reason = exc.strerror or str(exc)
        raise CommandError(
            f"cannot listen on {host}:{port} ({reason}): choose another with --host or --port"
        ) from None
    return made


def _hosts(host: str, names: Sequence[str]) -> frozenset[str]:
    """The names that the console answers to: those given, else what `host` stands for."""
    from agent_adapter.console.settings import LOOPBACK

    if any(not name.strip() or "/" in name for name in names):
        raise CommandError("--name is a host name, such as console.example.org", code=USAGE)
    own = () if host in _EVERY else (f"[{host}]" if ":" in host else host,)
    if host in _EVERY and not names:
        raise CommandError(
            f"--host {host} listens on every address: say with --name which host name browsers"
            " use, so that no other site can pass for the console",
            code=USAGE,
        )
    return frozenset((*LOOPBACK, *own, *names))


def _proxy(peers: Sequence[str], header: str, roles: Sequence[str]) -> TrustedProxy | None:
    from agent_adapter.console import TrustedProxy

    if not peers:
        if roles:
            raise CommandError(
                "--proxy-role is for people whom a --trusted-proxy names", code=USAGE
            )
        return None
    if not roles:
        raise CommandError(
            "--trusted-proxy lets nobody in without --proxy-role: write --proxy-role viewer, or"
            " --proxy-role kim=approver",
            code=USAGE,
        )
    for peer in peers:
        try:
            ipaddress.ip_address(peer)
        except ValueError:
            raise CommandError(f"--trusted-proxy {peer} is no IP address", code=USAGE) from None
    named = dict(each.split("=", 1) for each in roles if "=" in each)
    others = [each for each in roles if "=" not in each]
    return TrustedProxy(
        peers=frozenset(peers), header=header, roles=named, role=others[-1] if others else None
    )


async def _see_to_sign_in(store: Store, host: str, proxy: Any) -> None:
    """Beyond this machine there must be somebody who can sign in; here a hint is enough."""
    from agent_adapter.store.access import tokens

    standing = [row for row in await store.read(tokens) if row["revoked_at"] is None]
    if standing or proxy is not None:
        return
    make = "agent-adapter tokens create NAME --role approver --store " + shlex.quote(store.url)
    if not _is_loopback(host):
        raise CommandError(
            f"{host} can be reached from other machines and nobody can sign in: make a token"
            f" ({make}), or name a --trusted-proxy"
        )
    print(plain(f"agent-adapter: nobody can sign in yet; make a token: {make}"), file=sys.stderr)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _say_where(url: str) -> None:
    print(f"console on {url}", flush=True)


def _leave(number: int, frame: object) -> NoReturn:
    raise SystemExit(OK)
