"""T4: nothing of one tenant is shown to, changed by or hinted at to another's log-in.

The same store is made twice: with the records of `beta` alone, and with those of `acme` beside
them. Every page, route of the API, event stream and command is then used by a token of `beta`, with
ids that do not exist in the first store and those of `acme` in the second. The answers are equal.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

import agent_adapter as aa
from agent_adapter.cli import main
from agent_adapter.cli.app import app as program
from agent_adapter.cli.options import TOKEN_VARIABLE
from agent_adapter.console import create_app
from agent_adapter.exec import retention
from agent_adapter.network.hub import commands
from agent_adapter.store import Retention, access
from agent_adapter.store.base import Store
from agent_adapter.store.keys import run_key
from agent_adapter.store.sqlite import SqliteStore
from tests.cli.conftest import SHOP
from tests.console._shop import ORIGIN, Browser
from tests.console.test_event_streams import listening
from tests.network._scene import TransitionGraph, scene

OWN, OTHER = "beta", "acme"
UNKNOWN = {
    "approval": "apr_0000000000000000",
    "run": run_key(OTHER, "run_9"),
    "call": "call_0000000000000000",
    "channel": "chn_0000000000000000",
    "command": "cmd_0000000000000000",
    "envelope": "env_0000000000000000",
    "tool": "no_tool",
    "principal": "nobody",
}
"""Ids in the form of real ones that name nothing."""


@dataclass
class World:
    """A store in a folder of its own, a token of `beta` for it, and ids of somebody else."""

    folder: Path
    token: str
    ids: dict[str, str]

    @property
    def url(self) -> str:
        """The store, as the command line takes it."""
        return f"sqlite:///{self.folder / 'state.db'}"

    def open(self) -> SqliteStore:
        """The store."""
        return SqliteStore(self.folder / "state.db")


# -- the records of a tenant -------------------------------------------------------------------


async def furnish(store: Store, tenant: str) -> dict[str, str]:
    """Records of every kind, under the same names in every tenant; their ids."""
    registry = aa.ToolRegistry()

    @registry.tool(confirm=True)
    def refund(order_id: str, amount: float) -> str:
        """Pay money back."""
        raise RuntimeError("the line went dead")

    @registry.tool(effects="read", trust="untrusted", name=f"only_{tenant}")
    def look_up(order_id: str) -> str:
        """Find an order."""
        return f"{order_id} of {tenant}-secret"

    executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)

    def ctx(run: str) -> aa.ToolContext:
        return aa.ToolContext(
            run_id=run,
            call_id="call_1",
            thread_id="thread_1",
            principal=f"{tenant}-ann",
            tenant=tenant,
        )

    order = {"order_id": f"{tenant}-secret"}
    await executor.run(f"only_{tenant}", order, ctx=ctx("run_1"))
    records = []
    for run in ("run_1", "run_2"):
        try:
            await executor.run("refund", order | {"amount": 5}, ctx=ctx(run))
        except aa.ApprovalPending as pending:
            records.append(pending.id)
    await aa.Inbox(store, tenant=tenant).approve(records[1], reviewer=f"os:{tenant}-eve")
    with pytest.raises(aa.ToolError):
        await executor.resume(records[1], tenant=tenant)
    channel = await talk(store, tenant)
    await retention.set_retention(store, {tenant: Retention()}, by="os:root")
    await retention.hold(store, "tenant", tenant, by="os:root", reason=f"{tenant}-secret")
    await store.flush()
    found = await store.read(lambda tx: tx.select("calls", {"tenant": tenant, "tool": "refund"}))
    return channel | {
        "approval": records[0],
        "run": run_key(tenant, "run_1"),
        "call": found[0]["call_key"],
        "tool": f"only_{tenant}",
        "principal": f"{tenant}-ann",
    }


async def talk(store: Store, tenant: str) -> dict[str, str]:
    """A channel of the tenant with a text, a parked turn's like, and a command that waits."""
    async with scene(store) as at:
        for name in ("ana", "bob"):
            await at.person(name)
        channel = await at.open("ana", ["bob"], TransitionGraph.round_robin(at.names("ana", "bob")))
        id = channel.channel_id
        await at.people["ana"].send(id, f"{tenant}-secret")
    payload = {"channel_id": id, "sender": "ana", "text": f"{tenant}-secret"}

    def own(tx: Any) -> tuple[str, str]:
        tx.update("channels", {"channel_id": id}, {"tenant": tenant})
        last = tx.select("envelopes", {"channel_id": id}, order_by="seq")[-1]
        return last["envelope_id"], commands.queue(tx, "speak", payload, f"os:{tenant}-eve")

    envelope, command = await store.write(own)
    return {"channel": id, "envelope": envelope, "command": command}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, World]:
    """The store without, and with, the records of the other tenant."""
    alone = World(tmp_path_factory.mktemp("alone"), access.new_secret(), dict(UNKNOWN))

    async def begin() -> None:
        store = alone.open()
        await furnish(store, OWN)
        made = await store.write(
            lambda tx: access.create_token(tx, "kim", "admin", alone.token, tenants=[OWN], by="me")
        )
        assert isinstance(made, dict)
        await store.aclose()

    asyncio.run(begin())
    (alone.folder / "shop.py").write_text(SHOP)
    folder = tmp_path_factory.mktemp("beside") / "w"
    shutil.copytree(alone.folder, folder)
    beside = World(folder, alone.token, {})

    async def go_on() -> None:
        store = beside.open()
        beside.ids = await furnish(store, OTHER)
        await store.aclose()

    asyncio.run(go_on())
    assert beside.ids.keys() == UNKNOWN.keys()
    return alone, beside


