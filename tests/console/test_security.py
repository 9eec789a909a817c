"""Who may see and do what; forms of other pages, other sessions and other sites do nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from starlette.routing import Route

import agent_adapter as aa
from agent_adapter.console import TrustedProxy, create_app
from agent_adapter.store import access
from agent_adapter.store.memory import MemoryStore
from agent_adapter.store.sqlite import SqliteStore
from tests.console._shop import ORIGIN, ShopConsole, field

pytestmark = pytest.mark.anyio

NAMES = {"id": "x", "key": "x", "name": "x", "path": "console.css"}
OPEN = ("/sign-in", "/static", "/healthz", "/readyz")


def _routes(method: str) -> Iterator[str]:
    """Every path of the console's pages, with something in place of its names."""
    for route in create_app(MemoryStore()).routes:
        if isinstance(route, Route) and method in (route.methods or ()):
            yield route.path.format(**NAMES)


PAGES = sorted(path for path in _routes("GET") if not path.startswith(OPEN))
FORMS = sorted(path for path in _routes("POST") if not path.startswith(OPEN))
OWN = ("/sign-out", "/tenant", "/approvals/views", "/approvals/views/drop")
"""Forms about the person's own session, for every role."""


def test_there_are_pages_and_forms() -> None:
    """The tests below are about something."""
    assert len(PAGES) > 15 and len(FORMS) > 7


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_asks_to_sign_in(shop: ShopConsole, path: str) -> None:
    """Nothing is shown to somebody unknown."""
    answer = shop.client().get(path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in?next=")


@pytest.mark.parametrize("path", FORMS)
async def test_a_form_needs_session_token_and_origin(shop: ShopConsole, path: str) -> None:
    """Without one of them it is refused before anything is read."""
    browser = await shop.browser("ada", "admin")
    other = await shop.browser("eve", "admin")
    assert shop.client().post(path, data={"x": "y"}, headers={"origin": ORIGIN}).status_code == 401
    assert browser.client.post(path, data={"x": "y"}, headers={"origin": ORIGIN}).status_code == 403
    assert browser.post(path, {"csrf": other.csrf}).status_code == 403
    assert browser.post(path, {}, origin="http://evil.example").status_code == 403
    assert browser.post(path, {}, origin="null").status_code == 403
    assert browser.client.post(path, data={"csrf": browser.csrf}).status_code == 403


@pytest.mark.parametrize("path", [path for path in FORMS if path not in OWN])
async def test_a_viewer_cannot_act_by_any_form(shop: ShopConsole, path: str) -> None:
    """A role that only looks changes nothing."""
    browser = await shop.browser("vic", "viewer")
    answer = browser.post(path, {"verdict": "approved", "answer": "done"})
    assert answer.status_code == 403
    assert "vic has the role viewer" in answer.text


async def test_a_viewer_is_shown_no_buttons(shop: ShopConsole) -> None:
    """What they may not do is not offered."""
    id, key = await shop.ask(), await shop.doubt()
    browser = await shop.browser("vic", "viewer")
    for path in ("/approvals", f"/approvals/{id}", "/in-doubt"):
        text = browser.get(path).text
        acting = re.sub(r'<form class="(who|search|filters)"', "", text)
        assert "<form" not in acting.replace('<form method="post" action="/approvals/views', ""), (
            path
        )
        assert id in text or key in text


@pytest.mark.parametrize("path", [path for path in FORMS if path.startswith("/channels")][:1])
async def test_an_approver_is_no_admin(shop: ShopConsole, path: str) -> None:
    """Forking is for admins."""
    browser = await shop.browser("kim", "approver")
    assert browser.post("/channels/x/fork", {"at": "y"}).status_code == 403


async def test_every_answer_carries_the_headers(shop: ShopConsole) -> None:
    """Pages, refusals, files and JSON: no script but our own, no frame, no guessing of types."""
    browser = await shop.browser()
    for path in ("/approvals", "/nowhere", "/static/console.css", "/api/v1/me", "/sign-in"):
        headers = browser.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff", path
    assert browser.get("/approvals").headers["cache-control"] == "no-store"


async def test_pages_have_no_inline_script_or_style(shop: ShopConsole) -> None:
    """The policy would stop them, so there are none."""
    await shop.ask()
    text = (await shop.browser()).get("/approvals").text
    assert "<style" not in text and " style=" not in text and " onclick" not in text
    assert text.count("<script") == text.count('<script src="/static/')


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "10.0.0.1:8000"])
async def test_a_foreign_host_name_is_refused(shop: ShopConsole, host: str) -> None:
    """DNS rebinding: the page of another name gets nothing."""
    answer = shop.client().get("/sign-in", headers={"host": host})
    assert answer.status_code == 421


