"""The ways to send, to real servers of this machine."""

from __future__ import annotations

import email
import http.server
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agent_adapter.notify import verify_webhook
from agent_adapter.notify.channels import send
from agent_adapter.notify.channels.sending import Outgoing, SendFailed
from agent_adapter.notify.messages import Message

from .conftest import free_port

pytest.importorskip("httpx")
pytestmark = pytest.mark.anyio

MESSAGE = Message(
    id="ntf_1",
    event="waiting",
    tenant="",
    at=1_790_000_000.0,
    title="Approval needed: refund",
    facts=(("tool", "refund"),),
    quoted='{\n  "order": "größe"\n}',
    size=20,
    link="https://console.example/approvals/apr_1",
    decides=True,
)


def outgoing(to: str, secret: str | None = None) -> Outgoing:
    """The message to an address."""
    return Outgoing(to=to, secret=secret, message=MESSAGE, at=time.time())


class Server:
    """An HTTP server that remembers requests and answers as it is told."""

    def __init__(self) -> None:
        self.status, self.headers, self.body = 200, dict[str, str](), b"ok"
        self.requests: list[tuple[dict[str, str], bytes]] = []
        outer = self

        class _Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                read = self.rfile.read(int(self.headers["content-length"]))
                outer.requests.append(({k.lower(): v for k, v in self.headers.items()}, read))
                self.send_response(outer.status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(outer.body)
                except ConnectionError:
                    """The client has read enough."""

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """It runs as long as the test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    made = Server()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


async def test_a_webhook_is_signed(server: Server) -> None:
    """The receiver verifies it; the id is that of the notification."""
    await send(outgoing(server.url, "s3cret"))
    [(headers, body)] = server.requests
    assert verify_webhook("s3cret", headers, body) == "ntf_1"
    assert headers["idempotency-key"] == "ntf_1"


async def test_slack_takes_blocks(server: Server) -> None:
    """`slack+http` is an incoming webhook at any address."""
    await send(outgoing(f"slack+{server.url}"))
    [(_, body)] = server.requests
    assert b'"blocks"' in body and b"apr_1#approve" in body


@pytest.mark.parametrize("status", [301, 400, 404, 429, 500])
async def test_any_other_answer_is_a_failure(server: Server, status: int) -> None:
    """A redirect is not followed; the reason has the status and no address."""
    server.status = status
    server.headers = {"location": server.url, "retry-after": "7"}
    with pytest.raises(SendFailed, match=f"answered {status}") as caught:
        await send(outgoing(server.url))
    assert caught.value.wait == 7.0 and "hook" not in str(caught.value)
    assert len(server.requests) == 1


async def test_a_long_answer_is_not_read(server: Server) -> None:
    """At most 64 KB of it, and little is kept."""
    server.status, server.body = 500, b"x" * 10_000_000
    with pytest.raises(SendFailed) as caught:
        await send(outgoing(server.url))
    assert len(str(caught.value)) < 300


async def test_nobody_there(server: Server) -> None:
    """A refused connection is a failure without the address."""
    server.server.server_close()
    with pytest.raises(SendFailed, match="no answer") as caught:
        await send(outgoing("http://127.0.0.1:1/hook"))
    assert "127.0.0.1" not in str(caught.value)


class Mailbox:
    """What a mail server was handed."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], Any]] = []

    async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:
        """Take a mail."""
        self.mails.append((envelope.rcpt_tos, email.message_from_bytes(envelope.content)))
        return "250 taken"


@pytest.fixture
def smtp() -> Iterator[tuple[Mailbox, str]]:
    """A mail server, and the address that hands mail to it."""
    controllers = pytest.importorskip("aiosmtpd.controller")
    box = Mailbox()
    controller = controllers.Controller(box, hostname="127.0.0.1", port=free_port())
    controller.start()
    yield (
        box,
        f"smtp://127.0.0.1:{controller.port}?from=desk@example.org&to=kim@example.org,bo@example.org",
    )
    controller.stop()


async def test_mail_is_handed_over(smtp: tuple[Mailbox, str]) -> None:
    """To everybody, as text, with an id that a repeat has too."""
    box, url = smtp
    await send(outgoing(url))
    await send(outgoing(url))
    (to, first), (_, second) = box.mails
    assert to == ["kim@example.org", "bo@example.org"]
    assert first["Message-ID"] == second["Message-ID"] == "<ntf_1@agent-adapter.invalid>"
    assert first["Subject"] == "[agent-adapter] Approval needed: refund"
    text = first.get_payload(decode=True).decode()
    assert "größe" in text and "Decide: https://console.example/approvals/apr_1" in text


@pytest.mark.parametrize(
    "url",
    [
        "smtp://127.0.0.1",
        "smtp://127.0.0.1?from=a@x.example",
        "smtp://127.0.0.1?from=a@x.example&to=nobody@@x",
        "smtp://127.0.0.1?from=a@x.example&to=b@x.example&bcc=c@x.example",
        "smtp://127.0.0.1?from=a@x.example&to=b@x.example&starttls=maybe",
        "smtp://127.0.0.1:port?from=a@x.example&to=b@x.example",
        "smtp://127.0.0.1:1?from=a@x.example&to=b@x.example",
    ],
)
async def test_a_bad_mail_address_is_a_failure(url: str) -> None:
    """It is retried and seen in the outbox; nothing is sent."""
    with pytest.raises(SendFailed):
        await send(outgoing(url))


async def test_a_required_starttls_is_required(smtp: tuple[Mailbox, str]) -> None:
    """A server without TLS is handed nothing then."""
    box, url = smtp
    with pytest.raises(SendFailed):
        await send(outgoing(f"{url}&starttls=require"))
    assert box.mails == []


@pytest.mark.filterwarnings("ignore:.imghdr. is deprecated:DeprecationWarning")
async def test_other_services_go_through_apprise(server: Server) -> None:
    """`json://` is one that Apprise sends itself; an unknown one is a failure."""
    pytest.importorskip("apprise")
    await send(outgoing(server.url.replace("http://", "json://")))
    [(_, body)] = server.requests
    assert b"Approval needed: refund" in body and b"ntf_1" in body
    with pytest.raises(SendFailed, match="does not know"):
        await send(outgoing("nosuchservice://x"))