# -- what is compared --------------------------------------------------------------------------


def normal(text: str, world: World) -> str:
    """The text without what differs between any two stores: ids, times, paths, processes."""
    for kind, id in world.ids.items():
        text = text.replace(id, f"<{kind}>")
    text = text.replace(str(world.folder), "<folder>").replace(world.token, "<token>")
    text = re.sub(r"<h2>Processes.*?<h2>Integrations", "", text, flags=re.DOTALL)
    text = re.sub(r'"(processes|hub)":(\[.*?\]|null|"[^"]*"),', "", text)
    text = re.sub(r"\b(apr|call|chn|cmd|env|run|turn|ses|own|place|agt)_\w+", r"<\1>", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.]+(\+00:00|Z)?", "<time>", text)
    text = re.sub(r"\b1[78]\d{8}(\.\d+)?", "<time>", text)
    text = re.sub(r"\b[\d.]+ (ms|s|min|h)\b", "<seconds>", text)
    text = re.sub(r'data-left="[\d.]+"', "<seconds>", text)
    text = re.sub(r'"(seconds|p50|p95)":\s*[\d.e-]+', r'"\1": <seconds>', text)
    text = re.sub(r"\b[0-9a-f]{16,64}\b", "<hex>", text)
    return re.sub(r'(name="(csrf|key)" value=")[^"]*', r"\1", text)


def rows_of_other(world: World) -> dict[str, list[Any]]:
    """Every row that says anything about the other tenant, or is of a chain of theirs."""

    async def read() -> dict[str, list[Any]]:
        store = world.open()
        found = await store.read(lambda tx: {name: tx.select(name) for name in TABLES})
        await store.aclose()
        return found

    known = {world.ids["approval"], world.ids["channel"], world.ids["call"], world.ids["command"]}
    marks = {*known, OTHER, run_key(OTHER, "run_1"), run_key(OTHER, "run_2")}
    return {
        name: [row for row in rows if any(mark in repr(row) for mark in marks)]
        for name, rows in asyncio.run(read()).items()
    }


TABLES = (
    *("calls", "approvals", "votes", "runs", "channels", "envelopes", "turns", "commands"),
    *("payloads", "taints", "chain_heads", "meta", "expectations", "channel_members"),
)


# -- the console -------------------------------------------------------------------------------