@pytest.mark.parametrize("host", ["localhost:8765", "127.0.0.1", "[::1]:8000", "LOCALHOST"])
async def test_loopback_names_are_answered(shop: ShopConsole, host: str) -> None:
    """With any port."""
    assert shop.client().get("/sign-in", headers={"host": host}).status_code == 200


async def test_the_session_cookie_is_kept_from_scripts_and_sites(shop: ShopConsole) -> None:
    """HttpOnly, SameSite=Lax, and Secure where the page came over HTTPS."""
    token = await shop.token("kim", "approver")
    for base, secure in ((ORIGIN, False), ("https://localhost", True)):
        client = shop.client(base_url=base)
        csrf = field(client.get("/sign-in").text, "csrf")
        data = {"csrf": csrf, "token": token}
        cookie = client.post("/sign-in", data=data, headers={"origin": base}).headers["set-cookie"]
        assert "HttpOnly" in cookie and "samesite=lax" in cookie.lower()
        assert ("Secure" in cookie) is secure


async def test_the_store_holds_no_token_and_no_session(shop: ShopConsole) -> None:
    """Whoever reads the file cannot sign in."""
    browser = await shop.browser()
    rows = await shop.store.read(lambda tx: [*tx.select("tokens"), *tx.select("sessions")])
    secrets = [browser.token, browser.client.cookies["agent_adapter_session"]]
    assert not any(secret in str(row) for row in rows for secret in secrets)


async def test_signing_in_needs_the_forms_own_csrf_token(shop: ShopConsole) -> None:
    """Nobody is signed in by another site's form."""
    token = await shop.token("kim", "approver")
    client = shop.client()
    csrf = field(client.get("/sign-in").text, "csrf")
    sent = {"token": token, "csrf": csrf}
    assert client.post("/sign-in", data=sent).status_code == 403
    assert client.post("/sign-in", data=sent, headers={"origin": "http://evil"}).status_code == 403
    other = shop.client()
    assert other.post("/sign-in", data=sent, headers={"origin": ORIGIN}).status_code == 403


@pytest.mark.parametrize("then", ["//evil.example", "https://evil.example", "/\\evil", "\n/x"])
async def test_signing_in_leads_nowhere_else(shop: ShopConsole, then: str) -> None:
    """The way back is a path of this console."""
    token, client = await shop.token("kim", "approver"), shop.client()
    csrf = field(client.get("/sign-in").text, "csrf")
    sent = {"token": token, "csrf": csrf, "next": then}
    answer = client.post("/sign-in", data=sent, headers={"origin": ORIGIN})
    assert answer.headers["location"] == "/"


async def test_a_revoked_token_ends_its_sessions(shop: ShopConsole) -> None:
    """At the next request."""
    browser = await shop.browser("kim")
    await shop.store.write(lambda tx: access.revoke_token(tx, "kim"))
    assert browser.get("/approvals").status_code == 303
    headers = {"authorization": f"Bearer {browser.token}"}
    assert browser.get("/api/v1/me", headers=headers).status_code == 401


async def test_signing_out_ends_the_session_in_the_store(shop: ShopConsole) -> None:
    """A copy of the cookie is worth nothing afterwards."""
    browser = await shop.browser()
    cookie = browser.client.cookies["agent_adapter_session"]
    assert browser.post("/sign-out", {}).status_code == 303
    copy = shop.client()
    copy.cookies.set("agent_adapter_session", cookie)
    assert copy.get("/approvals").status_code == 303


async def test_a_session_ends_when_it_is_idle_and_after_half_a_day(tmp_path: object) -> None:
    """Half an hour without a request, or twelve hours with them."""
    now = [1_000_000.0]
    store = MemoryStore(clock=lambda: now[0])
    browser = await ShopConsole(store).browser()
    for _ in range(23):
        now[0] += 29 * 60
        assert browser.get("/approvals").status_code == 200
    now[0] += 31 * 60
    assert browser.get("/approvals").status_code == 303
    browser = await ShopConsole(store).browser("lee")
    for _ in range(26):
        now[0] += 28 * 60
        last = browser.get("/approvals").status_code
    assert last == 303


