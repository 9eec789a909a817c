"""At least once, though the process that sends is killed; a repeat has the same id."""

from __future__ import annotations

import email
import json
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from .conftest import free_port

pytest.importorskip("httpx")
aiosmtpd = pytest.importorskip("aiosmtpd.controller")

pytestmark = pytest.mark.slow

ASK = """
import asyncio, os, signal, sys
import agent_adapter as aa

registry = aa.ToolRegistry()

@registry.tool(confirm=True)
def refund(order: str) -> str:
    "Pay back."
    return order

async def main() -> None:
    store = aa.open_store(sys.argv[1])
    executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)
    try:
        await executor.run("refund", {"order": sys.argv[2]})
    except aa.ApprovalPending:
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


class Receivers:
    """A webhook, a Slack endpoint and a mail server; each answers only when it is let."""

    def __init__(self) -> None:
        self.ids: dict[str, list[str]] = {"webhook": [], "slack": [], "mail": []}
        self.arrived = threading.Semaphore(0)
        self.let = threading.Event()
        outer = self

        class _Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                which = "slack" if self.path == "/slack" else "webhook"
                outer.took(which, body)
                outer.let.wait(60)
                try:
                    self.send_response(200)
                    self.end_headers()
                except ConnectionError:
                    """Its sender was killed."""

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.smtp = aiosmtpd.Controller(self, hostname="127.0.0.1", port=free_port())

    def took(self, which: str, text: str) -> None:
        """Remember the notification's id in a text."""
        [id] = set(re.findall(r"ntf_[0-9a-f]{32}", text))
        self.ids[which].append(id)
        if which != "mail":
            self.arrived.release()

    async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:
        """Take a mail."""
        mail = email.message_from_bytes(envelope.content)
        self.took("mail", str(mail["Message-ID"]))
        return "250 taken"

    @property
    def addresses(self) -> dict[str, str]:
        """Where each is."""
        port = self.smtp.port
        base = f"http://127.0.0.1:{self.http.server_address[1]}"
        return {
            "webhook": f"{base}/hook",
            "slack": f"slack+{base}/slack",
            "mail": f"smtp://127.0.0.1:{port}?from=a@x.example&to=b@x.example",
        }


@pytest.fixture
def receivers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receivers]:
    """They run as long as the test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = Receivers()
    made.smtp.start()
    made.thread.start()
    yield made
    made.let.set()
    made.http.shutdown()
    made.thread.join()
    made.http.server_close()
    made.smtp.stop()


def _notifying(store: str, rules: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "agent_adapter", "notify", "run"]
    return subprocess.Popen([*command, "--store", store, "--rules", str(rules)], text=True)


def test_a_kill_between_commit_and_sending_loses_nothing(
    tmp_path: Path, receivers: Receivers
) -> None:
    """The program dies after the commit, the sender three times in mid-send: each is told at last.

    Each receiver sees ids repeated, and exactly one id for the one request.
    """
    store = f"sqlite:///{tmp_path / 'state.db'}"
    (tmp_path / "ask.py").write_text(ASK)
    asked = subprocess.run([sys.executable, tmp_path / "ask.py", store, "A1"], check=False)
    assert asked.returncode == -signal.SIGKILL
    rules = tmp_path / "rules.json"
    made = [
        {"name": name, "to": to, "events": ["waiting"]} for name, to in receivers.addresses.items()
    ]
    rules.write_text(json.dumps({"rule": made}))
    for _ in range(2):
        process = _notifying(store, rules)
        # The webhook and Slack have it and wait with their answer: nobody has noted it as sent.
        for _ in range(2):
            assert receivers.arrived.acquire(timeout=120)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    receivers.let.set()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "agent_adapter", "notify", "run", "--once", "--json"),
            *("--store", store, "--rules", str(rules)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert all(len(set(ids)) == 1 for ids in receivers.ids.values()), receivers.ids
    assert len(set(receivers.ids["webhook"])) == 1 and len(receivers.ids["webhook"]) >= 2
    kept = [list(Counter(ids)) for ids in receivers.ids.values()]
    assert [len(each) for each in kept] == [1, 1, 1], "a receiver that drops known ids sees one"