BODIES: dict[str, dict[str, Any]] = {
    "POST /sign-in": {"token": "{token}", "next": "/approvals"},
    "POST /sign-out": {},
    "POST /tenant": {"tenant": OTHER},
    "POST /approvals/alike": {"record": "{approval}|d|v", "verdict": "approved"},
    "POST /approvals/bulk": {"record": "{approval}"},
    "POST /approvals/bulk/decide": {"record": "{approval}|d|v", "verdict": "approved"},
    "POST /approvals/bulk/undo": {"record": "{approval}"},
    "POST /approvals/views": {"name": "mine", "query": ""},
    "POST /approvals/views/drop": {"id": "view_0"},
    "POST /approvals/{id}/undo": {},
    "POST /approvals/{id}/withdraw": {"reason": "no"},
    "POST /approvals/{id}/decide": {"verdict": "approved", "digest": "d", "version": "v"},
    "POST /approvals/{id}/edit": {"raw": '{"n": 1}', "digest": "d", "version": "v"},
    "POST /in-doubt/{key}": {"answer": "done", "reason": "seen"},
    "POST /runs/{id}/cancel": {"reason": "no"},
    "POST /writes/stop": {"reason": "no"},
    "POST /writes/allow": {},
    "POST /people/add": {"name": "eve"},
    "POST /people/link": {"who": "{principal}", "role": "admin"},
    "POST /people/revoke": {"which": "{principal}"},
    "POST /tokens/create": {"name": "eve", "role": "king"},
    "POST /tokens/revoke": {"id": "tok_0"},
    "POST /channels/{id}/speak": {"sender": "ana", "text": "hi", "key": "k"},
    "POST /channels/{id}/fork": {"at": "{envelope}"},
    "POST /channels/{id}/resume": {},
    "POST /api/v1/approvals/alike": {
        "records": [{"id": "{approval}", "digest": "d", "version": "v"}],
        "verdict": "denied",
    },
    "POST /api/v1/approvals/{id}/approve": {"digest": "d", "version": "v"},
    "POST /api/v1/approvals/{id}/deny": {"digest": "d", "version": "v"},
    "POST /api/v1/approvals/{id}/withdraw": {"reason": "no"},
    "POST /api/v1/approvals/{id}/respond": {"digest": "d", "version": "v", "answer": 1},
    "POST /api/v1/in-doubt/{key}/resolve": {"happened": True, "reason": "seen"},
    "POST /api/v1/channels/{id}/speak": {"sender": "ana", "text": "hi"},
    "POST /api/v1/channels/{id}/fork": {"at": "{envelope}"},
    "POST /api/v1/channels/{id}/resume": {},
}
"""What each form and each body says; a new one needs a line here."""

QUERIES = {
    "GET /approvals": ("", "?state=all"),
    "GET /runs": ("", "?tool={tool}", "?who={principal}", "?ending=unknown"),
    "GET /channels": ("", "?state=all"),
    "GET /api/v1/approvals": ("?state=all&limit=1",),
    "GET /api/v1/runs": ("?limit=1", "?tool={tool}", "?principal={principal}", "?ending=unknown"),
    "GET /api/v1/channels": ("?state=all&limit=1",),
    "GET /api/v1/tools": ("?limit=1", "?limit=1&after=a", "?limit=1&after=only_beta"),
}
"""More ways to ask for lists than without a query."""

KINDS = {
    "approvals": "approval",
    "runs": "run",
    "calls": "call",
    "in-doubt": "call",
    "channels": "channel",
    "commands": "command",
    "tools": "tool",
}
"""What the id in a path names, by the path's first part."""


def routes(app: Any) -> Iterator[str]:
    """`METHOD /path` of every route."""

    def walk(several: Any, prefix: str) -> Iterator[str]:
        for route in several:
            if isinstance(route, Mount):
                yield from walk(route.routes or (), prefix + route.path)
            elif isinstance(route, Route):
                methods = set(route.methods or ()) - {"HEAD"}
                yield from (f"{method} {prefix}{route.path}" for method in methods)

    yield from sorted(walk(app.routes, ""))


def filled(value: Any, world: World) -> Any:
    """The value with the ids of the world."""
    text = json.dumps(value)
    for kind, id in (world.ids | {"token": world.token}).items():
        text = text.replace(f"{{{kind}}}", id)
    return json.loads(text)


def path_of(route: str, world: World) -> str:
    """The path with an id of the world in it."""
    path = route.partition(" ")[2]
    parts = path.removeprefix("/api/v1").removeprefix("/events").split("/")
    kind = KINDS.get(parts[1], "") if len(parts) > 1 else ""
    return re.sub(r"\{\w+\}", lambda _: world.ids[kind], path)


async def first_event(app: Any, browser: Browser, path: str) -> str:
    """What a stream says first."""

    class Shop:
        pass

    shop: Any = Shop()
    shop.app = app
    async with listening(shop, browser, path.partition("?")[2]) as stream:
        return json.dumps(await stream.next())


