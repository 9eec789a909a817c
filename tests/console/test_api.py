"""The JSON API: the same actions, with a token in place of a session."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

import agent_adapter as aa
from agent_adapter.console.api.operations import OPERATIONS
from tests.console._answers import undescribed
from tests.console._shop import ShopConsole

pytestmark = pytest.mark.anyio


class Program:
    """A program that holds a token."""

    def __init__(self, client: TestClient, token: str) -> None:
        self.client = client
        self.headers = {"authorization": f"Bearer {token}"}

    def get(self, path: str) -> Any:
        """A question."""
        return self.client.get(f"/api/v1{path}", headers=self.headers)

    def post(self, path: str, body: Any = None) -> Any:
        """An action."""
        return self.client.post(f"/api/v1{path}", json=body, headers=self.headers)

    def seen(self, id: str) -> dict[str, str]:
        """What a decision on the record must carry."""
        record = self.get(f"/approvals/{id}").json()
        return {"digest": record["digest"], "version": record["version"]}


async def _program(shop: ShopConsole, role: str = "approver", name: str = "bot") -> Program:
    return Program(shop.client(), await shop.token(name, role))


POSTS = [each.path for each in OPERATIONS if each.method == "POST"]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
async def test_every_operation_needs_a_token(shop: ShopConsole, operation: Any) -> None:
    """A session's cookie is none."""
    browser = await shop.browser("ada", "admin")
    path = "/api/v1" + operation.path.format(id="x", key="x")
    answer = browser.client.request(operation.method, path, json={})
    assert answer.status_code == 401
    assert answer.json()["error"]["kind"] == "auth-error"


@pytest.mark.parametrize("path", POSTS)
async def test_a_viewer_cannot_act(shop: ShopConsole, path: str) -> None:
    """By any operation, with any body."""
    viewer = await _program(shop, "viewer")
    answer = viewer.post(path.format(id="x", key="x"), {"digest": "x", "version": "y"})
    assert answer.status_code == 403 and answer.json()["error"]["kind"] == "role"


async def test_a_program_approves(shop: ShopConsole) -> None:
    """Attributed to the token's name; the second word is stale."""
    id, bot = await shop.ask(), await _program(shop)
    seen = bot.seen(id)
    record = bot.post(
        f"/approvals/{id}/approve", seen | {"arguments": {"order": "A1", "amount": 2}}
    )
    assert record.status_code == 200 and record.json()["reviewer"] == "token:bot"
    assert bot.post(f"/approvals/{id}/deny", seen).status_code == 409
    assert await shop.executor.resume(id) == "paid 2"


async def test_a_program_denies(shop: ShopConsole) -> None:
    """With a reason that the model reads."""
    id, bot = await shop.ask(), await _program(shop)
    bot.post(f"/approvals/{id}/deny", bot.seen(id) | {"reason": "no budget"})
    with pytest.raises(aa.ApprovalDenied, match="no budget"):
        await shop.executor.resume(id)


async def test_a_program_answers_in_place_of_a_call(shop: ShopConsole) -> None:
    """The answer is the result, at once, whatever the window of the pages."""
    id = await shop.ask()
    bot = await _program(shop)
    answer = bot.post(f"/approvals/{id}/respond", bot.seen(id) | {"answer": {"paid": False}})
    assert answer.status_code == 200 and answer.json()["released_at"] is None
    assert undescribed("POST", "/approvals/{id}/respond", answer.json()) == []
    assert await shop.executor.resume(id) == {"paid": False}
    assert shop.ran == []


async def test_a_program_withdraws(shop: ShopConsole) -> None:
    """An open record is taken back; a second time there is nothing open."""
    id, bot = await shop.ask(), await _program(shop)
    answer = bot.post(f"/approvals/{id}/withdraw", {"reason": "order cancelled"})
    assert answer.status_code == 200
    assert undescribed("POST", "/approvals/{id}/withdraw", answer.json()) == []
    assert (answer.json()["state"], answer.json()["reviewer"]) == ("withdrawn", "token:bot")
    assert bot.post(f"/approvals/{id}/withdraw", {"reason": "again"}).status_code == 409
    assert bot.post("/approvals/apr_0/withdraw", {"reason": "x"}).status_code == 404
    with pytest.raises(aa.ApprovalWithdrawn, match="order cancelled"):
        await shop.executor.resume(id)


async def test_records_that_are_alike_are_decided_together(shop: ShopConsole) -> None:
    """Each carries what was seen of it."""
    ids, bot = [await shop.ask(run=f"r{n}") for n in range(2)], await _program(shop)
    records = [{"id": id} | bot.seen(id) for id in ids]
    answer = bot.post("/approvals/alike", {"records": records, "verdict": "denied"})
    assert answer.json() == {"decided": ids, "failed": []}


