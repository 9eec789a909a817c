"""`agent-adapter notify`."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Run

pytest.importorskip("httpx")


class Hook:
    """A local webhook: what it was sent, and what it answers."""

    def __init__(self) -> None:
        self.status = 204
        self.bodies: list[dict[str, object]] = []
        outer = self

        class _Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.bodies.append(json.loads(body))
                self.send_response(outer.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/secret-path"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    """A webhook that runs as long as the test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = Hook()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def test_a_rule_is_added_listed_tested_and_removed(run: Run, hook: Hook) -> None:
    """Its address is shown without what may be a secret; the ledger says who did it."""
    added = run("notify", "add", "ops", "--to", hook.url, "--on", "waiting", "--secret", "s3cret")
    assert added.code == 0 and "secret-path" not in added.out
    [rule] = run("notify", "list", "--json").json
    assert (rule["name"], rule["to"], rule["secret"]) == ("ops", "http://127.0.0.1/…", "***")
    assert "secret-path" not in run("notify", "list").out
    assert run("notify", "test", "ops", "--json").json == {"rule": "ops", "sent": True}
    assert hook.bodies[0]["event"] == "test"
    assert run("notify", "remove", "ops").code == 0
    assert run("notify", "list", "--json").json == []
    entries = [entry["kind"] for entry in run("ledger", "show", "upkeep", "--json").json]
    assert entries == ["notification-rule-added", "notification-rule-removed"]
    assert run("verify").code == 0


def test_a_test_that_is_not_taken_is_an_error(run: Run, hook: Hook) -> None:
    """With the reason, and without the address."""
    run("notify", "add", "ops", "--to", hook.url)
    hook.status = 500
    ran = run("notify", "test", "ops")
    assert ran.code == 1 and "answered 500" in ran.err and "secret-path" not in ran.err
    assert run("notify", "test", "none").code == 1


def test_run_once_sends_what_is_due(run: Run, held: str, hook: Hook) -> None:
    """A failure is exit code 1 and stays in the outbox with its reason until it is sent."""
    run("notify", "add", "ops", "--to", hook.url, "--on", "waiting")
    hook.status = 503
    assert run("notify", "run", "--once").code == 1
    [row] = run("notify", "outbox", "--json").json
    assert (row["subject"], row["state"], row["error"]) == (held, "pending", "answered 503")
    assert row["id"] in run("notify", "outbox").out
    hook.status = 200
    assert run("notify", "retry", row["id"][:12]).out.startswith(row["id"])
    done = run("notify", "run", "--once", "--console-url", "https://console.example", "--json")
    assert (done.code, done.json["sent"]) == (0, 1)
    assert [body["id"] for body in hook.bodies] == [row["id"]] * 2
    assert hook.bodies[-1]["url"] == f"https://console.example/approvals/{held}"
    assert run("notify", "outbox", "--state", "sent", "--json").json[0]["id"] == row["id"]
    assert run("notify", "outbox").err.strip() == "nothing waits to be sent"


def test_rules_of_a_file(run: Run, held: str, hook: Hook, tmp_path: Path) -> None:
    """`--rules` adds those of a file; they are not kept in the store."""
    (tmp_path / "rules.toml").write_text(f'[[rule]]\nname = "desk"\nto = "{hook.url}"\n')
    assert run("notify", "run", "--once", "--rules", "rules.toml").code == 0
    assert hook.bodies[0]["facts"]["record"] == held  # type: ignore[index]
    assert run("notify", "list", "--json").json == []
    assert len(run("notify", "list", "--rules", "rules.toml", "--json").json) == 1


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("add", "ops", "--to", "hook"), 1, "`to` is no URL"),
        (("add", "a b", "--to", "https://x.example"), 1, "no name for a rule"),
        (("add", "ops", "--to", "https://x.example", "--on", "odd"), 2, "odd"),
        (("add", "ops", "--to", "https://x.example", "--before", "soon"), 1, "write 30m"),
        (("add", "ops", "--to", "https://x.example", "--to", "https://y.example"), 2, "--to"),
        (("remove", "none"), 1, "no rule none"),
        (("retry", "ntf_none"), 1, "no notification ntf_none"),
        (("run", "--once", "--rules", "none.toml"), 1, "none.toml cannot be read"),
        (("run", "--once", "--verify-every", "often"), 1, "write 30m"),
    ],
)
def test_bad_input_says_what_and_why(
    run: Run, held: str, args: tuple[str, ...], code: int, said: str
) -> None:
    """Each refusal is one line that names the thing."""
    ran = run("notify", *args)
    assert ran.code == code and said in ran.err, ran
    assert len(ran.err.splitlines()) == 1
