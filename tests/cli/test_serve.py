"""`agent-adapter serve`: where it listens, whom it lets in, and what it refuses."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_adapter.cli.serve import _bound

from .conftest import Run

for needed in ("starlette", "uvicorn", "jinja2", "sse_starlette"):
    pytest.importorskip(needed)


@contextmanager
def _serving(*args: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The process of a console, and the port that it says it took."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_adapter.cli", "serve", "--port", "0", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path.cwd(),
    )
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        assert said.startswith("console on http://127.0.0.1:"), said
        yield process, int(said.strip().rstrip("/").rpartition(":")[2])
    finally:
        process.kill()
        process.communicate()


def _status(port: int, path: str, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(
        "GET", path, headers={name.replace("_", "-"): v for name, v in headers.items()}
    )
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_a_token_opens_the_api(run: Run, held: str) -> None:
    """What is made with `tokens create` lets in, until it is revoked."""
    token = run("tokens", "create", "kim", "--json").json["token"]
    with _serving("--registry", "shop.py") as (_, port):
        bearer = {"Authorization": f"Bearer {token}"}
        assert _status(port, "/api/v1/approvals") == 401
        assert _status(port, f"/api/v1/approvals/{held}", **bearer) == 200
        run("tokens", "revoke", "kim")
        assert _status(port, f"/api/v1/approvals/{held}", **bearer) == 401


def test_without_a_token_it_says_how_to_make_one(run: Run) -> None:
    """On this machine a console without tokens starts, with a hint; pages ask to sign in."""
    with _serving() as (process, port):
        assert _status(port, "/approvals") == 303
        assert _status(port, "/sign-in") == 200
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=120)
    assert "agent-adapter tokens create NAME --role approver" in said
    assert process.returncode == 0


def test_another_host_name_is_refused(run: Run) -> None:
    """A page of another site that resolves its name to this machine gets nothing."""
    with _serving("--name", "console.example") as (_, port):
        assert _status(port, "/sign-in", Host="evil.example") == 421
        assert _status(port, "/sign-in", Host="console.example") == 200


def test_a_trusted_proxy_names_the_person(run: Run) -> None:
    """Its header counts from its address, and only for those whom it may let in."""
    options = ("--trusted-proxy", "127.0.0.1", "--proxy-role", "kim=approver")
    with _serving(*options) as (_, port):
        assert _status(port, "/approvals", X_Forwarded_User="kim") == 200
        assert _status(port, "/approvals", X_Forwarded_User="eve") == 303
    with _serving("--trusted-proxy", "192.0.2.1", "--proxy-role", "viewer") as (_, port):
        assert _status(port, "/approvals", X_Forwarded_User="kim") == 303


def test_a_port_that_is_taken(run: Run) -> None:
    """The error names the address and what to change."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = run("serve", "--port", str(taken.getsockname()[1]))
    assert (ran.code, "choose another with --host or --port" in ran.err) == (1, True)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("--host", "0.0.0.0"), 2, "with --name"),
        (("--host", "0.0.0.0", "--name", "console.example"), 1, "nobody can sign in"),
        (("--host", "192.0.2.7"), 1, "nobody can sign in"),
        (("--trusted-proxy", "127.0.0.1"), 2, "--proxy-role"),
        (("--trusted-proxy", "proxy", "--proxy-role", "viewer"), 2, "not an IP address"),
        (("--trusted-proxy", "127.0.0.1", "--proxy-role", "king"), 1, "no role 'king'"),
        (("--proxy-role", "viewer"), 2, "--trusted-proxy"),
        (("--name", "http://x/"), 2, "host name"),
        (("--registry", "none.py"), 1, "none.py"),
        (("--reviewer-keys", "none"), 1, "not a folder"),
    ],
)
def test_bad_input_says_what_and_why(run: Run, args: tuple[str, ...], code: int, said: str) -> None:
    """Each refusal is one line that names the thing, and nothing listens."""
    ran = run("serve", "--port", "0", *args)
    assert ran.code == code, ran
    assert said in ran.err
    assert len([line for line in ran.err.splitlines() if "nobody can sign in yet" not in line]) == 1


def test_answers_are_sent_at_once(run: Run) -> None:
    """Accepted sockets have TCP_NODELAY, and probes answer without sign-in."""
    bound = _bound("127.0.0.1", 0)
    bound.listen()
    with bound, socket.create_connection(bound.getsockname()), bound.accept()[0] as accepted:
        assert accepted.proto == socket.IPPROTO_TCP
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    with _serving() as (_, port):
        assert _status(port, "/healthz") == _status(port, "/readyz") == 200


def test_json_says_where(run: Run) -> None:
    """`--json`: the first line is an object with the URL."""
    command = [sys.executable, "-m", "agent_adapter.cli", "serve", "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert json.loads(process.stdout.readline())["url"].startswith("http://127.0.0.1:")
    finally:
        process.kill()
        process.communicate()