async def test_a_doubt_is_settled(shop: ShopConsole) -> None:
    """It is listed until it is."""
    key, bot = await shop.doubt(), await _program(shop)
    assert bot.get("/in-doubt").json()["total"] == 1
    body = {"happened": True, "reason": "seen at the bank", "result": "paid 5"}
    assert bot.post(f"/in-doubt/{key}/resolve", body).json()["ending"] == "ok"
    assert bot.get("/in-doubt").json()["total"] == 0
    assert bot.get(f"/calls/{key}").json()["result"] == 'tagged\n"paid 5"'


async def test_runs_calls_and_tools_are_told(shop: ShopConsole) -> None:
    """What the pages show."""
    key, bot = await shop.doubt(), await _program(shop, "viewer")
    assert [run["run_id"] for run in bot.get("/runs?ending=unknown").json()["runs"]] == [
        "run_doubt"
    ]
    assert bot.get("/runs/run_doubt").json()["unclear"] == 1
    calls = bot.get("/runs/run_doubt/calls").json()["calls"]
    assert [call["row"]["call_key"] for call in calls] == [key]
    assert bot.get("/runs/run_doubt/verification").json()["ok"] is True
    assert bot.get("/tools").json()["tools"][1]["errors"] == 1.0
    assert bot.get("/health").json()["health"]["approvals_pending"] == 0
    assert bot.get("/me").json() == {
        **{"name": "bot", "role": "viewer", "reviewer": "token:bot"},
        **{"tenant": "", "tenants": [""]},
    }


@pytest.mark.parametrize(
    ("body", "status"),
    [(None, 422), ([], 422), ({"digest": 1}, 422), ({"digest": "x", "version": "y", "z": 1}, 422)],
)
async def test_a_body_that_does_not_fit_is_refused(
    shop: ShopConsole, body: Any, status: int
) -> None:
    """With the fields that are wrong."""
    id, bot = await shop.ask(), await _program(shop)
    answer = bot.post(f"/approvals/{id}/approve", body)
    assert answer.status_code in (status, 415)
    assert (await shop.record(id)).state == "pending"


async def test_a_form_is_no_json(shop: ShopConsole) -> None:
    """What a page of another site can send without asking is not taken."""
    id, bot = await shop.ask(), await _program(shop)
    answer = bot.client.post(
        f"/api/v1/approvals/{id}/approve", data=bot.seen(id), headers=bot.headers
    )
    assert answer.status_code == 415


async def test_the_document_describes_every_operation(shop: ShopConsole) -> None:
    """And is OpenAPI."""
    document = shop.client().get("/api/v1/openapi.json").json()
    described = {(verb.upper(), path) for path, each in document["paths"].items() for verb in each}
    assert described == {(each.method, each.path) for each in OPERATIONS}
    names = [op["operationId"] for each in document["paths"].values() for op in each.values()]
    assert len(set(names)) == len(names)
    assert document["openapi"].startswith("3.1")


async def test_a_tokens_use_is_noted(shop: ShopConsole) -> None:
    """So that one that nobody needs can be found."""
    bot = await _program(shop)
    bot.get("/me")
    await shop.store.flush()
    (row,) = await shop.store.read(lambda tx: tx.select("tokens", {"name": "bot"}))
    assert row["last_used_at"] is not None


async def test_answers_are_as_the_document_describes_them(shop: ShopConsole) -> None:
    """Every field of a real answer is in its schema, with its type."""
    waiting, key, bot = await shop.ask(), await shop.doubt(), await _program(shop, "admin")
    for path, value in {
        "/me": "",
        "/approvals": "",
        "/approvals/{id}": waiting,
        "/runs": "",
        "/runs/{id}": "run_doubt",
        "/runs/{id}/calls": "run_doubt",
        "/runs/{id}/verification": "run_doubt",
        "/calls/{key}": key,
        "/in-doubt": "",
        "/channels": "",
        "/tools": "",
        "/health": "",
    }.items():
        answer = bot.get(path.format(id=value, key=value))
        assert answer.status_code == 200, (path, answer.text)
        assert undescribed("GET", path, answer.json()) == [], path
    body = {"happened": True, "reason": "seen"}
    answer = bot.post(f"/in-doubt/{key}/resolve", body)
    assert undescribed("POST", "/in-doubt/{key}/resolve", answer.json()) == []
    answer = bot.post(f"/approvals/{waiting}/deny", bot.seen(waiting))
    assert undescribed("POST", "/approvals/{id}/deny", answer.json()) == []


@pytest.mark.parametrize(
    ("query", "name"),
    [("limit=0", "limit"), ("limit=x", "limit"), ("start=nan", "start"), ("state=odd", "state")],
)
async def test_an_invalid_parameter_is_named(shop: ShopConsole, query: str, name: str) -> None:
    """With status 422, and without what was sent."""
    answer = (await _program(shop)).get(f"/approvals?{query}")
    assert answer.status_code == 422
    assert answer.json()["error"]["kind"] == "query"
    assert answer.json()["error"]["message"].startswith(f"{name}: ")