async def test_guessing_tokens_is_slowed_down(shop: ShopConsole) -> None:
    """Ten tries, then one every six seconds, for the page and for the API together."""
    client = shop.client()
    csrf = field(client.get("/sign-in").text, "csrf")
    sent = {"token": "aat_wrong", "csrf": csrf}
    codes = [
        client.post("/sign-in", data=sent, headers={"origin": ORIGIN}).status_code
        for _ in range(12)
    ]
    assert codes[:10] == [401] * 10 and codes[-1] == 429
    guess = client.get("/api/v1/me", headers={"authorization": "Bearer aat_wrong"})
    assert guess.status_code == 429


async def test_a_flood_of_forms_is_slowed_down(shop: ShopConsole) -> None:
    """A session may act sixty times at once, not for ever."""
    browser = await shop.browser()
    codes = [browser.post("/in-doubt/x", {"answer": "?"}).status_code for _ in range(70)]
    assert codes[0] == 422 and codes[-1] == 429


async def test_a_trusted_proxy_says_who_it_is(store: SqliteStore) -> None:
    """The header counts from the proxy's address alone, for the names that have a role."""
    proxy = TrustedProxy(peers=["testclient"], roles={"kim@example.org": "approver"})
    shop = ShopConsole(store, trusted_proxy=proxy)
    id = await shop.ask()
    client = shop.client(headers={"x-forwarded-user": "kim@example.org"})
    text = client.get(f"/approvals/{id}").text
    sent = {name: field(text, name) for name in ("csrf", "digest", "version")}
    sent["verdict"] = "approved"
    answer = client.post(f"/approvals/{id}/decide", data=sent, headers={"origin": ORIGIN})
    assert answer.status_code == 303
    assert (await shop.record(id)).reviewer == "proxy:kim@example.org"
    stranger = shop.client(headers={"x-forwarded-user": "eve"})
    assert stranger.get("/approvals").status_code == 303


async def test_a_proxys_session_is_of_the_person_it_names(store: SqliteStore) -> None:
    """With another name in the header, or none, the cookie opens nothing."""
    proxy = TrustedProxy(peers=["testclient"], roles={"kim": "admin", "vic": "viewer"})
    client = ShopConsole(store, trusted_proxy=proxy).client()
    assert "admin" in client.get("/approvals", headers={"x-forwarded-user": "kim"}).text
    assert "viewer" in client.get("/approvals", headers={"x-forwarded-user": "vic"}).text
    assert client.get("/approvals").status_code == 303


async def test_a_header_from_elsewhere_is_not_believed(store: SqliteStore) -> None:
    """Who connects directly can write any header."""
    shop = ShopConsole(store, trusted_proxy=TrustedProxy(peers=["10.1.1.1"], role="admin"))
    client = shop.client(headers={"x-forwarded-user": "kim"})
    assert client.get("/approvals").status_code == 303


def test_a_proxy_without_addresses_is_refused() -> None:
    """Believing everybody is a mistake that is named."""
    with pytest.raises(aa.AgentAdapterError, match="peers needs the proxy's addresses"):
        TrustedProxy(peers=[])
    with pytest.raises(aa.AgentAdapterError, match="no role 'boss'"):
        TrustedProxy(peers=["127.0.0.1"], role="boss")


async def test_a_body_that_is_too_large_is_refused(shop: ShopConsole) -> None:
    """Before it is read."""
    browser = await shop.browser()
    assert browser.post("/in-doubt/x", {"reason": "x" * 3_000_000}).status_code == 413


async def test_the_reviewer_is_never_taken_from_the_form(shop: ShopConsole) -> None:
    """A14: whoever signs in is who decides."""
    id = await shop.ask()
    (await shop.browser("kim")).decide(id, reviewer="boss", name="boss", role="admin")
    assert (await shop.record(id)).reviewer == "token:kim"


async def test_tokens_are_noted_in_the_ledger(shop: ShopConsole) -> None:
    """Who let whom in stays known; a name belongs to one token at a time."""
    await shop.token("kim", "approver")
    with pytest.raises(AssertionError, match="kim has a token"):
        await shop.token("kim", "admin")
    await shop.store.write(lambda tx: access.revoke_token(tx, "kim", by="os:root"))
    entries = await shop.store.read(lambda tx: tx.select("ledger", {"run_id": "upkeep"}))
    assert [row["kind"] for row in entries] == ["token-created", "token-revoked"]
