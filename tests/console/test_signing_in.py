"""Signing in: each caller has their own limit, and the way back is the page that was asked for."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from agent_adapter.console import TrustedProxy, authentication
from agent_adapter.store import access
from agent_adapter.store.sqlite import SqliteStore
from agent_adapter.store.witness import UPKEEP
from tests.console._shop import ORIGIN, ShopConsole, field

pytestmark = pytest.mark.anyio

PROXY = "10.0.0.5"


def sign_in(client: Any, token: str, **headers: str) -> Any:
    """The form of the sign-in page, sent with that token."""
    text = client.get("/sign-in").text
    sent = {"csrf": field(text, "csrf"), "token": token, "next": field(text, "next")}
    return client.post("/sign-in", data=sent, headers={"origin": ORIGIN} | headers)


def caller(shop: ShopConsole, address: str) -> Any:
    """A browser at that address."""
    return shop.client(client=(address, 1))


async def test_wrong_tokens_of_one_address_stop_nobody_else(shop: ShopConsole) -> None:
    """D7: after 130 of them that caller waits, and everybody else signs in."""
    token = await shop.token("kim", "approver")
    mallory = caller(shop, "192.0.2.66")
    codes = [sign_in(mallory, f"aat_wrong{n}").status_code for n in range(130)]
    assert codes[:10] == [401] * 10 and codes[-1] == 429
    assert sign_in(mallory, token).status_code == 429
    assert sign_in(caller(shop, "192.0.2.7"), token).status_code == 303


async def test_guesses_through_the_api_stop_nobody_else(shop: ShopConsole) -> None:
    """D7: the same for programs."""
    token = await shop.token("kim", "approver")
    mallory, other = caller(shop, "192.0.2.66"), caller(shop, "192.0.2.7")
    wrong, right = ({"authorization": f"Bearer {each}"} for each in ("aat_wrong", token))
    codes = [mallory.get("/api/v1/me", headers=wrong).status_code for _ in range(130)]
    assert codes[:10] == [401] * 10 and codes[-1] == 429
    assert other.get("/api/v1/me", headers=wrong).status_code == 401
    assert other.get("/api/v1/me", headers=right).status_code == 200


async def test_a_guesser_of_many_addresses_stops_nobody_else(shop: ShopConsole) -> None:
    """Also 130 addresses at once are no reason to keep a 131st out."""
    token = await shop.token("kim", "approver")
    for n in range(130):
        headers = {"authorization": "Bearer aat_wrong"}
        assert caller(shop, f"198.51.100.{n}").get("/api/v1/me", headers=headers).status_code == 401
    assert sign_in(caller(shop, "192.0.2.7"), token).status_code == 303


async def test_one_network_of_ipv6_is_one_caller(shop: ShopConsole) -> None:
    """Whoever has a network of 2**64 addresses does not have as many limits."""
    codes = [
        sign_in(caller(shop, f"2001:db8:1:1::{n:x}"), "aat_wrong").status_code for n in range(12)
    ]
    assert codes[-1] == 429
    assert sign_in(caller(shop, "2001:db8:1:2::1"), "aat_wrong").status_code == 401


@pytest.mark.parametrize("form", ["{}", "{}:4711", "invented, {}", "{}, 10.0.0.5"])
async def test_behind_a_trusted_proxy_callers_are_told_apart(store: SqliteStore, form: str) -> None:
    """By the address that the proxy forwards, not by what a caller put before it."""
    shop = ShopConsole(store, trusted_proxy=TrustedProxy(peers=[PROXY]))
    token = await shop.token("kim", "approver")
    client = caller(shop, PROXY)
    forwarded = {"x-forwarded-for": form.format("203.0.113.66")}
    codes = [sign_in(client, "aat_wrong", **forwarded).status_code for _ in range(12)]
    assert codes[-1] == 429
    assert sign_in(client, token, **{"x-forwarded-for": "203.0.113.7"}).status_code == 303


async def test_a_forwarded_address_of_a_stranger_is_not_believed(store: SqliteStore) -> None:
    """Whoever connects directly could name another for each attempt."""
    shop = ShopConsole(store, trusted_proxy=TrustedProxy(peers=[PROXY]))
    mallory = caller(shop, "192.0.2.66")
    codes = [
        sign_in(mallory, "aat_wrong", **{"x-forwarded-for": f"203.0.113.{n}"}).status_code
        for n in range(12)
    ]
    assert codes[-1] == 429


async def test_attempts_are_in_the_ledger(shop: ShopConsole) -> None:
    """Who signed in and from where; of a flood of wrong tokens a few, without the tokens."""
    token = await shop.token("kim", "approver")
    for n in range(20):
        sign_in(caller(shop, "192.0.2.66"), f"aat_wrong{n}")
    sign_in(caller(shop, "192.0.2.7"), token)
    await shop.store.flush()
    rows = await shop.store.read(lambda tx: tx.select("ledger", {"run_id": UPKEEP}))
    bodies = [row["body"].decode() for row in rows]
    refused = [each for each in bodies if "sign-in-refused" in each]
    assert 0 < len(refused) < 5 and all("192.0.2.66" in each for each in refused)
    assert [("kim" in each, "192.0.2.7" in each) for each in bodies if "signed-in" in each] == [
        (True, True)
    ]
    assert not any("aat_" in each for each in bodies)


@pytest.mark.parametrize("path", ["/runs/a%2Fb", "/runs?tool=pay&ending=ok", "/approvals/apr_1"])
async def test_signing_in_leads_to_the_page_that_was_asked_for(
    shop: ShopConsole, path: str
) -> None:
    """A link from a mail or a chat opens its page, also before there is a session."""
    token, client = await shop.token("kim", "approver"), shop.client()
    asked = client.get(path).headers["location"]
    assert parse_qs(urlsplit(asked).query)["next"] == [path]
    text = client.get(asked).text.replace("&amp;", "&")
    sent = {"csrf": field(text, "csrf"), "token": token, "next": field(text, "next")}
    answer = client.post("/sign-in", data=sent, headers={"origin": ORIGIN})
    assert (answer.status_code, answer.headers["location"]) == (303, path)


async def test_two_consoles_on_one_host_keep_their_sessions(store: SqliteStore) -> None:
    """Browsers send the cookies of one port to the others, so that each has its own name."""
    shop = ShopConsole(store)
    token, jar = await shop.token("kim", "approver"), shop.client()
    for port in (8001, 8002):
        origin = f"http://localhost:{port}"
        text = jar.get(f"{origin}/sign-in").text
        sent = {"csrf": field(text, "csrf"), "token": token, "next": "/approvals"}
        answer = jar.post(f"{origin}/sign-in", data=sent, headers={"origin": origin})
        assert answer.status_code == 303
    csrf = field(jar.get("http://localhost:8002/approvals").text, "csrf")
    headers = {"origin": "http://localhost:8002"}
    answer = jar.post("http://localhost:8002/sign-out", data={"csrf": csrf}, headers=headers)
    assert answer.status_code == 303
    codes = [jar.get(f"http://localhost:{port}/approvals").status_code for port in (8001, 8002)]
    assert codes == [200, 303]


async def test_what_an_open_page_fetches_keeps_no_session_alive(
    shop: ShopConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is left open ends its session after half an hour, as a closed one does."""
    browser = await shop.browser()
    touched: list[object] = []
    monkeypatch.setattr(access, "touch_session", lambda tx, session: touched.append(session))
    for _ in range(3):
        browser.get("/approvals", headers={authentication.LIVE_HEADER: "1"})
    await shop.store.flush()
    assert touched == []
    browser.get("/approvals")
    await shop.store.flush()
    assert len(touched) == 1