def asked(app: Any, browser: Browser, route: str, query: str, world: World) -> tuple[int, str]:
    """Status and text of one request."""
    path = path_of(route, world) + filled(query, world)
    body = filled(BODIES[route], world) if route.startswith("POST") else None
    if route == "GET /events":
        return 200, asyncio.run(first_event(app, browser, path))
    if route.partition(" ")[2].startswith("/api/"):
        client = TestClient(app, base_url=ORIGIN)
        bearer = {"authorization": f"Bearer {world.token}"}
        method = client.get if body is None else client.post
        more: dict[str, Any] = {} if body is None else {"json": body}
        answer = method(path, headers=bearer, **more)
    elif body is None:
        answer = browser.get(path)
    else:
        answer = browser.post(path, body)
    return answer.status_code, answer.text


def console(world: World) -> dict[str, tuple[int, str]]:
    """The answer to every request, by route and query."""
    store = world.open()
    app = create_app(store, requests_per_minute=1_000_000)
    client = TestClient(app, base_url=ORIGIN, follow_redirects=False)
    browser = Browser(client, world.token)
    found = {}
    for route in sorted(routes(app), key=lambda each: (each == "POST /sign-out", each)):
        for query in QUERIES.get(route, ("",)):
            found[f"{route}{query}"] = asked(app, browser, route, query, world)
    channel = f"/channels/{own_channel(store)}"
    query = "?command={command}"
    again = Browser(client, world.token)
    answer = again.get(channel + filled(query, world))
    found[f"a command on a page of one's own {query}"] = answer.status_code, answer.text
    asyncio.run(store.aclose())
    return {name: (status, normal(text, world)) for name, (status, text) in found.items()}


def own_channel(store: SqliteStore) -> str:
    """The channel of the token's own tenant."""
    rows = asyncio.run(store.read(lambda tx: tx.select("channels", {"tenant": OWN})))
    return str(rows[0]["channel_id"])


def differences(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Where two answers differ."""
    assert first.keys() == second.keys()
    return {name: (first[name], second[name]) for name in first if first[name] != second[name]}


def test_t4_no_page_route_or_stream_shows_another_tenant(worlds: tuple[World, World]) -> None:
    """T4: equal answers with and without the other's records, 404 for ids, and nothing changed."""
    alone, beside = worlds
    before = rows_of_other(beside)
    assert all(before[name] for name in ("calls", "approvals", "channels", "commands", "envelopes"))
    with_others = console(beside)
    assert differences(console(alone), with_others) == {}
    for route, (status, text) in with_others.items():
        assert f"{OTHER}-" not in text, route
        if "{" in route.partition("?")[0] or "alike" in route:
            assert status == 404, route
    own = with_others["GET /approvals"][1]
    assert f"{OWN}-secret" in own, "the token sees its own tenant's records"
    assert rows_of_other(beside) == before


# -- the command line --------------------------------------------------------------------------

WHOLE: tuple[tuple[str, ...], ...] = (
    ("approvals", "confirm-time"),
    ("import-ag2", "ag2-store"),
    ("serve",),
    ("mcp", "serve", "shop.py"),
    ("writes", "stop"),
    ("writes", "allow"),
    ("writes", "status"),
    ("tokens", "create", "eve", "--role", "admin", "--tenant", OTHER),
    ("tokens", "list"),
    ("tokens", "revoke", "kim"),
    ("people", "add", "eve"),
    ("people", "link", "kim", "os:eve"),
    ("people", "list"),
    ("people", "revoke", "kim"),
    ("notify", "add", "ops", "--to", "https://example.org/hook", "--tenant", OTHER),
    ("notify", "list"),
    ("notify", "remove", "ops"),
    ("notify", "test", "ops"),
    ("notify", "outbox"),
    ("notify", "retry", "ntf_1"),
    ("notify", "run", "--once"),
    ("db", "backup", "copy.db"),
    ("db", "upgrade"),
    ("db", "prune"),
    ("db", "retention", "--tenant", OTHER),
    ("db", "hold", "tenant", OTHER),
    ("db", "release", "tenant", OTHER),
    ("db", "holds"),
    ("ledger", "verify"),
    ("verify",),
)
"""Commands about the whole store: not for the holder of a token."""

LINES: tuple[tuple[str, ...], ...] = (
    ("approvals", "list"),
    ("approvals", "list", "--state", "all", "--json"),
    ("approvals", "show", "{approval}"),
    ("approvals", "approve", "{approval}"),
    ("approvals", "approve", "{approval}", "--args", "{}"),
    ("approvals", "deny", "{approval}"),
    ("approvals", "respond", "{approval}", "--text", "no"),
    ("approvals", "withdraw", "{approval}"),
    ("approvals", "withdraw", "--run", "{run}"),
    ("approvals", "withdraw", "--conversation", "{channel}"),
    ("approvals", "watch", "--for", "0", "--json"),
    ("runs", "list", "--json"),
    ("runs", "list", "--tool", "{tool}"),
    ("runs", "list", "--principal", "{principal}"),
    ("runs", "list", "--ending", "unknown"),
    ("runs", "show", "{run}"),
    ("runs", "show", "run_1", "--json"),
    ("runs", "tail", "--for", "0", "--json"),
    ("runs", "tail", "{run}", "--for", "0"),
    ("runs", "tail", "run_1", "--for", "0"),
    ("runs", "cancel", "{run}"),
    ("ledger", "show", "--json"),
    ("ledger", "show", "--limit", "2"),
    ("ledger", "show", "{run}"),
    ("ledger", "show", "run_1"),
    ("ledger", "show", "upkeep"),
    ("ledger", "show", "#network"),
    ("ledger", "show", "#channel:{channel}"),
    ("ledger", "verify", "--run", "{run}"),
    ("ledger", "verify", "--run", "run_1", "--json"),
    ("verify", "--run", "{run}"),
    ("ledger", "in-doubt", "--json"),
    ("ledger", "resolve", "{call}", "--happened"),
    ("channels", "list", "--state", "all", "--json"),
    ("channels", "list", "--limit", "1"),
    ("channels", "show", "{channel}"),
    ("channels", "tail", "{channel}"),
    ("channels", "fork", "{channel}", "--at", "{envelope}", "--wait", "0"),
    ("channels", "reopen", "{channel}", "--wait", "0"),
    ("channels", "replay", "{channel}"),
    ("tools", "resume", "shop.py", "{approval}"),
    ("tools", "call", "shop.py", "refund", "order_id=A1", "amount=5", "--run", "run_1"),
    ("runs", "cancel", "run_1"),
)
"""Every other command that opens a store, some in several ways; a new one needs a line here."""


def leaves(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Every command with the names of its options."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name), {option for each in command.params for option in each.opts}


COMMANDS = {
    path: options
    for path, options in leaves(typer.main.get_command(program))
    if "--store" in options
}
"""The commands that open a store."""


def test_every_command_has_a_case() -> None:
    """A command that opens a store is either about all of it, or takes a tenant."""
    for path, options in COMMANDS.items():
        lines = [line for line in (*LINES, *WHOLE) if line[: len(path)] == path]
        assert lines, f"{' '.join(path)} needs a line in LINES or WHOLE"
        of_tenant = any(line[: len(path)] == path for line in LINES)
        assert not of_tenant or "--tenant" in options, path


def typed(
    world: World, lines: Iterable[tuple[str, ...]], monkeypatch: Any, capsys: Any
) -> dict[str, tuple[int, str]]:
    """What the command lines print, and their exit codes."""
    monkeypatch.chdir(world.folder)
    monkeypatch.setenv(TOKEN_VARIABLE, world.token)
    monkeypatch.setenv("AGENT_ADAPTER_STORE", world.url)
    found = {}
    for line in lines:
        capsys.readouterr()
        code = main(filled(list(line), world))
        shown = capsys.readouterr()
        found[" ".join(line)] = code, normal(shown.out + shown.err, world)
    return found


def test_t4_no_command_shows_another_tenant(
    worlds: tuple[World, World],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """T4: equal output with and without the other's records, refused with `--tenant` of theirs."""
    alone, beside = worlds
    before = rows_of_other(beside)
    with_others = typed(beside, LINES, monkeypatch, capsys)
    assert differences(typed(alone, LINES, monkeypatch, capsys), with_others) == {}
    for line, (code, text) in with_others.items():
        assert f"{OTHER}-" not in text, line
        if re.search(r"\{(approval|call|channel|run)\}", line) and "withdraw --" not in line:
            assert code == 1, (line, text)
    assert f"{OWN}-secret" in with_others["approvals list"][1]
    asked_for_it = [(*line, "--tenant", OTHER) for line in LINES]
    for line, (code, text) in typed(beside, asked_for_it, monkeypatch, capsys).items():
        assert code == 1 and "does not belong to it" in text, (line, text)
    for line, (code, text) in typed(beside, WHOLE, monkeypatch, capsys).items():
        assert code == 1 and "whole store" in text, (line, text)
    assert rows_of_other(beside) == before
